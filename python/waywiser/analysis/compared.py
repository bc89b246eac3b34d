"""What a comparison says: of paths, of their parts and sizes, and of the machines."""

from __future__ import annotations

import math
from typing import NamedTuple

from waywiser.analysis.answer import Device
from waywiser.analysis.unit import Regime
from waywiser.analysis.verdict import Judged, Verdict
from waywiser.words import Value

WORST_FIRST: tuple[Verdict, ...] = ("worse", "missing", "better", "unclear", "new", "same")

_PART_ORDER: tuple[Verdict, ...] = ("worse", "better", "unclear", "same")
"""Which of its parts a path is told by."""


class Size(Value, frozen=True):
    """One series of a path."""

    series: str
    bytes: int
    rated_bytes: int
    """That a rate counts; 0 where it has none."""
    seconds_before: float
    seconds_now: float
    judged: Judged


class Part(Value, frozen=True):
    """The sizes of a path in which the same thing sets the time."""

    regime: Regime
    judged: Judged
    sizes: tuple[Size, ...]


class PathVerdict(Value, frozen=True):
    """One path, by the worst of its parts and sizes."""

    curve: str
    name: str
    """The curve as people call it."""
    verdict: Verdict
    why: str
    """In a clause: which part, or which sizes; of a missing one, the reason."""
    devices: tuple[Device, ...] = ()
    """GPUs on it, as the new file has them where it has them."""
    parts: tuple[Part, ...] = ()

    @property
    def evidence(self) -> Evidence | None:
        """What the verdict is about, or, where nothing is found, what is most off: a part of the
        path with the size that is most like it, or one size alone. None of a path that was
        measured on one side only."""
        told = [part for part in self.parts if part.judged.verdict == self.verdict]
        single = [size for part in self.parts for size in part.sizes
                  if size.judged.verdict == self.verdict]  # fmt: skip
        if not told and single:
            size = max(single, key=lambda size: _off(size.judged))
            return Evidence(f"{size.bytes} B", size.judged, size)
        if not self.parts:
            return None
        part = min(told or self.parts, key=_gravity)
        ratio = part.judged.ratio
        size = min(part.sizes, key=lambda size: (abs(size.judged.ratio - ratio), -size.bytes))
        return Evidence(part.regime, part.judged, size)


class Evidence(NamedTuple):
    what: str
    """The regime, or the size."""
    judged: Judged
    size: Size
    """That the times before and now are of."""


class Comparison(Value, frozen=True):
    """New files against base files."""

    schema: int
    base: tuple[str, ...]
    new: tuple[str, ...]
    threshold: float
    paths: tuple[PathVerdict, ...]
    """The worst first."""
    counts: dict[str, int]
    """Paths by verdict."""
    notes: tuple[str, ...] = ()
    """What else differs, or weakens the verdicts, one line each."""
    missing_gpus: tuple[Device, ...] = ()
    exchanged_gpus: tuple[tuple[Device, Device], ...] = ()
    """(before, now): another device in the same place."""

    def of(self, *verdicts: Verdict) -> tuple[PathVerdict, ...]:
        return tuple(path for path in self.paths if path.verdict in verdicts)

    @property
    def told(self) -> int:
        """Paths of which anything is known."""
        return sum(self.counts[each] for each in ("worse", "better", "same"))


def worst_first(path: PathVerdict) -> tuple[int, float, str]:
    """What paths are sorted by."""
    evidence = path.evidence
    ratio = evidence.judged.ratio if evidence else 1.0
    return WORST_FIRST.index(path.verdict), ratio, path.name


def _gravity(part: Part) -> tuple[int, float]:
    return _PART_ORDER.index(part.judged.verdict), -_off(part.judged)


def _off(judged: Judged) -> float:
    """How far it is from what it was, to either side."""
    return abs(math.log(judged.ratio))
