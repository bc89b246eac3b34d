"""Nights of nodes with known changes, under the noise of kept profiles and a stated noise between
nights. Everything follows from the seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from kept import RESULTS, unpacked
from waywiser.analysis.history.night import Night, NightGpu, PathColumns, PathNight
from waywiser.curves.headlines import headline_groups
from waywiser.curves.subject import read_subject
from waywiser.stats.noise_model import Surveys

FIRST = datetime(2026, 9, 1, 3, 15, tzinfo=UTC)

GPUS = 2

QUIET = (
    *(f"2026-11-22-check-two-gpus/check-{n}" for n in range(1, 6)),
    *(f"2026-11-23-surveys/two-h200-check-{n}" for n in (1, 2, 3)),
    *(f"2026-11-23-surveys/h100-check-{n}" for n in (1, 2, 3, 4)),
)
"""Kept checks of healthy machines without other work."""

BUSY = tuple(f"2026-11-23-surveys/h100-busy-check-{n}" for n in ("1a", "1b"))
"""Kept checks beside other work."""

PROCESSES = 8

Change = Callable[[str, int], float]
"""The bandwidth of a path in a night, from 0, over that without a change."""

H2D = "H2D gpu:1"
"""The path that tests change."""


def paths(gpus: int = GPUS) -> list[tuple[str, str, str, float]]:
    """(curve, short name, group, GB/s) of each headline path."""
    found = []
    for n in range(gpus):
        up = f"pinned@numa:0 -> device@gpu:{n} by copy-engine"
        down = f"device@gpu:{n} -> pinned@numa:0 by copy-engine"
        found += [(up, f"H2D gpu:{n}", "H2D", 55.3), (down, f"D2H gpu:{n}", "D2H", 55.1)]
        found.append((f"{up}; {down}", f"bidirectional gpu:{n}", "bidirectional", 97.0))
        found += [
            (f"device@gpu:{n} -> device@gpu:{m} by copy-engine", f"P2P gpu:{n} -> gpu:{m}", "P2P",
             382.0)
            for m in range(gpus) if m != n
        ]  # fmt: skip
    return found


@cache
def kept_noise(names: Sequence[str]) -> dict[str, list[list[float]]]:
    """Logarithms of the processes of each headline path of kept profiles, around their mean, by
    the group of the path."""
    found: dict[str, list[list[float]]] = {}
    with TemporaryDirectory() as folder:
        for n, name in enumerate(names):
            node = read_subject(unpacked(RESULTS / f"{name}.wwp.xz", Path(folder) / f"{n}.wwp"))
            groups = headline_groups(node.machine, (each.workload for each in node.points))
            for series in node.points:
                logs = [math.log(block.median) for block in series.blocks]
                if series.curve in groups and len(logs) >= PROCESSES // 2:
                    mean = sum(logs) / len(logs)
                    own = found.setdefault(groups[series.curve], [])
                    own.append([each - mean for each in logs])
    return found


def uuid_of(name: str, gpu: int) -> str:
    return f"GPU-{name}-{gpu}"


def planted(
    name: str,
    nights: int,
    seed: int,
    *,
    noise: float = 0.01,
    kept: Sequence[str] = QUIET,
    change: Change = lambda path, night: 1.0,
    facts: Callable[[int], dict[str, str]] = lambda night: {"driver": "550.54"},
    gpus: int = GPUS,
) -> list[Night]:
    """One survey a night of a node; ``noise`` is the deviation of each path between nights."""
    rng = np.random.default_rng([seed, 17])
    pool = kept_noise(kept)
    known = {group: pool.get(group) or pool["H2D"] for _, _, group, _ in paths(gpus)}
    lent = {
        path: known[group][rng.integers(len(known[group]))] for _, path, group, _ in paths(gpus)
    }
    found = []
    for night in range(nights):
        own = []
        for curve, path, group, rate in paths(gpus):
            size = 2**26 * (2 if ";" in curve else 1)
            seconds = size / (rate * 1e9 * change(path, night)) * math.exp(rng.normal(0, noise))
            drawn = rng.choice(lent[path], PROCESSES)
            medians = [seconds * math.exp(each) for each in drawn]
            time, fastest = Surveys([medians]).median, min(medians)
            own.append(PathNight(curve, path, group, size, time, PROCESSES, fastest))
        found.append(
            Night(
                file=f"{name}-{night:02}.wwp",
                host=name,
                created=moment(night),
                gpus=tuple(NightGpu(n, uuid_of(name, n), f"0000:{n:02}:00.0") for n in range(gpus)),
                hardware="2 × Test GPU; Test CPU",
                facts=facts(night),
                paths=PathColumns.of(own),
            )
        )
    return found


def moment(night: int, hours: float = 0.0) -> str:
    found = FIRST + timedelta(days=night, hours=hours)
    return found.isoformat(timespec="milliseconds")


def step(night: int, ratio: float, only: Iterable[str] = (H2D,)) -> Change:
    """A level that changes in a night and stays."""
    named = frozenset(only)
    return lambda path, now: ratio if path in named and now >= night else 1.0


def drift(per_week: float, only: Iterable[str] = (H2D,)) -> Change:
    named = frozenset(only)
    return lambda path, now: (1 + per_week) ** (now / 7) if path in named else 1.0


def again(night: Night, hours: float, ratio: float = 1.0) -> Night:
    """A further survey of a night, some hours later."""
    moved = datetime.fromisoformat(night.created) + timedelta(hours=hours)
    changed = tuple(
        msgspec.structs.replace(
            path, seconds=path.seconds / ratio, fastest_seconds=path.fastest_seconds / ratio
        )
        if path.path == H2D
        else path
        for path in night.paths
    )
    return msgspec.structs.replace(
        night,
        file=f"{night.file}+{hours:g}h",
        created=moved.isoformat(timespec="milliseconds"),
        paths=PathColumns.of(changed),
    )
