"""Whole processes: start-up of the command, and one prompt answered by a loopback server."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from tests.benchmarks.measure import Row, Run, child_environment, interleaved, median, run_process

IDLE_PLUGINS = 30


def command_rows(port: int, scratch: Path, rounds: int) -> list[Row]:
    """Rows of wall time and peak memory of ``openheim`` commands."""
    openheim = str(Path(sys.executable).with_name("openheim"))
    home = scratch / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'default_provider = "mock"\n[providers.mock]\nkind = "openai_compatible"\n'
        f'api_base = "http://127.0.0.1:{port}/turn/v1"\ndefault_model = "mock"\n'
    )
    plain = child_environment(OPENHEIM_HOME=str(home))
    crowded = plain | {"PYTHONPATH": str(idle_plugins(scratch / "plugins"))}
    work = scratch / "work"
    work.mkdir()
    floor = str(Path(__file__).with_name("oneshot_floor.py"))

    def process(*command: str, environment: dict[str, str] = plain) -> partial[Run]:
        return partial(run_process, list(command), environment, work)

    runs: dict[str, list[Run]] = interleaved(
        {
            "python": process(sys.executable, "-c", "pass"),
            "import": process(sys.executable, "-c", "import openheim"),
            "version": process(openheim, "--version"),
            "help": process(openheim, "--help"),
            "list": process(openheim, "plugins", "list", environment=crowded),
            "floor": process(sys.executable, floor, str(port), "/turn/v1/chat/completions"),
            "run": process(openheim, "run", "hi"),
        },
        rounds,
    )
    wall = {name: median(run.wall_ms for run in group) for name, group in runs.items()}
    cpu = {name: median(run.cpu_ms for run in group) for name, group in runs.items()}
    peak = {name: median(run.peak_mib for run in group) for name, group in runs.items()}

    def start(name: str, subject: str, limit: float | None) -> Row:
        return Row(name, wall[subject], "ms", wall["python"], "python -c pass", limit)

    return [
        start("import openheim", "import", None),
        start("openheim --version", "version", 60),
        start("openheim --help", "help", 90),
        start(f"openheim plugins list, {IDLE_PLUGINS} idle plugins", "list", 90),
        Row("openheim run hi, wall", wall["run"], "ms", wall["floor"], "socket script", 250),
        Row("openheim run hi, CPU", cpu["run"], "ms", cpu["floor"], "socket script"),
        Row("openheim run hi, peak memory", peak["run"], "MiB", peak["floor"], "socket script", 50),
    ]


def idle_plugins(folder: Path) -> Path:
    """A folder for PYTHONPATH that holds installed plugins, which nobody uses."""
    for number in range(IDLE_PLUGINS):
        name = f"idle_plugin_{number}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{name}.py").write_text("raise SystemExit('an idle plugin was imported')\n")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\nSummary: Does nothing.\n"
            "Requires-Dist: openheim-core>=0.1\n"
        )
        (info / "entry_points.txt").write_text(f"[openheim.tools]\n{name} = {name}\n")
    return folder
