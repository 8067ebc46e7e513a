"""Measures what openheim promises about speed, and prints one table.

``python -m tests.benchmarks`` in the root of the checkout, with the interpreter of the environment to be measured.
Every figure stands beside a floor that was measured in the same run, turn and turn about: quote the ratios, since the
times belong to the machine and to whatever else it was doing. Nothing here fails on a slow machine; ``--check`` exits
with 1 when a budget is exceeded.
"""

from __future__ import annotations

import argparse
import compileall
import json
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.commands import command_rows
from tests.benchmarks.library_rows import library_rows, wire_rows
from tests.benchmarks.measure import Row
from tests.benchmarks.mock import running_mock
from tests.benchmarks.search_rows import search_rows
from tests.benchmarks.store_rows import store_rows

GROUPS = ("commands", "library", "wires", "store", "search")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all when none is named")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of whole processes; a third for the rest")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE as well")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a budget is exceeded")
    options = parser.parse_args()
    groups = options.groups or GROUPS
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))} (choose from {', '.join(GROUPS)})")

    compile_everything()
    rows: list[Row] = []
    few = max(1, options.rounds // 3)
    with tempfile.TemporaryDirectory(prefix="openheim-benchmarks-") as folder, running_mock() as port:
        scratch = Path(folder)
        if "commands" in groups:
            rows += command_rows(port, scratch, options.rounds)
        if "library" in groups:
            rows += library_rows(port, scratch, few)
        if "wires" in groups:
            rows += wire_rows(port, scratch, few)
        if "store" in groups:
            rows += store_rows(scratch, few)
        if "search" in groups:
            rows += search_rows(scratch, options.rounds)
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps([row.to_dict() for row in rows], indent=2) + "\n")
    exceeded = [row.name for row in rows if row.within is False]
    print(f"\n{len(exceeded)} of {sum(row.within is not None for row in rows)} budgets exceeded")
    return 1 if options.check and exceeded else 0


def compile_everything() -> None:
    """Makes the byte code that an installer leaves behind, so that no subject pays for compiling."""
    spec = find_spec("openheim")
    if spec is None or spec.origin is None:
        raise SystemExit("openheim is not installed in this environment")
    places = {Path(sysconfig.get_path("purelib")), Path(spec.origin).parent, Path(__file__).parent}
    for place in sorted(places):
        compileall.compile_dir(place, quiet=2)


def table(rows: list[Row]) -> str:
    head = ("what", "openheim", "floor", "ratio", "budget", "")
    lines = [head, *[cells(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    left = (0, 5)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def cells(row: Row) -> tuple[str, ...]:
    floor = f"{number(row.floor)} {row.floor_name}" if row.floor else ""
    ratio = f"{row.ratio:.2f}" if row.ratio else ""
    budget = "" if row.limit is None else f"{row.limit:g} x" if row.relative else f"{row.limit:g} {row.unit}"
    verdict = {True: "", False: "exceeded", None: ""}[row.within]
    return row.name, f"{number(row.value)} {row.unit}", floor, ratio, budget, verdict


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
