"""The cases of ``tests/cases/shell``: commands that broke other agents' shell tools."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import ToolError
from tests.tools_shell.calls import Shell, alive

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent.parent / "cases" / "shell"
CASES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
LONGEST_SECS = 30


class Outcome:
    """The parts of a result."""

    def __init__(self, text: str, failed: bool) -> None:
        self.text = text
        body = text
        self.timed_out = failed and "the time limit" in text.splitlines()[0]
        found = re.match(r"the command ended with exit status (\d+)", text) if failed else None
        self.exit = int(found[1]) if found is not None else None if failed else 0
        if failed:
            _, _, body = text.partition("\n")
        body = re.sub(r"\n\[(?:the command left|timeout_secs may)[^\n]*\]$", "\n", body)
        self.stdout, _, self.stderr = body.partition("[stderr]\n")


async def outcome_of(shell: Shell, case: Mapping[str, Any]) -> Outcome:
    within_s = case["expect"].get("within_s", LONGEST_SECS)
    with anyio.fail_after(within_s):
        try:
            return Outcome(await shell(case["command"], timeout_secs=case.get("timeout_s", 120)), failed=False)
        except ToolError as err:
            return Outcome(str(err), failed=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["case"]))
async def test_case(case: Mapping[str, Any], shell: Shell) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = await outcome_of(shell, case)
    for key, wanted in case["expect"].items():
        match key:
            case "within_s":
                pass  # Held while it ran.
            case "exit":
                assert outcome.exit == wanted
            case "stdout":
                assert outcome.stdout == wanted
            case "stdout_contains":
                assert wanted in outcome.stdout
            case "stdout_not_contains":
                assert wanted not in outcome.stdout
            case "stderr_contains":
                assert wanted in outcome.stderr
            case "result_contains_any":
                assert any(part in outcome.text for part in wanted)
            case "timed_out":
                assert outcome.timed_out is wanted
            case "no_process_matching" | "survivors":
                assert alive(shell.mark) == []
            case "stdout_bytes_max":
                assert len(outcome.stdout.encode()) <= wanted
            case "rss_growth_mb_max":
                assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 <= wanted
            case "is_valid_utf8":
                assert outcome.text.encode().decode() == outcome.text
            case unknown:
                raise AssertionError(f"nobody checks {unknown}")
    # What is only advised in the cases holds as well.
    assert alive(shell.mark) == []
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", outcome.text) is None


def test_there_are_cases() -> None:
    assert len(CASES) >= 10
