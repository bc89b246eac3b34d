"""What a comparison reports: of paths, of their parts and sizes, and of the machines."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from waywiser.analysis.answer import Device
from waywiser.analysis.regimes import Regime
from waywiser.plan.headline import Group
from waywiser.stats.decision import THRESHOLD, Decision
from waywiser.words import Value

PathVerdict = Literal[
    "regression", "missing", "suspected", "improvement", "no change", "skipped", "new"
]
"""What a comparison says of a path.

``regression``, ``improvement``: a significant change beyond the threshold. ``suspected``: a loss
that should be measured again (`waywiser.stats.decision`). ``no change``: none was found; the
detectable change says how large one could have been missed. ``missing``: planned and expected, but
absent. ``skipped``: not planned, not supported or left out for time; never a finding. ``new``: the
baseline does not have it.
"""

REGIMES: dict[Regime, str] = {
    "operation": "operation",
    "latency": "latency",
    "medium": "intermediate sizes",
    "bandwidth": "bandwidth",
}
"""Regimes as texts name them."""

WORST_FIRST: tuple[PathVerdict, ...] = (
    "regression", "missing", "suspected", "improvement", "no change", "skipped", "new",
)  # fmt: skip


class SizeChange(Value, frozen=True):
    """One series of a path."""

    series: str
    bytes: int
    rated_bytes: int
    """The bytes that a bandwidth counts; 0 if it has none."""
    seconds_before: float
    seconds_now: float
    processes: tuple[int, int]
    """Processes that measured it, before and now."""
    decision: Decision


class PartChange(Value, frozen=True):
    """The sizes of a path in which the same thing sets the time."""

    regime: Regime
    processes: tuple[int, int]
    surveys: tuple[int, int]
    decision: Decision
    sizes: tuple[SizeChange, ...]


class PathChange(Value, frozen=True):
    """One path, by the gravest of its parts and sizes."""

    curve: str
    name: str
    """The curve as people call it."""
    verdict: PathVerdict
    why: str
    """In a clause: which part or which sizes changed; why it is missing or skipped."""
    headline: Group | None = None
    """The group of headline paths that it belongs to."""
    devices: tuple[Device, ...] = ()
    """GPUs on it, as the new file has them if it has them."""
    parts: tuple[PartChange, ...] = ()

    @property
    def evidence(self) -> Evidence | None:
        """What the verdict is about: a part of the path, or one size; of a path without a change,
        the part with the largest sizes. None for a path that one side has not measured."""
        if not self.parts:
            return None
        if self.verdict in ("regression", "improvement", "suspected"):
            parts = [part for part in self.parts if verdict_of(part.decision) == self.verdict]
            if parts:
                part = max(parts, key=lambda part: abs(math.log(part.decision.ratio)))
                return Evidence(REGIMES[part.regime], part.decision, _typical(part))
            sizes = [
                size
                for part in self.parts
                for size in part.sizes
                if verdict_of(size.decision) == self.verdict
            ]
            if sizes:
                size = max(sizes, key=lambda size: abs(math.log(size.decision.ratio)))
                return Evidence(f"{size.bytes} B", size.decision, size)
        part = self.parts[-1]
        return Evidence(REGIMES[part.regime], part.decision, _typical(part))

    @property
    def ratio(self) -> float:
        """Of bandwidths, now over before, of what the verdict is about; 1 without any."""
        evidence = self.evidence
        return evidence.decision.ratio if evidence else 1.0

    @property
    def detectable(self) -> float | None:
        """The smallest relative loss that would have been found in the part with the largest
        sizes; None if the noise is not known or one side has not measured it."""
        return self.parts[-1].decision.detectable if self.parts else None


class Evidence(NamedTuple):
    what: str
    """The regime, or the size."""
    decision: Decision
    size: SizeChange
    """The size whose times before and now are shown."""


class ProfileComparison(Value, frozen=True):
    """New profiles against baseline profiles."""

    schema: int
    base: tuple[str, ...]
    new: tuple[str, ...]
    threshold: float
    paths: tuple[PathChange, ...]
    """The worst first."""
    counts: dict[str, int]
    """Paths by verdict."""
    notes: tuple[str, ...] = ()
    """What else differs, or what the decisions lack, one line each."""
    another_machine: str = ""
    """What differs between the machines, if the new files are of another one than the base."""
    missing_gpus: tuple[Device, ...] = ()
    exchanged_gpus: tuple[tuple[Device, Device], ...] = ()
    """(before, now): another device in the same place."""

    def of(self, *verdicts: PathVerdict) -> tuple[PathChange, ...]:
        return tuple(path for path in self.paths if path.verdict in verdicts)

    @property
    def measured(self) -> tuple[PathChange, ...]:
        """The paths that both sides have measured."""
        return tuple(path for path in self.paths if path.parts)

    @property
    def undecided(self) -> tuple[PathChange, ...]:
        """Headline paths whose bandwidth could hide a loss of more than `most_hidden`: of the
        groups `BOUNDED`, or of all groups if none of these was measured."""
        headlines = [path for path in self.measured if path.headline]
        bounded = [path for path in headlines if path.headline in BOUNDED]
        return tuple(each for each in bounded or headlines if _hides(each, self.most_hidden))

    @property
    def most_hidden(self) -> float:
        """`MOST_HIDDEN`; with a larger threshold than `THRESHOLD` as much more as that is larger,
        since no loss below the threshold is looked for."""
        beyond = (1 + THRESHOLD) / (1 + max(self.threshold, THRESHOLD))
        return 1 - (1 - MOST_HIDDEN) * beyond


MOST_HIDDEN = 0.15
"""Relative loss of a headline bandwidth that a clean result may hide at most."""

BOUNDED: frozenset[Group] = frozenset(
    {"H2D", "D2H", "bidirectional", "P2P", "P2P bidirectional", "host-to-all", "all-to-host"}
)
"""Headline groups for which `MOST_HIDDEN` holds: pinned copies, P2P and sets."""


def _hides(path: PathChange, loss: float) -> bool:
    """Whether the path is one of bandwidth that could hide a larger loss."""
    if path.parts[-1].regime != "bandwidth":
        return False
    return path.detectable is None or path.detectable > loss


def verdict_of(decision: Decision) -> PathVerdict:
    """What a decision says of the part or size that it is about."""
    if decision.suspected:
        return "suspected"
    if decision.verdict != "different":
        return "no change"
    return "regression" if decision.slower else "improvement"


def worst_first(path: PathChange) -> tuple[int, bool, float, str]:
    """The key by which paths are sorted: verdict, headline paths first, then the largest loss."""
    return WORST_FIRST.index(path.verdict), path.headline is None, path.ratio, path.name


def _typical(part: PartChange) -> SizeChange:
    """The size whose change is nearest to that of the part; of several, the largest."""
    ratio = part.decision.ratio
    return min(part.sizes, key=lambda size: (abs(size.decision.ratio - ratio), -size.bytes))
