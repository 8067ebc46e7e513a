"""``openheim plugins enable`` and ``disable``: one list in the user's file, and nothing else of it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from openheim.errors import ConfigError, PluginNotFoundError, UsageError
from openheim.plugins.catalogue import Catalogue, scan
from openheim.plugins.switching import switch
from tests.plugins.distributions import make_distribution, make_tool_distribution, run_openheim


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    make_distribution(
        tmp_path / "site",
        "oh-pair",
        entry_points={"openheim.providers": ["p = m"], "openheim.embeddings": ["p = m"], "openheim.tools": ["t = m"]},
    )
    make_distribution(tmp_path / "site", "oh-own", entry_points={"openheim.tools": ["oh-own = m"]})
    return scan([str(tmp_path / "site")])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def plugins(config: Path) -> Any:
    return tomllib.loads(config.read_text()).get("plugins")


def test_disable_makes_the_file_and_enable_undoes_it(config: Path, catalogue: Catalogue) -> None:
    assert switch(config, catalogue, "t", on=False) == ("tools.t", True)
    assert plugins(config) == {"disable": ["tools.t"]}
    assert switch(config, catalogue, "tools:t", on=False) == ("tools.t", False)
    assert switch(config, catalogue, "tools.t", on=True) == ("tools.t", True)
    assert plugins(config) == {"disable": []}
    assert switch(config, catalogue, "tools.t", on=True) == ("tools.t", False)


def test_enable_without_a_file_makes_none(config: Path, catalogue: Catalogue) -> None:
    assert switch(config, catalogue, "t", on=True) == ("tools.t", False)
    assert not config.exists()


def test_a_distribution_goes_as_a_whole(config: Path, catalogue: Catalogue) -> None:
    assert switch(config, catalogue, "OH_pair", on=False) == ("oh-pair", True)
    assert plugins(config) == {"disable": ["oh-pair"]}
    # It is off already, by the distribution's name.
    assert switch(config, catalogue, "tools.t", on=False) == ("tools.t", False)
    # One of it comes back; what else the entry covered stays off.
    assert switch(config, catalogue, "tools.t", on=True) == ("tools.t", True)
    assert plugins(config) == {"disable": ["embeddings.p", "providers.p"]}
    assert switch(config, catalogue, "oh-pair", on=True) == ("oh-pair", True)
    assert plugins(config) == {"disable": []}


def test_an_allow_list_gets_what_is_enabled(config: Path, catalogue: Catalogue) -> None:
    config.write_text('[plugins]\nenable = ["oh-own"]\ndisable = ["tools.t"]\n')
    switch(config, catalogue, "t", on=True)
    assert plugins(config) == {"enable": ["oh-own", "tools.t"], "disable": []}
    switch(config, catalogue, "tools.oh-own", on=True)
    assert plugins(config) == {"enable": ["oh-own", "tools.t"], "disable": []}


def test_a_name_that_is_both(config: Path, catalogue: Catalogue) -> None:
    assert switch(config, catalogue, "oh-own", on=False) == ("tools.oh-own", True)


def test_names_that_are_not_clear_or_not_known(config: Path, catalogue: Catalogue) -> None:
    with pytest.raises(UsageError) as ambiguous:
        switch(config, catalogue, "p", on=False)
    assert ambiguous.value.hint == "choose one of embeddings.p, providers.p"
    with pytest.raises(PluginNotFoundError, match="did you mean oh-pair"):
        switch(config, catalogue, "oh-pare", on=False)
    with pytest.raises(PluginNotFoundError):
        switch(config, catalogue, "tools.p", on=False)
    assert not config.exists()


@pytest.mark.parametrize(
    "text", ['[plugins]\ndisable = "t"\n', "plugins = 1\n", "[plugins]\ndisable = [1]\n", "[plugins\n"]
)
def test_a_file_that_is_wrong_already_is_left_alone(config: Path, catalogue: Catalogue, text: str) -> None:
    config.write_text(text)
    with pytest.raises(ConfigError):
        switch(config, catalogue, "t", on=False)
    assert config.read_text() == text


COMMENTED = """\
# My settings.
default_provider = "work"   # the good one

[providers.work]
kind = "openai"
api_key_file = '/run/key'

# Off for now:
[plugins]  # see the docs
disable = [
    "oh-own",   # noisy
    "elsewhere",
]

[plugins.prefer]
"providers.openai" = "acme"
"""


def test_comments_and_layout_stay(config: Path, catalogue: Catalogue) -> None:
    config.write_text(COMMENTED)
    switch(config, catalogue, "t", on=False)
    text = config.read_text()
    assert tomllib.loads(text)["plugins"] == {
        "disable": ["oh-own", "elsewhere", "tools.t"],
        "prefer": {"providers.openai": "acme"},
    }
    for line in COMMENTED.splitlines():
        assert line in text.splitlines()
    switch(config, catalogue, "t", on=True)
    assert tomllib.loads(config.read_text()) == tomllib.loads(COMMENTED)
    assert config.read_text().count("# noisy") == 1


@pytest.mark.parametrize(
    "text",
    [
        'plugins = { enable = ["oh-own", "t"] }\n',
        'plugins.enable = ["oh-own"]\n',
        '[plugins.prefer]\n"providers.p" = "x"\n',
        'a = 1\n[plugins.prefer]\n"providers.p" = "x"\n\n[last]\nb = 2\n',
        '[plugins.prefer]\nx.y = "z"\n[other]\nc = 3\n[plugins]\nenable = []\n',
        "[plugins]\n",
        "[plugins]",
        "# only a comment",
        "",
        "a = 1\r\n[plugins]\r\ndisable = []\r\n# end\r\n",
        'text = """\r\n[plugins]\r\n"""\r\n',
    ],
)
def test_every_way_to_write_the_section(config: Path, catalogue: Catalogue, text: str) -> None:
    config.write_bytes(text.encode())
    before = tomllib.loads(text)
    assert switch(config, catalogue, "t", on=False)[1]
    after = tomllib.loads(config.read_text())
    assert after["plugins"].pop("disable") == ["tools.t"]
    before.setdefault("plugins", {}).pop("disable", None)
    assert after == before


def test_the_commands(tmp_path: Path, own_environment: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-tools", "x")
    config = own_environment / "config.toml"
    done = run_openheim("plugins", "disable", "x", folders=[site])
    assert (done.returncode, done.stdout) == (0, f"tools.x is disabled in {config}\n")
    assert "x_tool" not in run_openheim("tools", "list", folders=[site]).stdout
    done = run_openheim("plugins", "disable", "tools.x", "--json", folders=[site])
    assert json.loads(done.stdout) == {"plugin": "tools.x", "enabled": False, "changed": False, "file": str(config)}
    done = run_openheim("plugins", "enable", "oh-tools", "--json", folders=[site])
    assert json.loads(done.stdout) == {"plugin": "oh-tools", "enabled": True, "changed": True, "file": str(config)}
    assert "x_tool" in run_openheim("tools", "list", folders=[site]).stdout
    done = run_openheim("plugins", "enable", "x", folders=[site], OPENHEIM_PLUGINS_DISABLE="oh-tools")
    assert done.stdout == f"tools.x is enabled already in {config}\n"
    assert done.stderr == ("warning: tools.x of oh-tools stays disabled: switched off by OPENHEIM_PLUGINS_DISABLE\n")
    done = run_openheim("plugins", "disable", "oh-toosl", folders=[site])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: no plugin named 'oh-toosl' is installed (did you mean oh-tools?)\n"
