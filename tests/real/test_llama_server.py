"""The provider of kind ``openai_compatible`` against llama.cpp's own server, through the command as users run it.

The model is a base model of 270 million parameters, so its words are not judged; the wire is. The server runs in the
environment that ``REAL_LLAMA_VENV`` names (``tests/real/requirements.txt`` is what it holds).
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "openheim-tests"
VENV = Path(os.environ.get("REAL_LLAMA_VENV") or CACHE / "llama")


@contextmanager
def served(*options: str) -> Iterator[str]:
    """The address of a server that lives as long as the context."""
    python = VENV / "bin" / "python"
    if not python.exists():
        pytest.fail(f"no server: python3 -m venv {VENV} && {VENV}/bin/pip install -r {HERE}/requirements.txt")
    command = [python, HERE / "serve_llama.py", VENV / "model", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            ready, _, _ = select.select([server.stdout], [], [], 120)
            address = server.stdout.readline().strip() if ready else ""
            assert address.startswith("http://127.0.0.1:"), "the model server did not start"
            yield address
        finally:
            server.stdin.close()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture(scope="module")
def api_base() -> Iterator[str]:
    """The address of a server that lives as long as this module's tests."""
    with served() as address:
        yield address


@pytest.fixture
def command(api_base: str, own_environment: Path, tmp_path: Path) -> list[str]:
    """``openheim run`` with entries ``llama`` (short answers), ``talker`` (long ones) and ``astray`` (wrong path)."""
    own_environment.mkdir()
    (own_environment / "config.toml").write_text(
        f"""
        [providers.llama]
        kind = "openai_compatible"
        api_base = "{api_base}"
        default_model = "gemma-3-270m"
        max_tokens = 12

        [providers.talker]
        kind = "openai_compatible"
        api_base = "{api_base}"
        default_model = "gemma-3-270m"
        max_tokens = 3000
        # Without it the model may end its answer at once.
        extra_body = {{ ignore_eos = true }}

        [providers.astray]
        kind = "openai_compatible"
        api_base = "{api_base}/nowhere"
        default_model = "gemma-3-270m"
        """
    )
    work = tmp_path / "work"
    work.mkdir()
    return [sys.executable, "-m", "openheim", "run", "--cwd", str(work)]


def run(command: list[str], *arguments: str, prompt: str = "Once upon a time") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], input=prompt, capture_output=True, text=True, timeout=120)


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_an_answer_streams_and_is_counted(command: list[str]) -> None:
    done = run(command, "--provider", "llama", "--output", "stream-json")
    # What a base model says may end by itself or at max_tokens.
    assert done.returncode in (0, 3), done.stderr
    *events, result = lines(done.stdout)
    deltas = [event["text"] for event in events if event["type"] == "text_delta"]
    assert result["type"] == "result"
    assert result["status"] == {0: "completed", 3: "limited"}[done.returncode]
    assert result["error"] is None
    assert "".join(deltas) == result["text"]
    assert result["usage"]["output_tokens"] in range(1, 14)
    assert result["usage"]["input_tokens"] + result["usage"]["cache_read_tokens"] > 10
    if done.returncode == 3:
        assert len(deltas) > 1
        assert result["stop_reason"] == "max_tokens"


def test_the_servers_cache_shows_in_the_counts(command: list[str]) -> None:
    first, second = (
        json.loads(run(command, "--provider", "llama", "--output", "json").stdout)["usage"] for _ in range(2)
    )
    assert second["cache_read_tokens"] > 0
    assert second["input_tokens"] + second["cache_read_tokens"] == first["input_tokens"] + first["cache_read_tokens"]


def test_a_prompt_that_is_too_long_is_told_apart(command: list[str]) -> None:
    done = run(command, "--provider", "llama", "--output", "json", prompt="word " * 8000)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "context_overflow"


def test_a_wrong_path_is_one_line(command: list[str]) -> None:
    done = run(command, "--provider", "astray")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "404" in line or "not found" in line.lower()


def test_cancelling_frees_the_server(command: list[str]) -> None:
    arguments = [*command, "--provider", "talker", "--output", "stream-json", "Once upon a time"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as talking:
        assert talking.stdout is not None
        seen = [json.loads(talking.stdout.readline())]
        while seen[-1]["type"] != "text_delta":
            seen.append(json.loads(talking.stdout.readline()))
        talking.send_signal(signal.SIGINT)
        rest = lines(talking.stdout.read())
        assert talking.wait(30) == 130
    assert rest[-1]["status"] == "cancelled"
    # The server answers one request at a time: it would be busy for minutes if the connection had been left open.
    assert run(command, "--provider", "llama").returncode in (0, 3)


def test_its_models_are_listed(command: list[str], api_base: str) -> None:
    """Through the provider's own interface: no command asks a server for its models."""
    import anyio

    from openheim.http import HttpClient
    from openheim.plugins.host import PluginHost
    from openheim.plugins.policy import PluginPolicy
    from openheim.providers import ProviderSettings

    settings = ProviderSettings("llama", "openai_compatible", api_base, default_model="gemma-3-270m")

    async def names() -> list[str]:
        host, http = PluginHost(PluginPolicy(), report=print), HttpClient()
        provider: Any = host.create_provider("openai_compatible", settings, http)
        try:
            return [model.id for model in await provider.models()]
        finally:
            await http.aclose()

    assert anyio.run(names) == ["gemma-3-270m"]


def test_embeddings() -> None:
    """Through the embedder's own interface. What a base model makes of a text is always the same, and not judged."""
    import anyio

    from openheim.http import HttpClient
    from openheim.plugins.host import PluginHost
    from openheim.plugins.policy import PluginPolicy
    from openheim.providers import ProviderSettings

    async def vectors(address: str) -> list[list[float]]:
        host, http = PluginHost(PluginPolicy(), report=print), HttpClient()
        settings = ProviderSettings("llama", "openai_compatible", address)
        embedder = host.create_embedder("openai_compatible", settings, "gemma-3-270m", http)
        try:
            made = await embedder.embed(["The sea is blue.", "Numbers are odd or even.", "The sea is blue."])
            assert embedder.dimension == len(made[0]) > 100
            return made
        finally:
            await http.aclose()

    with served("--embeddings") as address:
        first, second, third = anyio.run(vectors, address)
    assert len(first) == len(second) == len(third)
    assert first == pytest.approx(third, abs=1e-3)
    assert first != pytest.approx(second, abs=1e-3)
