"""``openheim doctor``: what it says works does, and what cannot work is a problem."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.cli.command import Command, Ended, on_terminal
from tests.plugins.distributions import make_distribution
from tests.support import openai_wire as wire
from tests.support.openai_server import OpenAIServer
from tests.support.replies import Reply, raw
from tests.support.server import ScriptedServer

CERTIFICATES = Path(__file__).parent.parent / "wire" / "certificates"
KEY = "sk-canary"


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    return context


def findings(ended: Ended) -> dict[str, tuple[str, str]]:
    """Subject to status and detail."""
    assert KEY not in ended.out + ended.err
    assert "Traceback" not in ended.err
    return {finding["subject"]: (finding["status"], finding["detail"]) for finding in ended.json}


def test_what_works(openheim: Command) -> None:
    with OpenAIServer([wire.text("never")], models=["a", "b"]) as server:
        openheim.use(server, 'default_model = "a"')
        ended = openheim("doctor", "--json", env={"OPENAI_API_KEY": KEY})
    found = findings(ended)
    assert ended.code == 0, ended.out
    assert found["keys in the environment"] == ("ok", "OPENAI_API_KEY")
    assert found["provider test"] == ("ok", "kind openai_compatible, no key, reached, 2 models")
    assert "read_file" in found["tools"][1]
    assert found["gate ask"] == ("ok", "in use")
    # The key is that of another address.
    assert "authorization" not in server.requests[0].headers


def test_a_fresh_machine(openheim: Command) -> None:
    ended = openheim("doctor", "--json")
    found = findings(ended)
    assert ended.code == 0
    assert found["default provider"] == ("note", "demo")
    assert found["provider demo"] == ("ok", "kind demo, no key, reached, 1 model")
    assert "provider demo" in openheim("doctor").out


def test_settings_that_cannot_work(openheim: Command) -> None:
    openheim.configure(
        'max_iteration = 3\nwork_dir = "missing"\n[permissions]\ngate = "nosuch"\n[gates.ask]\nx = 1\n'
        '[providers.a]\napi_base = "http://127.0.0.1:9"\n[providers.b]\napi_base = "ftp://b"\n'
        '[providers.c]\nkind = "nosuchkind"\n[providers.d]\nkind = "demo"\nflavour = "mint"\n'
    )
    ended = openheim("doctor", "--json")
    found = findings(ended)
    assert ended.code == 1
    assert {subject for subject, (status, _detail) in found.items() if status == "problem"} == {
        "config",
        "default provider",
        "gate ask",
        "gate nosuch",
        "provider a",
        "provider b",
        "provider c",
        "provider d",
        "work directory",
    }
    assert "line 6: [gates.ask] x: this plugin has no settings" in found["gate ask"][1]
    assert "No provider plugin named 'nosuchkind' is installed" in found["provider c"][1]
    assert "line 15: [providers.d] flavour" in found["provider d"][1]
    for broken in ("[broken\n", '[permissions]\nallow = ["("]\n', "[plugins]\nenable = 3\n"):
        openheim.configure(broken)
        ended = openheim("doctor", "--json")
        assert ended.code == 1
        assert findings(ended)["config"][0] == "problem"


def test_rules_about_no_tool(openheim: Command) -> None:
    openheim.configure('[permissions]\ndeny = ["edit_fil", "execute_command"]\n')
    ended = openheim("doctor", "--json")
    assert ended.code == 0
    status, detail = findings(ended)["rule permissions.deny[0]"]
    assert status == "note"
    assert detail.endswith("line 2: permissions.deny[0]: no tool is called edit_fil; did you mean edit_file?")


def test_wrong_settings_of_a_toolset(openheim: Command) -> None:
    openheim.configure("[tools.fs]\nnonsense = 1\n")
    ended = openheim("doctor", "--json")
    assert ended.code == 1
    status, detail = findings(ended)["tools"]
    assert status == "problem"
    assert "line 2: [tools.fs] nonsense" in detail


def test_an_identity_that_cannot_be_read(openheim: Command) -> None:
    openheim.home.mkdir(parents=True)
    (openheim.home / "system.md").write_bytes(b"\xff")
    ended = openheim("doctor", "--json")
    assert ended.code == 1
    status, detail = findings(ended)["data folder"]
    assert status == "problem"
    assert "is not UTF-8" in detail


def test_a_key_whose_package_is_missing(openheim: Command) -> None:
    openheim.hide("openheim-provider-anthropic")
    for arguments in ([], ["--offline"]):
        ended = openheim("doctor", "--json", *arguments, env={"ANTHROPIC_API_KEY": KEY})
        found = findings(ended)
        assert ended.code == 0
        assert found["default provider"] == ("note", "demo")
        assert found["keys in the environment"] == ("note", "none; set OPENAI_API_KEY or GEMINI_API_KEY")
        status, detail = found["key ANTHROPIC_API_KEY"]
        assert (status, "pip install openheim-provider-anthropic" in detail) == ("note", True)


def test_a_vendors_address_is_tried_through_the_configured_proxy(openheim: Command) -> None:
    with ScriptedServer(default=raw(b"no", status=502)) as proxy:
        openheim.configure(f'[http]\nproxy = "{proxy.url}"\n')
        ended = openheim("doctor", "--json", env={"OPENAI_API_KEY": KEY})
        assert ended.code == 1
        status, detail = findings(ended)["provider openai"]
        assert (proxy.requests[0].method, proxy.requests[0].path) == ("CONNECT", "api.openai.com:443")
        assert (status, "not reached" in detail) == ("problem", True)
        offline = openheim("doctor", "--json", "--offline", env={"OPENAI_API_KEY": KEY})
        assert offline.code == 0
        assert findings(offline)["provider openai"] == ("ok", "kind openai, key found, not tried")
        assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("answer", "code", "status", "complaint"),
    [
        (wire.models("qwen3"), 0, "ok", "key found, reached, 1 model"),
        (wire.models("other"), 0, "note", "reached, 1 model, 'qwen3' not among them"),
        (wire.error(401, f"wrong key {KEY}", code="invalid_api_key"), 1, "problem", "reached, and refused: "),
        (wire.error(402, "no credit"), 1, "problem", "reached, and refused: "),
        (wire.error(500, "down"), 1, "problem", "reached, and refused: "),
        (wire.error(404, "no such path"), 0, "note", "reached, without a list of models: "),
        (wire.error(429, "slowly"), 0, "note", "reached, without a list of models: "),
    ],
    ids=["ok", "other model", "bad key", "no credit", "down", "no list", "busy"],
)
def test_the_key_is_tried_with_the_configured_authority(
    openheim: Command, tls: ssl.SSLContext, answer: Reply, code: int, status: str, complaint: str
) -> None:
    with OpenAIServer(models=answer, tls=tls) as server:
        authority = CERTIFICATES / "ca.pem"
        entry = f'default_model = "qwen3"\napi_key = "{KEY}"\n'
        openheim.use(server, f'{entry}[http]\nproxy = ""\nca_file = "{authority}"\n')
        ended = openheim("doctor", "--json")
    found = findings(ended)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert found["provider test"][0] == status
    assert complaint in found["provider test"][1]
    assert ended.code == code


def test_a_server_is_reached_without_a_model_being_named(openheim: Command) -> None:
    with OpenAIServer(models=wire.models("qwen3")) as server:
        openheim.configure(f'[providers.test]\nkind = "openai_compatible"\napi_base = "{server.base_url}"\n')
        found = findings(openheim("doctor", "--json"))
        listed = openheim("models", "--refresh")
    assert found["provider test"][0] == "note" and "reached, 1 model, no default_model" in found["provider test"][1]
    assert found["default provider"] == (
        "problem",
        "test, for which no model is named: set default_model in [providers.test]",
    )
    assert listed.code == 0 and "qwen3" in listed.out and "none" in listed.out
    refused = openheim("run", "hi")
    assert refused.code == 2 and "no model is named for provider 'test'" in refused.err


def test_an_authority_that_is_not_trusted(openheim: Command, tls: ssl.SSLContext) -> None:
    with OpenAIServer(tls=tls) as server:
        openheim.use(server, "[http]\nproxy = ''\n")
        ended = openheim("doctor", "--json", env={"SSL_CERT_FILE": None, "SSL_CERT_DIR": None})
    assert ended.code == 1
    assert "is not trusted" in findings(ended)["provider test"][1]


PROVIDER = """
from openheim import hookimpl

class Given:
    wire = "given"
    default_model = "m"

    async def generate(self, request, emit):
        raise AssertionError("doctor lists models and asks for no reply")

class Failing(Given):
    async def models(self):
        raise KeyError("sk-canary")

class Plugin:
    @hookimpl
    def openheim_create_provider(self, kind):
        return Given() if kind == "given" else Failing()

plugin = Plugin()
"""


def test_providers_that_cannot_list_models(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    entries = ["given = acme_given:plugin", "failing = acme_given:plugin"]
    make_distribution(site, "acme-given", "1", {"openheim.providers": entries}, {"acme_given": PROVIDER})
    with OpenAIServer() as server:
        openheim.configure(
            f'default_provider = "a"\n[providers.a]\nkind = "given"\napi_base = "{server.base_url}"\n'
            f'[providers.b]\nkind = "given"\n[providers.c]\nkind = "failing"\napi_key = "{KEY}"\n'
        )
        ended = openheim("doctor", "--json", env={"PYTHONPATH": str(site)})
    found = findings(ended)
    assert found["provider a"] == ("ok", "kind given, no key, reached (HTTP 200 without a key)")
    assert found["provider b"] == ("note", "kind given, no key, not tried: it cannot be asked without a prompt")
    assert found["provider c"][0] == "problem"
    assert "its plugin failed: KeyError" in found["provider c"][1]


def test_names_that_match_nothing_are_mentioned(openheim: Command) -> None:
    openheim.configure('[plugins]\ndisable = ["tools.shel"]\n')
    ended = openheim("doctor", "--json")
    assert findings(ended)["plugins"] == ("note", "[plugins] disable: 'tools.shel' matches nothing installed")
    ended = openheim("doctor", "--json", env={"OPENHEIM_PLUGINS": "openheim-core,demo-provider"})
    assert "OPENHEIM_PLUGINS: 'demo-provider' matches nothing installed" in ended.out


def test_a_toolset_that_fails_is_a_problem(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(
        site, "acme-bad", "1", {"openheim.tools": ["bad = acme_bad:plugin"]}, {"acme_bad": "import nosuch"}
    )
    ended = openheim("doctor", "--json", env={"PYTHONPATH": str(site)})
    assert ended.code == 1
    assert "ModuleNotFoundError: nosuch" in findings(ended)["plugins"][1]


EXAMINING = """
from openheim import Finding, hookimpl

class Plugin:
    @hookimpl
    def openheim_examine(self, settings, context):
        return [
            Finding("weather", "ok", "fine"),
            Finding("boundary", "note", str(context.work_dir)),
            Finding("private", "note", ", ".join(map(str, context.private_paths))),
        ]

plugin = Plugin()
"""


def test_a_plugin_adds_to_it_and_a_broken_one_is_a_problem(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(
        site, "acme-weather", "1", {"openheim.plugins": ["weather = weather:plugin"]}, {"weather": EXAMINING}
    )
    key = tmp_path / "the.key"
    key.write_text(KEY)
    openheim.configure(f'[providers.a]\nkind = "demo"\napi_key = {{ file = "{key}" }}\n')
    ended = openheim("doctor", "--json", "--offline", env={"PYTHONPATH": str(site)})
    found = findings(ended)
    assert ended.code == 0, ended.out
    assert found["weather"] == ("ok", "fine")
    assert found["boundary"] == ("note", found["work directory"][1])
    private = found["private"][1].split(", ")
    assert private[0] == found["data folder"][1]
    assert private[1].endswith("config.toml")
    assert private[2] == str(key)
    broken = EXAMINING.replace('Finding("weather", "ok", "fine")', "1 / 0")
    make_distribution(site, "acme-broken", "1", {"openheim.plugins": ["broken = broken:plugin"]}, {"broken": broken})
    ended = openheim("doctor", "--json", "--offline", env={"PYTHONPATH": str(site)})
    assert ended.code == 1
    (problem,) = [finding["detail"] for finding in ended.json if finding["status"] == "problem"]
    assert "acme-broken" in problem
    assert "ZeroDivisionError" in problem
    assert findings(ended)["weather"] == ("ok", "fine")


@pytest.mark.parametrize("columns", [80, 50])
def test_a_narrow_terminal_shows_all_of_it(openheim: Command, columns: int) -> None:
    openheim.configure('[providers.local]\nkind = "openai_compatible"\napi_base = "http://127.0.0.1:9/v1"\n')
    whole = openheim("doctor", "--offline").out
    openheim.environment["COLUMNS"] = str(columns)
    _code, shown = on_terminal(openheim, "doctor", "--offline")
    assert shown.split() == whole.split()
    lines = shown.splitlines()
    long = [line for line in lines if len(line) > columns]
    # Paths are not broken, so that they can be copied.
    assert all("/" in line.split()[-1] for line in long) and len(long) < len(lines) / 3
    if columns == 80:
        start = lines[0].index("DETAIL")
        assert any(line.startswith(" " * start) and line[start] != " " for line in lines)
