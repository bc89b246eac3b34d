"""What a check of many nights finds of planted changes, and what it costs for a large fleet.

    python benchmarks/history.py [--part found|drifts|dates|alarms|cost] [--first 1] [-o FILE]

- ``found``: 100 nodes × 60 nights, each with a loss of 5 % on one path, in a night of its own. The
  history is made with the nights until three nights show the loss, and again with all.
- ``alarms``: ``--alarm-nodes`` nodes (500) × 60 nights without a change, under the noise of quiet
  and of busy kept profiles, after each night.
- ``drifts``: 100 nodes × 60 nights, one path of each 1 % a week slower.
- ``dates``: series of eight equal paths with normal noise, 4 to 30 nights before a loss on one of
  them and 3 to 10 after it: how many are dated at the first night that shows it.
- ``cost``: files of ``--nodes`` nodes × 60 nights, copies of kept profiles of two GPUs with other
  names, GPUs and dates: what a check costs without a data set, the export that makes it, and a
  check with it; with the runs of a night in files of their own; and one more night of twice as many
  nodes; with ``--former``, what a check cost before, on the same files. Each command has two CPUs.

Noise is 1 % between nights beside that of the kept profiles (tests/analysis/history). Every number
but the costs follows from the seeds, which begin at ``--first``.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
from scipy.special import gammaincinv

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from command_cost import DECIDED, CommandCost, command_cost, waywiser_command  # noqa: E402

from analysis.history.planted_nights import (  # noqa: E402
    BUSY,
    H2D,
    QUIET,
    drift,
    moment,
    planted,
    step,
)
from kept import RESULTS, unpacked  # noqa: E402
from waywiser.analysis.history.history import (  # noqa: E402
    NightsOfPath,
    PathHistory,
    path_histories,
    path_nights,
)
from waywiser.analysis.history.night import Night  # noqa: E402
from waywiser.analysis.history.nodes import named_nodes, nodes_of  # noqa: E402
from waywiser.profile import Profile, writing  # noqa: E402
from waywiser.stats.decision import THRESHOLD  # noqa: E402
from waywiser.stats.level_changes import SeriesOfNights, fit_series  # noqa: E402

NIGHTS = 60
NODES = 100
LOSS = 0.95
SHOWN = 2, 3, 4
ALARM_NODES = 500
KEPT = {"quiet": QUIET, "busy": BUSY}
FROM = 8
"""The first night after which false alarms are looked for: with fewer nothing is said."""
COST_NODES = 400
REPEATS = 3
"""Repetitions of a check whose wall time is of interest."""
TEMPLATES = [RESULTS / "2026-11-22-check-two-gpus" / f"check-{n}.wwp.xz" for n in range(1, 6)]

DATED = 6
"""Series of the part dates for each number of nights before and after."""


def found_changes(first: int) -> Iterator[str]:
    """Rows of a table: how many losses are found after how many nights, and their dates."""
    at = {f"n{n:03}": 10 + n * 47 // NODES for n in range(NODES)}
    lines = _lines(
        planted(name, NIGHTS, first * 10_000 + n, change=step(night, LOSS))
        for n, (name, night) in enumerate(at.items())
    )
    yield "| nights that show the loss | found | date within one night | other paths changed |"
    yield "|---|---|---|---|"
    for shown in SHOWN:
        found: Counter[str] = Counter()
        for look in sorted(set(at.values())):
            now = {name for name, night in at.items() if night == look}
            paths = path_histories([line.first_nights(look + shown) for line in lines])
            found += _found(paths, {name: at[name] for name in now})
        yield f"| {shown} | {_cells(found)} |"
    yield f"| all of {NIGHTS} | {_cells(_found(path_histories(lines), at))} |"


def _lines(surveys: Iterable[list[Night]]) -> list[NightsOfPath]:
    nodes, _ = nodes_of(night for own in surveys for night in own)
    return path_nights(named_nodes(nodes))


def _found(paths: Sequence[PathHistory], at: Mapping[str, int]) -> Counter[str]:
    """What is found of nodes with a loss, in these nights."""
    found: Counter[str] = Counter()
    for path in paths:
        if path.node not in at:
            continue
        losses = [each for each in path.changes if each.confirmed and each.ratio < 1]
        if path.path != H2D:
            found["others"] += bool(losses)
        elif losses:
            near = {moment(at[path.node] + n)[:10] for n in (-1, 0, 1)}
            found["right"] += 1
            found["dated"] += losses[-1].date[:10] in near
    return found


def _cells(found: Counter[str]) -> str:
    return f"{found['right']} of {NODES} | {found['dated']} | {found['others']}"


def false_alarms(first: int, nodes: int, names: Sequence[str]) -> Iterator[str]:
    """Rows: what is said of nodes without a change, after each night."""
    yield (
        "| noise of | node-nights | path-nights | confirmed steps | of these losses "
        "| confirmed drifts | nights on which a path is suspected | at most a confirmed change in "
        "so many node-nights (95 %) |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name in names:
        lines = _lines(
            planted(f"n{n:03}", NIGHTS, first * 10_000 + 5_000 + n, kept=KEPT[name])
            for n in range(nodes)
        )
        steps: dict[tuple[str, str, str], float] = {}
        drifting = set()
        suspected = 0
        for nights in range(FROM, NIGHTS + 1):
            for path in path_histories([line.first_nights(nights) for line in lines]):
                for change in path.changes:
                    place = path.node, path.path, change.date[:10]
                    if not change.confirmed:
                        suspected += 1
                    elif change.kind == "step":
                        steps.setdefault(place, change.ratio)
                    else:
                        drifting.add(place[:2])
        losses = sum(ratio < 1 for ratio in steps.values())
        most = gammaincinv(len(steps) + len(drifting) + 1, 0.95)
        yield (
            f"| {name} profiles | {nodes * NIGHTS:,} | {len(lines) * NIGHTS:,} | {len(steps)} "
            f"| {losses} | {len(drifting)} | {suspected} | {nodes * NIGHTS / most:,.0f} |"
        )


def drifts(first: int) -> Iterator[str]:
    """Rows: what a drift of 1 % a week is called, after how many nights."""
    lines = _lines(
        planted(f"n{n:03}", NIGHTS, first * 10_000 + 9_000 + n, change=drift(-0.01))
        for n in range(NODES)
    )
    yield "| nights | drift | step | suspected only | nothing | % a week, mean |"
    yield "|---|---|---|---|---|---|"
    for nights in (28, 35, 42, 60):
        named: Counter[str] = Counter()
        slopes = []
        for path in path_histories([line.first_nights(nights) for line in lines]):
            if path.path != H2D:
                continue
            kinds = [c.kind if c.confirmed else "suspected" for c in path.changes]
            slopes += [c.per_week for c in path.changes if c.kind == "drift"]
            named[next((k for k in ("drift", "step", "suspected") if k in kinds), "nothing")] += 1
        mean = f"{100 * sum(slopes) / len(slopes):.2f}" if slopes else ""
        cells = (named[each] for each in ("drift", "step", "suspected", "nothing"))
        yield f"| {nights} | {' | '.join(map(str, cells))} | {mean} |"


def dates(first: int) -> Iterator[str]:
    """How changes of five deviations of a night and more are dated, `DATED` series for each number
    of nights before and after."""
    yield "| loss, deviations of a night | series | dated exactly | one night off | other | none |"
    yield "|---|---|---|---|---|---|"
    for size in (5, 6, 8):
        rng = np.random.default_rng(first + size)
        found: Counter[str] = Counter()
        for before, after in product(range(4, 31), range(3, 11)):
            for _ in range(DATED):
                rows = rng.normal(0, 0.01, (8, before + after))
                rows[0, before:] -= size * 0.01
                days, surveys = np.arange(float(before + after)), np.ones(before + after, int)
                series = SeriesOfNights(rows, days, surveys, [""] * len(rows))
                fit = fit_series([series], THRESHOLD)[0]
                off = [abs(each.start - before) for each in fit.changes] if fit else []
                names = {0: "exact", 1: "one"}
                many = names.get(off[0], "other") if len(off) == 1 else "other"
                found[many if off else "none"] += 1
        cells = " | ".join(str(found[name]) for name in ("exact", "one", "other", "none"))
        yield f"| {size} | {found.total()} | {cells} |"


def costs(first: int, nodes: int, former: Path | None) -> Iterator[str]:
    """Rows: what the command costs on files; before it, what a check cost by ``former`` code."""
    with tempfile.TemporaryDirectory(prefix="waywiser-history-") as temporary:
        folder = Path(temporary) / "nodes"
        folder.mkdir()
        write_fleet(folder, nodes, NIGHTS, first)
        yield "| command | profiles read | CPU s | wall s | sum, MiB | exit code |"
        yield "|---|---|---|---|---|---|"
        everything = nodes * NIGHTS
        export = "export", folder, "--format", "parquet"
        if former is not None:
            check = waywiser_command("check", folder)
            for number in range(1, REPEATS + 1):
                found = command_cost(check, DECIDED, former)
                yield _row(f"former check, {number}", everything if number == 1 else 0, found)
        yield _cost("check without a data set", everything, "check", folder, "--json")
        yield _cost("first export", everything, *export)
        for number in range(1, REPEATS + 1):
            yield _cost(f"check with a data set, {number}", 0, "check", folder)
        page = folder.with_name("page.html")
        yield _cost("with JSON and a page", 0, "check", folder, "--json", "--page", page)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        rows = _unpack_last_day(folder)
        for number in range(1, REPEATS + 1):
            yield _cost(
                f"check with {rows} runs in files of their own, {number}", 0, "check", folder
            )
        yield _cost("packing them", 0, *export)
        write_fleet(folder, 2 * nodes, 1, first + 1, "m")
        yield _cost(f"check with {2 * nodes} more profiles", 2 * nodes, "check", folder)
        yield _cost("export of these", 2 * nodes, *export)
        yield ""
        yield f"The data set has {size / 1e6:.2f} MB, the page {page.stat().st_size / 1e6:.1f} MB."


def _unpack_last_day(folder: Path) -> int:
    """Writes the runs of the last day into files of their own, and returns how many these are."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from waywiser.analysis.dataset.files import write_table

    day = max(folder.glob("day=*"))
    (packed,) = day.glob("*.parquet")
    table = pq.read_table(packed, partitioning=None)
    runs = table["run"].unique().to_pylist()
    for run in runs:
        own = table.filter(pc.equal(table["run"], run))
        write_table(own, day / f"{own['host'][0]}-{run}.parquet")
    packed.unlink()
    return len(runs)


def write_fleet(folder: Path, nodes: int, nights: int, first: int, name: str = "n") -> None:
    """Profiles of many nodes: the kept ones with other names, which begin with ``name``, GPUs and
    days."""
    with tempfile.TemporaryDirectory() as temporary:
        templates = [unpacked(each, Path(temporary) / each.stem) for each in TEMPLATES]
        with Profile.open(templates[0]) as profile:
            machine = profile.machine
            last = datetime.fromisoformat(profile.created)
        for n in range(nodes):
            rng = random.Random(f"{first} {n}")
            host = f"{name}{n:03}"
            gpus = tuple(
                msgspec.structs.replace(gpu, uuid=f"GPU-{host}-{gpu.index}") for gpu in machine.gpus
            )
            own = msgspec.structs.replace(machine, hostname=host, gpus=gpus)
            for night in range(nights):
                path = folder / f"{host}-{night:02}.wwp"
                shutil.copyfile(rng.choice(templates), path)
                began = last - timedelta(days=nights - night)
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    connection.execute("PRAGMA synchronous = OFF")
                    connection.execute("BEGIN")
                    writing.put_machine(connection, own)
                    moment = began.isoformat(timespec="milliseconds")
                    for row in (("hostname", host), ("created", moment)):
                        writing.put(connection, "meta", row)
                    connection.execute("COMMIT")


def _cost(name: str, read: int, *words: str | Path) -> str:
    """The cost of the command and of its processes."""
    return _row(name, read, command_cost(waywiser_command(*words), DECIDED))


def _row(name: str, read: int, found: CommandCost) -> str:
    return (
        f"| {name} | {read:,} | {found.cpu_seconds:.1f} | {found.wall_seconds:.1f} "
        f"| {found.most_mib:.0f} | {found.exit_code} |"
    )


PARTS: dict[str, tuple[str, Callable[[int], Iterator[str]]]] = {
    "found": (f"A loss of 5 % on one path of each of {NODES} nodes", found_changes),
    "drifts": ("A path of each node 1 % a week slower", drifts),
    "dates": ("When a loss begins", dates),
}


def main(arguments: Sequence[str] | None = None) -> None:
    words = argparse.ArgumentParser(
        description="What a check of many nights finds, and what it costs."
    )
    words.add_argument("--part", choices=[*PARTS, "alarms", "cost"], action="append")
    words.add_argument("--nodes", type=int, default=COST_NODES, help="of the part cost")
    words.add_argument(
        "--former", type=Path, help="the python folder of former code, for the part cost"
    )
    words.add_argument("--alarm-nodes", type=int, default=ALARM_NODES, help="of the part alarms")
    words.add_argument("--first", type=int, default=1)
    words.add_argument("--noise", choices=KEPT, action="append", help="of the part alarms")
    words.add_argument("-o", "--output", type=Path)
    given = words.parse_args(arguments)
    lines = [f"Seeds from {given.first}; {os.cpu_count()} CPUs, {platform.machine()}.", ""]
    for part in given.part or [*PARTS, "alarms", "cost"]:
        if part == "alarms":
            lines += ["## Nodes without a change, looked at after each night", ""]
            lines += [*false_alarms(given.first, given.alarm_nodes, given.noise or [*KEPT]), ""]
            continue
        if part == "cost":
            title = f"{given.nodes} nodes × {NIGHTS} nights as files"
            lines += [f"## {title}", "", *costs(given.first, given.nodes, given.former), ""]
            continue
        title, rows = PARTS[part]
        lines += [f"## {title}", "", *rows(given.first), ""]
    text = "\n".join(lines).rstrip() + "\n"
    if given.output:
        given.output.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
