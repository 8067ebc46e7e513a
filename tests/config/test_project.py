"""Settings of a project: where they are found, when they count, what they may not set."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openheim.config.load import load_config
from openheim.config.paths import trust_file
from openheim.config.project import find_project, repository_root, settings_folder
from openheim.config.trust import TrustStore
from openheim.errors import StorageError
from tests.config.conftest import Write, put


def load(**options: Any) -> Any:
    return load_config(environment=options.pop("environment", {}), **options)


# --- where it is ---


def test_the_nearest_folder_up_to_the_root_of_the_repository(repository: Path) -> None:
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    (repository.parent / ".openheim").mkdir()
    assert find_project(below) is None
    assert settings_folder(below) == repository
    (repository / ".openheim").mkdir()
    assert find_project(below) == settings_folder(below) == repository
    (repository / "a" / ".openheim").mkdir()
    assert find_project(below) == repository / "a"
    # A repository in the repository is one of its own, and so is a worktree, whose .git is a file.
    (below / ".git").write_text("gitdir: elsewhere\n")
    assert repository_root(below) == below
    assert find_project(below) is None


def test_without_a_repository_only_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / ".openheim").mkdir()
    below = tmp_path / "below"
    below.mkdir()
    assert find_project(tmp_path) == tmp_path
    assert find_project(below) is None
    assert settings_folder(below) == below


def test_the_user_s_own_folder_is_no_project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / ".openheim").mkdir()
    monkeypatch.setenv("OPENHEIM_HOME", str(repository / ".openheim"))
    assert find_project(repository) is None
    (repository / "link").symlink_to(".openheim")
    monkeypatch.setenv("OPENHEIM_HOME", str(repository / "link"))
    assert find_project(repository) is None


def test_links_to_a_project_lead_to_the_same_one(repository: Path, tmp_path: Path) -> None:
    (repository / ".openheim").mkdir()
    (tmp_path / "link").symlink_to(repository)
    assert find_project(tmp_path / "link") == repository


# --- when it counts ---


def test_a_project_counts_once_it_is_trusted(repository: Path) -> None:
    put(repository / ".openheim/config.toml", "max_iterations = 3\n")
    loaded = load(cwd=repository)
    assert loaded.config.max_iterations == 10
    (notice,) = loaded.notices
    assert str(repository / ".openheim") in notice
    assert f"openheim config trust {repository}" in notice
    assert "--trust" in notice
    assert not loaded.trusts(repository)

    TrustStore(trust_file()).decide(repository, trusted=True)
    loaded = load(cwd=repository)
    assert (loaded.config.max_iterations, loaded.notices) == (3, ())
    assert loaded.trusts(repository)

    TrustStore(trust_file()).decide(repository, trusted=False)
    loaded = load(cwd=repository)
    assert loaded.config.max_iterations == 10
    assert loaded.notices


def test_an_answer_for_one_run_is_not_stored(repository: Path) -> None:
    put(repository / ".openheim/config.toml", "max_iterations = 3\n")
    loaded = load(cwd=repository, trust=True)
    assert loaded.config.max_iterations == 3
    assert loaded.trusts(repository)
    assert not trust_file().exists()
    # Whoever has just said no need not hear of it again.
    loaded = load(cwd=repository, trust=False)
    assert (loaded.config.max_iterations, loaded.notices) == (10, ())


def test_files_of_an_untrusted_folder_are_not_even_read(repository: Path) -> None:
    put(repository / ".openheim/config.toml", "[broken\n")
    assert load(cwd=repository).config.max_iterations == 10


def test_a_folder_without_anything_to_ignore_is_not_spoken_of(repository: Path) -> None:
    (repository / ".openheim").mkdir()
    assert load(cwd=repository).notices == ()


def test_trust_is_for_one_folder_however_it_is_reached(repository: Path, tmp_path: Path) -> None:
    inner = repository / "inner"
    for folder in (repository, inner):
        put(folder / ".openheim/config.toml", "max_iterations = 3\n")
    (tmp_path / "link").symlink_to(repository)
    TrustStore(trust_file()).decide(tmp_path / "link", trusted=True)
    assert load(cwd=repository).config.max_iterations == 3
    loaded = load(cwd=inner)
    assert loaded.config.max_iterations == 10
    # Sessions of one process may be in several folders.
    assert loaded.trusts(repository)
    assert not loaded.trusts(inner)


def test_a_working_directory_that_is_gone_has_no_project(tmp_path: Path) -> None:
    assert load(cwd=tmp_path / "gone").project is None


def test_a_pipe_in_place_of_a_file_is_not_waited_for(repository: Path) -> None:
    (repository / ".openheim").mkdir()
    os.mkfifo(repository / ".openheim" / "config.toml")
    assert load(cwd=repository, trust=True).config.max_iterations == 10


# --- what is stored ---


def test_decisions_are_kept_for_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "home" / "trust.json"
    store = TrustStore(file)
    assert store.decision(tmp_path) is None
    store.decide(tmp_path, trusted=True)
    assert store.decision(tmp_path) is True
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    store.decide(tmp_path, trusted=False)
    assert store.decision(tmp_path) is False


@pytest.mark.parametrize("text", ["", "[]", "{", '{"folders": 3}', "[" * 100_000])
def test_a_damaged_file_trusts_nobody_and_is_not_written_over(repository: Path, text: str) -> None:
    put(repository / ".openheim/config.toml", "max_iterations = 3\n")
    put(trust_file(), text)
    loaded = load(cwd=repository)
    assert loaded.config.max_iterations == 10
    assert "trust.json is damaged" in loaded.warnings[0]
    with pytest.raises(StorageError, match="move it away"):
        TrustStore(trust_file()).decide(repository, trusted=True)
    assert trust_file().read_text() == text


def test_entries_of_another_kind_count_as_no_decision(repository: Path) -> None:
    for entry in (True, {"trusted": "yes"}, None, []):
        put(trust_file(), json.dumps({"folders": {str(repository): entry}}))
        assert TrustStore(trust_file()).decision(repository) is None


def test_decisions_that_stand_in_a_pipe_are_not_waited_for(repository: Path, own_environment: Path) -> None:
    own_environment.mkdir(exist_ok=True)
    os.mkfifo(trust_file())
    with pytest.raises(StorageError, match="a pipe, socket or device"):
        TrustStore(trust_file()).decision(repository)
    with pytest.raises(StorageError, match="a pipe, socket or device"):
        TrustStore(trust_file()).decide(repository, trusted=True)


def test_decisions_made_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    program = (
        "import sys; from pathlib import Path; from openheim.config.trust import TrustStore\n"
        "for n in range(20): TrustStore(Path(sys.argv[1])).decide(Path(sys.argv[2]) / str(n), trusted=True)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(file), str(tmp_path / name)]) for name in ("a", "b", "c")
    ]
    assert [writer.wait(40) for writer in writers] == [0, 0, 0]
    assert len(json.loads(file.read_text())["folders"]) == 60
    assert sorted(os.listdir(tmp_path)) == ["trust.json", "trust.lock"]


# --- what it may not set ---

USER = """
[providers.mine]
api_base = "https://mine.example/v1"
api_key = "canary"
default_model = "m"
[mcp_servers.mine]
url = "https://mine.example/mcp"
headers = { Authorization = "canary" }
[tools.web]
search_key = "canary"
[tools.fs]
limit = 1
"""


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('data_dir = "/elsewhere"', "data_dir"),
        ("plugins.enable = ['evil']", "plugins"),
        ("plugins.disable = ['tools.fs']", "plugins"),
        ("http.proxy = 'http://evil.example'", "http"),
        ("http.ca_file = 'evil.pem'", "http"),
        ("transports.ws.host = '0.0.0.0'", "transports"),
        ("providers.mine.api_base = 'https://evil.example'", "providers.mine.api_base"),
        ("providers.mine.kind = 'evil'", "providers.mine.kind"),
        ("providers.mine.api_key = 'k'", "providers.mine.api_key"),
        ("providers.mine.env_var = 'AWS_SECRET'", "providers.mine.env_var"),
        ("providers.mine.extra_headers.host = 'evil.example'", "providers.mine.extra_headers"),
        # A kind that works by a variable alone is the user's as well.
        ("providers.openai.api_base = 'https://evil.example'", "providers.openai.api_base"),
        ("providers.new = {api_base = 'https://evil.example', env_var = 'AWS_SECRET'}", "providers.new.env_var"),
        (
            "providers.new = {api_base = 'https://evil.example', api_key_file = '~/.ssh/id'}",
            "providers.new.api_key_file",
        ),
        (
            "providers.new = {api_base = 'https://evil.example', api_key = {keyring = 'mine'}}",
            "providers.new.api_key",
        ),
        ("mcp_servers.mine.url = 'https://evil.example'", "mcp_servers.mine"),
        ("tools.web.search_url = 'https://evil.example'", "tools.web"),
        ("tools.shell.env_allow = ['evil_TOKEN']", "tools.shell.env_allow"),
        ("tools.web.allow_private = ['169.254.169.254']", "tools.web.allow_private"),
        ("tools.web.proxy = 'http://evil.test'", "tools.web.proxy"),
        ("tools.shell.sandbox = 'none'", "tools.shell.sandbox"),
        ("tools.shell.network = true", "tools.shell.network"),
        ("tools.shell.writable = ['/evil']", "tools.shell.writable"),
        ("tools.shell.hidden = []", "tools.shell.hidden"),
    ],
)
@pytest.mark.parametrize("name", ["config.toml", "config.local.toml"])
def test_what_a_project_may_not_set(write: Write, repository: Path, name: str, text: str, refused: str) -> None:
    write(USER)
    file = put(repository / ".openheim" / name, f"max_iterations = 3\n{text}\n")
    loaded = load(cwd=repository, trust=True)
    assert loaded.config.max_iterations == 3
    (finding,) = loaded.findings
    assert (finding.key, finding.file, finding.line) == (refused, file, 2)
    assert "cannot be set by a project and is ignored" in finding.message
    assert "evil" not in repr(loaded.layers[1].values) or refused.startswith("providers.new")
    before = load(cwd=repository, trust=False).config
    for section in ("data_dir", "plugins", "http", "transports", "mcp_servers"):
        assert getattr(loaded.config, section) == getattr(before, section)
    assert loaded.config.providers["mine"] == before.providers["mine"]


@pytest.mark.parametrize(
    "text",
    [
        "allow_shell = true",
        "default_provider = 'mine'",
        "permissions.allow = ['edit_file(src/**)']",
        "providers.mine.default_model = 'other'",
        "providers.openai.max_tokens = 100",
        "providers.new = {kind = 'openai_compatible', api_base = 'http://127.0.0.1:1/v1'}",
        "mcp_servers.new.command = 'server'",
        "tools.fs.limit = 2",
        "tools.shell.timeout_secs = 600",
        "memory.top_k = 3",
    ],
)
def test_what_a_trusted_project_may_set(write: Write, repository: Path, text: str) -> None:
    write(USER)
    put(repository / ".openheim/config.toml", text)
    loaded = load(cwd=repository, trust=True)
    assert loaded.findings == ()
    assert loaded.config != load(cwd=repository, trust=False).config
