"""Laying out the folder of a case from ``tests/cases`` and checking what it expects."""

from __future__ import annotations

import base64
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ("Case", "Outcome", "cases", "check", "lay_out", "put_in", "racing", "tree")

CASES = Path(__file__).parent.parent / "cases"

#: What is checked here, or is said for people (``should``, ``follow_up``) and checked by the runner.
KNOWN = {
    "either",
    "file_b64",
    "files_after",
    "follow_up",
    "loop_stays_alive",
    "message_contains_any",
    "mode_after",
    "never_contains_b64",
    "no_crash",
    "ok",
    "outside_must_not_exist",
    "outside_unchanged",
    "result_bytes",
    "result_contains",
    "result_contains_all",
    "result_contains_any",
    "result_is_valid_utf8",
    "result_not_contains",
    "should",
    "unchanged",
    "within_s",
}


@dataclass(frozen=True)
class Case:
    name: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """``text`` is the result, or the error's text if ``ok`` is False."""

    ok: bool
    text: str


def cases(kind: str) -> Iterator[Case]:
    for path in sorted((CASES / kind).glob("*.json")):
        yield Case(path.stem, json.loads(path.read_text(encoding="utf-8")))


def put_in(value: Any, work: Path, out: Path) -> Any:
    """The value with ``${WORK}`` and ``${OUT}`` replaced in all its texts."""
    if isinstance(value, str):
        return value.replace("${WORK}", str(work)).replace("${OUT}", str(out))
    if isinstance(value, list):
        return [put_in(item, work, out) for item in value]
    if isinstance(value, dict):
        return {key: put_in(item, work, out) for key, item in value.items()}
    return value


def lay_out(case: Case, work: Path, out: Path) -> None:
    for folder in (work, out):
        folder.mkdir(exist_ok=True)
    for step in put_in(case.data["setup"], work, out):
        path = work / step["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        match step["op"]:
            case "file":
                path.write_bytes(_content(step))
            case "dir":
                path.mkdir(exist_ok=True)
            case "symlink":
                path.symlink_to(step["target"])
            case "hardlink":
                os.link(work / step["target"], path)
            case "fifo":
                os.mkfifo(path)
            case unknown:
                raise AssertionError(f"{case.name} has an unknown step: {unknown}")
        if "mode" in step:
            path.chmod(int(step["mode"], 8))


def _content(step: Mapping[str, Any]) -> bytes:
    if "repeat" not in step:
        return base64.b64decode(step["b64"])
    repeat = step["repeat"]
    return base64.b64decode(repeat["b64"]) * repeat["times"] + base64.b64decode(repeat.get("tail_b64", ""))


def tree(folder: Path) -> dict[str, bytes | str]:
    """The content of every file below a folder, and where every link points."""
    found: dict[str, bytes | str] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_symlink():
                found[str(path.relative_to(folder))] = os.readlink(path)
            elif path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def check(
    expect: Mapping[str, Any], outcome: Outcome, before: Mapping[str, bytes | str], work: Path, main_file: str
) -> list[str]:
    """What of ``expect`` does not hold, about the result and the work folder; nothing if all is well."""
    unknown = set(expect) - KNOWN
    assert not unknown, f"nobody checks {unknown}"
    after = tree(work)
    failures = []

    def hold(key: str, value: bool) -> None:
        if not value:
            failures.append(f"{key}: {str(expect[key])[:200]}")

    text = outcome.text
    for key, wanted in expect.items():
        match key:
            case "ok":
                hold(key, outcome.ok is wanted)
            case "unchanged":
                hold(key, after == before)
            case "files_after":
                hold(key, all(after.get(name) == base64.b64decode(data) for name, data in wanted.items()))
            case "file_b64":
                hold(key, after.get(main_file) == base64.b64decode(wanted))
            case "mode_after":
                modes = {name: (work / name).stat().st_mode & 0o7777 for name in wanted}
                hold(key, modes == {name: int(mode, 8) for name, mode in wanted.items()})
            case "never_contains_b64":
                never = base64.b64decode(wanted)
                hold(key, not any(isinstance(data, bytes) and never in data for data in after.values()))
            case "message_contains_any" | "result_contains_any":
                hold(key, any(part.lower() in text.lower() for part in wanted))
            case "result_contains":
                hold(key, wanted in text)
            case "result_contains_all":
                hold(key, all(part in text for part in wanted))
            case "result_not_contains":
                hold(key, wanted not in text)
            case "result_bytes":
                hold(key, wanted[0] <= len(text.encode()) <= wanted[1])
            case "result_is_valid_utf8":
                hold(key, text.encode(errors="replace").decode() == text)
            case "either":
                hold(key, any(not check(one, outcome, before, work, main_file) for one in wanted))
    return failures


@contextmanager
def racing(race: Mapping[str, Any], work: Path) -> Iterator[None]:
    """Swaps a directory and a link for one another in a thread for as long as the block runs."""
    assert race["between"][0] == "directory"
    target = race["between"][1].removeprefix("symlink:")
    name, parked, link = work / race["swap"], work / "parked", work / "link-made"
    ended = threading.Event()

    def take_name(path: Path) -> None:
        while True:
            try:
                os.rename(path, name)
            except OSError:  # A write made a directory while the name was free.
                shutil.rmtree(name, ignore_errors=True)
            else:
                return

    def swap() -> None:
        while not ended.is_set():
            os.symlink(target, link)
            os.rename(name, parked)
            take_name(link)
            os.unlink(name)
            take_name(parked)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)
