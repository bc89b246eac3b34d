"""What `waywiser history` finds of planted changes, and what it costs for a large fleet.

    python benchmarks/history.py [--part found|alarms|drifts|cost] [--first 1] [-o FILE.md]

- ``found``: 100 nodes × 60 nights, each with a loss of 5 % on one path, in a night of its own. The
  history is made with the nights until three nights show the loss, and again with all.
- ``alarms``: 500 nodes × 60 nights without a change, under the noise of quiet and of busy kept
  profiles, after each night.
- ``drifts``: 100 nodes × 60 nights, one path of each 1 % a week slower.
- ``cost``: files of 400 nodes × 60 nights, copies of a kept profile with other times, names, GPUs
  and dates: CPU seconds and memory of the command, without an index, with one, and after one more
  night.

Noise is 1 % between nights beside that of the kept profiles (tests/analysis/history). Every number
but the costs follows from the seeds, which begin at ``--first``.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

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
from waywiser.analysis.history.history import History, PathHistory, history_of  # noqa: E402
from waywiser.analysis.history.night import Night  # noqa: E402
from waywiser.profile import Profile, WritableProfile  # noqa: E402

NIGHTS = 60
NODES = 100
LOSS = 0.95
ALARM_NODES = 500
FROM = 8
"""The first night after which false alarms are looked for: with fewer nothing is said."""
COST_NODES = 400
TEMPLATE = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"


def _line(found: History, node: str) -> PathHistory:
    return next(each for each in found.paths if (each.node, each.path) == (node, H2D))


def found_changes(first: int) -> Iterator[str]:
    """Rows of a table: how many losses are found after how many nights, and their dates."""
    at = {f"n{n:03}": 10 + n * 47 // NODES for n in range(NODES)}
    surveys = {
        name: planted(name, NIGHTS, first * 10_000 + n, change=step(night, LOSS))
        for n, (name, night) in enumerate(at.items())
    }
    yield "| nights that show the loss | found | date within one night | other paths changed |"
    yield "|---|---|---|---|"
    for shown in (2, 3, 4, 5):
        right = dated = others = 0
        for night in sorted(set(at.values())):
            history = history_of(_until(surveys.values(), night + shown))
            for name in (name for name, own in at.items() if own == night):
                path = _line(history, name)
                losses = [each for each in path.changes if each.confirmed and each.ratio < 1]
                right += bool(losses)
                near = {moment(night + n)[:10] for n in (-1, 0, 1)}
                dated += bool(losses) and losses[-1].date[:10] in near
                others += sum(p.node == name and p.path != H2D for p in history.of("slower"))
        yield f"| {shown} | {right} of {NODES} | {dated} | {others} |"
    history = history_of(_until(surveys.values(), NIGHTS))
    right = sum(_line(history, name).status == "slower" for name in at)
    near = sum(
        any(
            change.date[:10] in {moment(night + n)[:10] for n in (-1, 0, 1)}
            for change in _line(history, name).changes
        )
        for name, night in at.items()
    )
    others = sum(path.path != H2D for path in history.of("slower", "changed"))
    yield f"| all {NIGHTS} nights of all nodes | {right} of {NODES} | {near} | {others} |"


def _until(surveys: object, nights: int) -> list[Night]:
    return [each for own in surveys for each in own[:nights]]  # type: ignore[attr-defined]


def false_alarms(first: int) -> Iterator[str]:
    """Rows: what is said of nodes without a change, after each night."""
    yield "| noise of | node-nights | path-nights | confirmed changes | drifts | suspected |"
    yield "|---|---|---|---|---|---|"
    for name, kept in (("quiet profiles", QUIET), ("busy profiles", BUSY)):
        surveys = [
            planted(f"n{n:03}", NIGHTS, first * 10_000 + 5_000 + n, kept=kept)
            for n in range(ALARM_NODES)
        ]
        said: Counter[str] = Counter()
        steps: set[tuple[str, str, str]] = set()
        lines = 0
        for nights in range(FROM, NIGHTS + 1):
            history = history_of(_until(surveys, nights))
            lines = len(history.paths)
            for path in history.paths:
                for change in path.changes:
                    kind = change.kind if change.confirmed else "suspected"
                    said[kind] += 1
                    if kind == "step":
                        steps.add((path.node, path.path, change.date[:10]))
        yield (
            f"| {name} | {ALARM_NODES * NIGHTS:,} | {lines * NIGHTS:,} | {len(steps)} "
            f"| {said['drift']} | {said['suspected']} |"
        )


def drifts(first: int) -> Iterator[str]:
    """Rows: what a drift of 1 % a week is called, after how many nights."""
    surveys = [
        planted(f"n{n:03}", NIGHTS, first * 10_000 + 9_000 + n, change=drift(-0.01))
        for n in range(NODES)
    ]
    yield "| nights | drift | step | suspected only | nothing | % a week, mean |"
    yield "|---|---|---|---|---|---|"
    for nights in (28, 35, 42, 60):
        history = history_of(_until(surveys, nights))
        named: Counter[str] = Counter()
        slopes = []
        for n in range(NODES):
            changes = _line(history, f"n{n:03}").changes
            kinds = [c.kind if c.confirmed else "suspected" for c in changes]
            slopes += [c.per_week for c in changes if c.kind == "drift"]
            named[next((k for k in ("drift", "step", "suspected") if k in kinds), "nothing")] += 1
        mean = f"{100 * sum(slopes) / len(slopes):.2f}" if slopes else ""
        cells = (named[each] for each in ("drift", "step", "suspected", "nothing"))
        yield f"| {nights} | {' | '.join(map(str, cells))} | {mean} |"


def costs(first: int) -> Iterator[str]:
    """Rows: what the command costs on files."""
    with tempfile.TemporaryDirectory(prefix="waywiser-history-") as temporary:
        folder = Path(temporary) / "nodes"
        folder.mkdir()
        write_fleet(folder, COST_NODES, NIGHTS, first)
        yield "| command | profiles read | CPU s | largest process, MiB | sum, MiB | exit code |"
        yield "|---|---|---|---|---|---|"
        everything = COST_NODES * NIGHTS
        yield _cost("without an index", everything, folder)
        time.sleep(3)
        index = folder.with_name("nodes.history")
        yield _cost("with an index", 0, folder)
        size = index.stat().st_size / 2**20
        for path in sorted(folder.glob("*-59.wwp")):
            os.utime(path)
        yield _cost("after one more night", COST_NODES, folder)
        yield _cost("with a page", 0, folder, "--page", str(folder.with_name("page.html")))
        page = folder.with_name("page.html").stat().st_size / 1e6
        yield ""
        yield f"The index has {size:.1f} MiB, the page {page:.1f} MB."


def write_fleet(folder: Path, nodes: int, nights: int, first: int) -> None:
    """Profiles of many nodes: the kept one with other names, GPUs, days and times."""
    with tempfile.TemporaryDirectory() as temporary:
        template = unpacked(TEMPLATE, Path(temporary) / "template.wwp")
        made = Path(temporary) / "made.wwp"
        for n in range(nodes):
            rng = random.Random(f"{first} {n}")
            slow = n % 40 == 7
            for night in range(nights):
                factors = {}
                made.unlink(missing_ok=True)
                _rewrite(template, made, f"n{n:03}", night, nights, rng, factors, slow)
                shutil.move(made, folder / f"n{n:03}-{night:02}.wwp")


def _rewrite(
    template: Path,
    target: Path,
    host: str,
    night: int,
    nights: int,
    rng: random.Random,
    factors: dict[str, float],
    slow: bool,
) -> None:
    with Profile.open(template) as profile:
        machine = profile.machine
        gpus = tuple(
            msgspec.structs.replace(gpu, uuid=f"GPU-{host}-{gpu.index}") for gpu in machine.gpus
        )
        machine = msgspec.structs.replace(machine, hostname=host, gpus=gpus)
        began = datetime.fromisoformat(profile.created) - timedelta(days=nights - night)
        made = WritableProfile.create(
            target,
            machine,
            profile.environment,
            plan_json=profile.plan_json,
            created=began.isoformat(timespec="milliseconds"),
        )
        with made:
            for visit in profile.visits():
                curve = visit.workload.curve
                if curve not in factors:
                    factors[curve] = math.exp(rng.gauss(0, 0.01))
                    if slow and night >= nights // 2 and curve.startswith("pinned"):
                        factors[curve] *= 1.08
                factor = factors[curve]
                spans = tuple(each * factor for each in visit.samples.span)
                samples = msgspec.structs.replace(visit.samples, span=spans)
                made.commit_later(
                    msgspec.structs.replace(
                        visit, samples=samples, started=began.isoformat(timespec="milliseconds")
                    )
                )


def _cost(name: str, read: int, folder: Path, *options: str) -> str:
    """The CPU time and memory of the command and of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "waywiser", "history", str(folder), "--json", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, _memory(process.pid))
        time.sleep(0.2)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    largest = after.ru_maxrss / 1024
    return (
        f"| {name} | {read:,} | {cpu:.1f} | {largest:.0f} | {most / 2**20:.0f} "
        f"| {process.returncode} |"
    )


def _memory(pid: int) -> int:
    """Proportional bytes of a process and all below it."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += _memory(int(child))
    except OSError:
        pass
    return total


PARTS: dict[str, tuple[str, Callable[[int], Iterator[str]]]] = {
    "found": (f"A loss of 5 % on one path of each of {NODES} nodes", found_changes),
    "alarms": ("Nodes without a change, looked at after each night", false_alarms),
    "drifts": ("A path of each node 1 % a week slower", drifts),
    "cost": (f"{COST_NODES} nodes × {NIGHTS} nights as files", costs),
}


def main(arguments: Sequence[str] | None = None) -> None:
    words = argparse.ArgumentParser(description="What waywiser history finds, and what it costs.")
    words.add_argument("--part", choices=PARTS, action="append")
    words.add_argument("--first", type=int, default=1)
    words.add_argument("-o", "--output", type=Path)
    given = words.parse_args(arguments)
    lines = [f"Seeds from {given.first}; {os.cpu_count()} CPUs, {platform.machine()}.", ""]
    for part in given.part or PARTS:
        title, rows = PARTS[part]
        lines += [f"## {title}", "", *rows(given.first), ""]
    text = "\n".join(lines).rstrip() + "\n"
    if given.output:
        given.output.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
