"""Openheim as a library, beside a raw socket and bare httpx doing the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.benchmarks.measure import Row, child_environment, interleaved, median, run_subject
from tests.benchmarks.subject import LOOPS
from tests.benchmarks.wires import WIRES

SUBJECTS = ("raw", "httpx", "openheim")


def library_rows(port: int, scratch: Path, rounds: int) -> list[Row]:
    home = scratch / "library-home"
    home.mkdir()
    environment = child_environment(OPENHEIM_HOME=str(home))
    root = Path(__file__).parents[2]

    def figures(work: str, figure: str, *more: str) -> dict[str, dict[str, float]]:
        """Medians of a kind of work: figure -> subject -> value."""
        subjects = {
            name: partial(run_subject, "subject", name, work, str(port), environment=environment, cwd=root)
            for name in SUBJECTS
        }
        results = interleaved(subjects, rounds)
        return {
            key: {name: median(result[key] for result in results[name]) for name in SUBJECTS} for key in (figure, *more)
        }

    rows: list[Row] = []

    def compare(name: str, of: dict[str, float], unit: str, floor: str, limit: float | None = None) -> None:
        """A row whose budget is a multiple of the floor."""
        floor_name = {"raw": "raw socket"}.get(floor, floor)
        rows.append(Row(name, of["openheim"], unit, of[floor], floor_name, limit, relative=limit is not None))

    turn = figures("turn", "wall_us", "cpu_us")
    compare("warm turn", turn["wall_us"], "µs", "httpx", 1.1)
    compare("warm turn", turn["wall_us"], "µs", "raw")
    compare("warm turn, CPU", turn["cpu_us"], "µs", "httpx")

    per_round = {count: figures(f"loop{count}", "ms_per_round")["ms_per_round"] for count in LOOPS}
    for count, of in per_round.items():
        compare(f"tool round in a loop of {count:,}", of, "ms", "raw", 5.0 if count == 100 else None)
    short, long = (per_round[count]["openheim"] for count in (100, 1000))
    rows.append(Row("tool round at 1,000 against 100", long, "ms", short, "at 100", 2.0, relative=True))

    # As model servers send them, and joined by a proxy or a slow reader.
    for work, name in (("drip", "streamed delta, CPU"), ("stream", "streamed delta in joined chunks, CPU")):
        delta = figures(work, "cpu_us_per_delta")["cpu_us_per_delta"]
        compare(name, delta, "µs", "raw", 4.0)
        compare(name, delta, "µs", "httpx")

    many = figures("sessions", "wall_ms", "kib_per_session")
    compare("1,000 sessions, 20 deltas", many["wall_ms"], "ms", "raw", 8.0)
    compare("1,000 sessions, 20 deltas", many["wall_ms"], "ms", "httpx")
    kib = many["kib_per_session"]
    rows.append(Row("memory of a session", kib["openheim"], "KiB", kib["raw"], "raw socket", 60))
    return rows


def wire_rows(port: int, scratch: Path, rounds: int) -> list[Row]:
    """The same on each of the other wires, beside the floors of Chat Completions."""
    home = scratch / "wires-home"
    home.mkdir()
    environment = child_environment(OPENHEIM_HOME=str(home))
    root = Path(__file__).parents[2]
    wires = [wire for wire in WIRES if wire != "chat"]
    names = [*SUBJECTS[:2], *(f"openheim:{wire}" for wire in wires)]
    rows: list[Row] = []
    rounds_of: dict[str, dict[str, float]] = {}
    for work, figure, what, unit, floor, limit in (
        ("turn", "wall_us", "warm turn", "µs", "httpx", 1.1),
        ("loop100", "ms_per_round", "tool round in a loop of 100", "ms", "raw", 5.0),
        ("loop1000", "ms_per_round", "tool round in a loop of 1,000", "ms", "raw", None),
        ("drip", "cpu_us_per_delta", "streamed delta, CPU", "µs", "raw", 4.0),
        ("sessions", "wall_ms", "1,000 sessions, 20 deltas", "ms", "raw", 8.0),
    ):
        results = interleaved(
            {
                name: partial(run_subject, "subject", name, work, str(port), environment=environment, cwd=root)
                for name in names
            },
            rounds,
        )
        of = rounds_of[work] = {name: median(result[figure] for result in results[name]) for name in names}
        floor_name = "raw socket" if floor == "raw" else floor
        rows += [
            Row(f"{wire}: {what}", of[f"openheim:{wire}"], unit, of[floor], floor_name, limit, limit is not None)
            for wire in wires
        ]
    for wire in wires:
        short, long = (rounds_of[work][f"openheim:{wire}"] for work in ("loop100", "loop1000"))
        rows.append(Row(f"{wire}: tool round at 1,000 against 100", long, "ms", short, "at 100", 2.0, relative=True))
    return rows
