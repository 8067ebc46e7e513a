"""Layers: which value wins, and where each comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openheim.config import paths
from openheim.config.load import examine_config, load_config
from openheim.errors import ConfigError
from tests.config.conftest import Write, put


def load(**options: Any) -> Any:
    return load_config(environment=options.pop("environment", {}), **options)


def test_every_layer_wins_over_the_ones_before(
    write: Write, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From all layers down to none, the strongest one decides."""
    user = write("max_iterations = 1\n")
    project = put(repository / ".openheim/config.toml", "# shared\nmax_iterations = 2\n")
    local = put(repository / ".openheim/config.local.toml", "\n\nmax_iterations = 3\n")
    policy = put(tmp_path / "policy.toml", "[http]\nca_file = 'x'\n[permissions]\nmode = 'plan'\n")
    monkeypatch.setenv("OPENHEIM_POLICY_FILE", str(policy))
    inputs: dict[str, Any] = {
        "environment": {"OPENHEIM_MAX_ITERATIONS": "4"},
        "flags": {"max_iterations": 5, "permissions": {"mode": "default"}},
        "cwd": repository,
        "trust": True,
    }

    def found(**changed: Any) -> tuple[Any, ...]:
        loaded = load(**(inputs | changed))
        origin = loaded.origin("max_iterations")
        return loaded.config.max_iterations, origin.layer, origin.file, origin.line

    loaded = load(**inputs)
    assert [layer.name for layer in loaded.layers] == ["user", "project", "local", "environment", "flags", "policy"]
    assert loaded.config.permissions.mode == "plan"
    assert loaded.origin("permissions", "mode").layer == "policy"
    assert loaded.origin("permissions", "mode").line == 4
    assert loaded.origin("allow_shell").layer == "default"
    assert loaded.is_managed("permissions", "mode")
    assert not loaded.is_managed("max_iterations")

    assert found() == (5, "flags", None, None)
    assert found(flags=None) == (4, "environment", None, None)
    assert found(flags=None, environment={}) == (3, "local", local, 3)
    local.unlink()
    assert found(flags=None, environment={}) == (2, "project", project, 2)
    assert found(flags=None, environment={}, trust=False) == (1, "user", user, 1)
    user.unlink()
    assert found(flags=None, environment={}, trust=False) == (10, "default", None, None)


def test_tables_are_merged_and_lists_replaced(write: Write, repository: Path) -> None:
    write('default_skills = ["a", "b"]\n[mcp_servers.one]\ncommand = "x"\n')
    put(repository / ".openheim/config.toml", 'default_skills = ["c"]\n[mcp_servers.two]\ncommand = "y"\n')
    config = load(cwd=repository, trust=True).config
    assert config.default_skills == ("c",)
    assert {name: server.command for name, server in config.mcp_servers.items()} == {"one": "x", "two": "y"}


def test_rules_of_all_layers_hold(
    write: Write, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write('[permissions]\nallow = ["a", "both"]\ndeny = ["d"]\n[plugins]\ndisable = ["p"]\n')
    put(repository / ".openheim/config.toml", '[permissions]\nallow = ["both", "b"]\ndeny = []\n')
    policy = put(tmp_path / "policy.toml", '[permissions]\ndeny = ["m"]\n[plugins]\ndisable = ["q"]\n')
    monkeypatch.setenv("OPENHEIM_POLICY_FILE", str(policy))
    config = load(cwd=repository, trust=True, flags={"permissions": {"deny": ["f"]}}).config
    assert config.permissions.allow == ("a", "both", "b")
    assert config.permissions.deny == ("d", "f", "m")
    assert config.plugins["disable"] == ["p", "q"]


def test_the_place_of_a_key_is_replaced_as_a_whole(write: Write) -> None:
    write('[providers.x]\napi_base = "https://h"\napi_key = { keyring = "x" }\n')
    loaded = load(environment={"OPENHEIM_PROVIDERS__X__API_KEY": '{ env = "KEY" }'})
    assert loaded.config.providers["x"].api_key == {"env": "KEY"}


def test_policies(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = put(tmp_path / "etc/policy.toml", "allow_shell = false\nmax_iterations = 3\n")
    monkeypatch.setattr(paths, "SYSTEM_POLICY", system)
    write("allow_shell = true\n")
    assert load(flags={"max_iterations": 9}).config.max_iterations == 3
    assert load(environment={"OPENHEIM_ALLOW_SHELL": "true"}).config.allow_shell is False

    # A further one adds to the system's, and does not stand in for it.
    monkeypatch.setenv("OPENHEIM_POLICY_FILE", str(put(tmp_path / "mine.toml", "allow_shell = true\nwork_dir = '/'\n")))
    loaded = load()
    assert (loaded.config.allow_shell, loaded.config.work_dir) == (False, "/")
    assert loaded.origin("allow_shell").file == system

    monkeypatch.setenv("OPENHEIM_POLICY_FILE", str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match="there is no config file"):
        load()
    monkeypatch.setenv("OPENHEIM_POLICY_FILE", str(put(tmp_path / "broken.toml", "allow_shell = 1\n")))
    with pytest.raises(ConfigError, match=r"broken\.toml, line 1: allow_shell must be boolean"):
        load()


def test_all_errors_are_found_and_the_first_one_is_raised(write: Write, repository: Path) -> None:
    write("max_iterations = 0\n[permissions]\nmode = 'fast'\n")
    local = put(repository / ".openheim/config.local.toml", "[broken\n")
    found = examine_config(environment={"OPENHEIM_ALLOW_SHELL": "perhaps"}, cwd=repository, trust=True)
    assert found.loaded is None
    assert [(error.key, error.line, error.source) for error in found.errors] == [
        ("", 1, ""),
        ("max_iterations", 1, ""),
        ("permissions.mode", 3, ""),
        ("allow_shell", None, "OPENHEIM_ALLOW_SHELL"),
    ]
    assert found.errors[0].file == local
    with pytest.raises(ConfigError) as caught:
        load(cwd=repository, trust=True)
    assert str(local) in caught.value.message
