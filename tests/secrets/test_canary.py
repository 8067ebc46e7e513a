"""A key shows nowhere, whatever a service does with it: no log line, event, error, file of ours or process title."""

from __future__ import annotations

import json
import logging
import ssl
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client
from openheim.cli.run_output import event_record
from openheim.errors import OpenheimError
from openheim.retry import RetryPolicy
from openheim.runtime.model_lists import ask_for_models
from tests.cli.command import Command, finish
from tests.secrets.wires import INSTALLED, WIRES, SpokenWire
from tests.support.replies import Reply, raw
from tests.support.server import Request, ScriptedServer

pytestmark = pytest.mark.anyio

CERTIFICATES = Path(__file__).parent.parent / "wire" / "certificates"
AUTHORITY = str(CERTIFICATES / "ca.pem")

#: Keys of the two entries that are used.
CANARY, OTHER = "canary4f9d02c7b1e85a36", "kanarie81c6e3f0a97d24b5"
#: What the entries' own headers hold: one that says what it is, one that does not but has a key for a value, a cookie.
TOKEN, PLAIN, COOKIE = "kanarek-of-a-gateway", "sk-canari62d8f0b35e9c", "canario/of+a/session"
SECRETS = (CANARY, OTHER, TOKEN, PLAIN, COOKIE)

EXTRA_HEADERS = {"X-Gateway-Token": f"Token {TOKEN}", "X-Tenant": PLAIN, "Cookie": f"theme=dark; session={COOKIE}"}


def quoting(key: str, status: int, **headers: str) -> Reply:
    """A refusal that repeats the key wherever there is room for it."""
    said = f"no luck with {key}"
    details = {"message": said, "type": key, "code": key, "param": said, "metadata": {"raw": said}}
    quoted = {"x-key": key, "www-authenticate": f"Bearer {key}", **headers}
    return raw(json.dumps({"error": details}), status=status, content_type="application/json", headers=quoted)


def page(key: str, status: int) -> Reply:
    return raw(f"<html><title>{key}</title><p>{key}</p></html>", status=status, content_type="text/html")


def stream(*payloads: Any, event: str = "") -> Reply:
    name = f"event: {event}\n" if event else ""
    return raw("".join(f"{name}data: {json.dumps(payload)}\n\n" for payload in payloads))


def plain(key: str, status: int) -> Reply:
    return raw(key, status=status, content_type="text/plain")


STATUSES = (200, 400, 401, 402, 403, 404, 409, 413, 422, 500, 503, 529)

#: What a service does, given the key that it was sent.
FAILURES: dict[str, Callable[[str], Reply]] = {
    **{f"status {status}": partial(quoting, status=status) for status in STATUSES},
    "throttled": lambda key: quoting(key, 429, **{"retry-after": "3600"}),
    "redirect": lambda key: quoting(key, 302, location=f"https://127.0.0.1/?key={key}"),
    "page": lambda key: page(key, 200),
    "page of an error": lambda key: page(key, 502),
    "text": lambda key: plain(key, 200),
    "text of an error": lambda key: plain(key, 403),
    "list of errors": lambda key: raw(
        json.dumps([{"error": {"message": key}}]), status=400, content_type="application/json"
    ),
    "error in the stream": lambda key: stream({"error": {"message": f"no {key}", "code": key}}),
    "named error in the stream": lambda key: stream({"type": "error", "error": {"message": key}}, event="error"),
    "nothing readable": lambda key: raw(f"data: {key}\n\n: {key}\n\n{key}: {key}\n\nevent: {key}\ndata: {{\n\n"),
    "another shape": lambda key: stream({"choices": key, "candidates": [key], "type": key, "content": [key]}),
    "cut": lambda key: raw(f'data: {{"error": {{"message": "{key}'),
    "reset": lambda key: raw(f'data: {{"error": {{"message": "{key}').ending("reset"),
    "stalled": lambda key: raw(f": {key}\n\n").ending("stall"),
    "badly packed": lambda key: raw(key, headers={"content-encoding": "gzip"}),
    "packed with a name of its own": lambda key: raw(b"x", headers={"content-encoding": key}),
    "blocked": lambda key: stream({"promptFeedback": {"blockReason": key, "blockReasonMessage": key}}),
    "no chunk": lambda key: raw(b"x", headers={"content-length": key}),
    "empty": lambda key: raw(b""),
}


def key_of(request: Request) -> str:
    """The key that came with a request; in a header, or there is none."""
    return next(key for key in (CANARY, OTHER) if any(key in value for value in request.headers.values()))


def secrets_of(request: Request) -> str:
    """All secrets that came with a request, as a service would repeat them."""
    return " ".join(key for key in SECRETS if any(key in value for value in request.headers.values()))


class Service(ScriptedServer):
    """A service over TLS, as a key demands, that answers everything in the way that a test sets."""

    def __init__(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem")
        super().__init__(self._answer, tls=context)
        self.answer: Callable[[Request], Reply] = lambda request: raw(b"")

    def _answer(self, request: Request) -> Reply:
        return self.answer(request)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as server:
        yield server


def settings_for(wire: SpokenWire, address: str, timeout_secs: float = 20, **http: str) -> dict[str, Any]:
    entry = {**wire.options, "api_base": f"{address}/v1", "default_model": "m", "timeout_secs": timeout_secs}
    entry["extra_headers"] = EXTRA_HEADERS
    return {
        "default_provider": "first",
        "providers": {
            "first": {**entry, "api_key": CANARY, "fallback": ["second/m"]},
            "second": {**entry, "api_key": OTHER},
        },
        "http": {"proxy": "", "ca_file": AUTHORITY, **http},
    }


def files_below(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path).encode() + b"\n" + path.read_bytes()


def check(where: str, *texts: str | bytes) -> None:
    for text in texts:
        content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        for key in SECRETS:
            assert key.encode() not in content, f"the key shows in {where}: {content[:2000]!r}"


async def run_turn(settings: dict[str, Any], home: Path, caplog: pytest.LogCaptureFixture) -> tuple[Any, list[Any]]:
    """Runs a turn, looks at everything that it left behind, and returns its outcome and events."""
    # As --log-level debug does it: the libraries below log whole headers.
    caplog.set_level(logging.DEBUG, "openheim")
    told: list[str] = []
    events: list[Any] = []
    async with Client(config=False, settings=settings, data_dir=home, report=told.append) as client:
        client.runtime.retry = RetryPolicy(attempts=2, delays=(0.0,))
        session = client.new_session(cwd=home.parent)
        session.stream.attach(events.append)
        with anyio.fail_after(30):
            outcome = await session.run("hi")
        check("a repr", repr(client.runtime.loaded), repr(session), repr(session.binding.provider), repr(outcome))
        try:
            await ask_for_models(session.binding.provider, "first")
        except OpenheimError as err:
            check("an error about models", *traceback.format_exception(err), repr(err), str(err.to_dict()))
        check("an export", await client.export_markdown(session.id), str(await client.export_json(session.id)))
        await client.search("hi")  # makes the index
    check("an event", *map(repr, events), *(json.dumps(event_record(event)) for event in events))
    check("a log", caplog.text, *(str(record.__dict__) for record in caplog.records))
    check("what is told", *told)
    check("a file", *files_below(home))
    if outcome.error is not None:
        check("an error", *traceback.format_exception(outcome.error), repr(outcome.error), str(vars(outcome.error)))
    return outcome, events


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_a_service_that_fails(
    wire: SpokenWire, failure: str, service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service.answer = lambda request: FAILURES[failure](secrets_of(request))
    before = len(service.requests)
    settings = settings_for(wire, service.url, timeout_secs=0.5 if failure == "stalled" else 20)
    outcome, _events = await run_turn(settings, tmp_path / "home", caplog)
    sent = service.requests[before:]
    assert outcome.error is not None or failure in ("empty", "another shape", "blocked")
    # The key did go to the service, so that there was something to hide.
    assert CANARY in map(key_of, sent)
    assert all(secrets_of(request).split()[1:] == [TOKEN, PLAIN, COOKIE] for request in sent)
    check("an address or a body", *(request.path for request in sent), *(request.body for request in sent))


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_a_service_that_answers(
    wire: SpokenWire, service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service.answer = lambda request: wire.good("hello").with_headers({"x-key": secrets_of(request)})
    outcome, _events = await run_turn(settings_for(wire, service.url), tmp_path / "home", caplog)
    assert outcome.text == "hello"


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_a_service_that_cannot_be_reached(
    wire: SpokenWire, service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = settings_for(wire, "https://127.0.0.1:9")
    stranger = settings_for(wire, service.url, ca_file="")
    proxied = settings_for(wire, service.url, proxy=f"http://user:{CANARY}@127.0.0.1:9")
    for number, settings in enumerate((nobody, stranger, proxied)):
        outcome, events = await run_turn(settings, tmp_path / f"home{number}", caplog)
        assert outcome.error is not None and outcome.error.kind == "connection"
        assert [event.provider for event in events if event.type == "model_fallback"] == ["second"]


def test_every_installed_provider_is_tried() -> None:
    assert INSTALLED and {wire.kind for wire in WIRES} == set(INSTALLED), "add its wire to tests/secrets/wires.py"


def configured(openheim: Command, wire: SpokenWire, service: Service) -> None:
    options = "\n".join(f'{name} = "{value}"' for name, value in wire.options.items())
    entry = f'{options}\napi_base = "{service.url}/v1"\ndefault_model = "m"'
    headers = ", ".join(f'{name} = "{value}"' for name, value in EXTRA_HEADERS.items())
    entry += f"\nextra_headers = {{ {headers} }}"
    openheim.configure(
        f'default_provider = "first"\n[http]\nproxy = ""\nca_file = "{AUTHORITY}"\n'
        f'[providers.first]\n{entry}\napi_key = "{CANARY}"\nfallback = ["second/m"]\n'
        f'[providers.second]\n{entry}\napi_key = "{OTHER}"\n'
    )


@pytest.mark.parametrize("wire", WIRES, ids=str)
def test_a_running_command(wire: SpokenWire, service: Service, openheim: Command) -> None:
    """Its title while it runs, and all that it prints and leaves behind, at the most talkative level."""
    configured(openheim, wire, service)
    before = len(service.requests)
    service.answer = lambda request: wire.good("hello").hold()
    process = openheim.start("--log-level", "debug", "--debug", "run", "--output", "stream-json", "hi")
    service.wait_requests(before + 1)
    for part in ("cmdline", "comm", "status", "stat"):
        check("the process's title", Path(f"/proc/{process.pid}/{part}").read_bytes())
    service.release()
    ended = finish(process)
    assert ended.code == 0
    check("what it prints", ended.out, ended.err)
    service.answer = lambda request: quoting(secrets_of(request), 401)
    commands: list[list[str]] = [
        ["run", "--output", "json", "hi"],
        ["models", "--refresh"],
        ["doctor"],
        ["config", "show", "--json"],
        ["sessions", "list", "--json", "--full"],
    ]
    for command in commands:
        shown = openheim("--log-level", "debug", "--debug", *command)
        check(f"what {command[0]} prints", shown.out, shown.err)
    (openheim.home / "config.toml").unlink()
    check("a file", *files_below(openheim.home))
