"""What a comparison reports: of paths and of the machines."""

from __future__ import annotations

import math

from msgspec.structs import replace

from waywiser.analysis.comparison.part_change import PartChange, SizeChange, is_change
from waywiser.curves import Device, Group, Regime
from waywiser.stats import THRESHOLD, Decision
from waywiser.words import Reason, Value

PATH_REASONS: tuple[Reason, ...] = (
    "regression",
    "missing",
    "suspected",
    "improvement",
    "no change",
    "not decided",
    "no common size",
    "skipped",
    "new",
)
"""What a comparison says of a path, in the order of lists: the worst first, and paths of which both
sides say enough before the others.

``regression``: a confirmed loss beyond the threshold. ``suspected``: a loss that should be measured
again. ``improvement``: a significant gain beyond the threshold. ``no change``: none was found; the
detectable change says how large one could have been missed (`verdict_of` decides between these).
``not decided``: one value of another tool beside a survey. ``no common size``: both have the path,
at sizes that cannot be compared. ``missing``: planned and expected, but absent. ``skipped``: not
planned, not supported, or the time was over; never a finding. ``new``: the baseline does not have
it.
"""

REGIMES: dict[Regime, str] = {
    "operation": "operation",
    "latency": "latency",
    "medium": "intermediate sizes",
    "bandwidth": "bandwidth",
}
"""Regimes as texts name them."""

WITHOUT_CHANGE: tuple[Reason, ...] = ("no change", "not decided")
"""Verdicts on paths of which both sides were compared, and no change was found."""


class PathChange(Value, frozen=True):
    """One path, by the gravest of its parts and sizes."""

    curve: str
    name: str
    """The curve as people call it."""
    verdict: Reason
    why: str
    """A clause: which part or which sizes changed; why it is missing or skipped."""
    headline: Group | None = None
    """The group of headline paths that it belongs to."""
    devices: tuple[Device, ...] = ()
    """GPUs on it, as the new file has them if it has them."""
    parts: tuple[PartChange, ...] = ()

    @property
    def part(self) -> PartChange | None:
        """The part that the verdict is about, of several that with the largest sizes whose change
        is at least half of the largest; of a path without a change, that with the largest sizes.
        None if it is about one size, or one side has not measured the path."""
        if self.verdict not in ("regression", "improvement", "suspected"):
            return self.parts[-1] if self.parts else None
        logs = [(part, abs(math.log(part.decision.ratio)))
                for part in self.parts if part.verdict == self.verdict]  # fmt: skip
        most = max((each for _, each in logs), default=0.0)
        return next((part for part, each in reversed(logs) if 2 * each >= most), None)

    @property
    def size(self) -> SizeChange | None:
        """The size whose times before and now show what the verdict is about; None for a path that
        one side has not measured."""
        if self.part is not None:
            return self.part.typical
        sizes = [size for part in self.parts for size in part.sizes if size.verdict == self.verdict]
        return max(sizes, key=lambda size: abs(math.log(size.decision.ratio)), default=None)

    @property
    def decision(self) -> Decision | None:
        """The decision that the verdict stands on."""
        return self.size.decision if self.size else None

    @property
    def ratio(self) -> float:
        """The ratio of bandwidths, now over before, of what the verdict is about; 1 without any."""
        return self.decision.ratio if self.decision else 1.0

    @property
    def detectable(self) -> float | None:
        """The smallest relative loss that would have been found in the part with the largest
        sizes; None if the noise is not known or one side has not measured it."""
        return self.parts[-1].decision.detectable if self.parts else None

    @property
    def most_sizes(self) -> int:
        """The most sizes that one of its parts has."""
        return max((len(part.sizes) for part in self.parts), default=0)

    @property
    def changes(self) -> list[Decision]:
        """Decisions about its parts and their sizes: those that are about a change."""
        decisions = [part.decision for part in self.parts]
        decisions += [size.decision for part in self.parts for size in part.sizes]
        return [each for each in decisions if is_change(each)]

    @property
    def is_below_detectable(self) -> bool:
        """Whether the verdict is about a loss that is smaller than the smallest detectable one."""
        decision = self.decision
        return bool(decision and decision.detectable and 1 - decision.ratio < decision.detectable)


class ProfileComparison(Value, frozen=True):
    """New profiles against baseline profiles."""

    schema: int
    base: tuple[str, ...]
    new: tuple[str, ...]
    repeats: tuple[str, ...]
    """Files in which suspected paths were measured again."""
    threshold: float
    paths: tuple[PathChange, ...]
    """The worst first."""
    counts: dict[str, int]
    """Paths by verdict."""
    in_common: str = ""
    """What the slower paths have in common, in a sentence; empty if nothing."""
    notes: tuple[str, ...] = ()
    """What else differs, or what the decisions lack, one line each."""
    another_machine: str = ""
    """What differs between the machines, if the new files are of another one than the base."""
    missing_gpus: tuple[Device, ...] = ()
    unnamed_gpus: tuple[Device, ...] = ()
    """GPUs that the new results of another tool do not name."""
    exchanged_gpus: tuple[tuple[Device, Device], ...] = ()
    """(before, now): another device in the same place."""
    tools: tuple[str, ...] = ()
    """Whose results the files are, if other tools wrote those of a side: ``nvbandwidth 0.8``."""
    launch: tuple[str, ...] = ()
    """Options of a survey that starts the ranks of the new one; empty without."""
    message_settings: str = ""
    """The variables of the MPI library that differ; empty if none do, or they were not recorded."""
    max_hidden: float | None = None
    """The loss that every headline path may hide at most, as the user says; None for `MOST_HIDDEN`
    of the groups `BOUNDED`."""

    def of(self, *reasons: Reason) -> tuple[PathChange, ...]:
        return tuple(path for path in self.paths if path.verdict in reasons)

    @property
    def measured(self) -> tuple[PathChange, ...]:
        """The paths that both sides have measured."""
        return tuple(path for path in self.paths if path.parts)

    @property
    def changed_alone(self) -> tuple[PathChange, ...]:
        """Paths without a change whose own interval excludes none: of many paths some have such an
        interval by chance."""
        return tuple(path for path in self.of("no change") if self.is_changed_alone(path))

    def is_changed_alone(self, path: PathChange) -> bool:
        decision = path.decision if path.verdict == "no change" else None
        return decision is not None and decision.is_different_alone(self.threshold)

    def is_decided(self, path: PathChange) -> bool:
        """Whether the noise of a path lets its verdict stand. Without a change it does not if the
        noise is not known, hides losses of more than `most_hidden`, or explains a difference that
        is larger than the threshold."""
        decision = path.decision
        if path.verdict == "not decided":
            return False
        if path.verdict != "no change" or decision is None:
            return True
        if self._hides_much(path):
            return False
        return abs(math.log(path.ratio)) <= math.log1p(self.threshold)

    def for_json(self) -> ProfileComparison:
        """The same with "not decided" as the verdict of each path that is not decided, as the text
        has it."""
        paths = tuple(
            path if self.is_decided(path) else replace(path, verdict="not decided")
            for path in self.paths
        )
        verdicts: list[str] = [path.verdict for path in paths]
        counts = {each: verdicts.count(each) for each in (*self.counts, "not decided")}
        return replace(self, paths=paths, counts=counts)

    def _hides_much(self, path: PathChange) -> bool:
        """Whether the noise of a path without a change is not known, or hides more than
        `most_hidden`."""
        decision = path.decision
        if path.verdict not in WITHOUT_CHANGE or decision is None:
            return False
        known = [decision.detectable, path.detectable]
        return any(loss is None or loss > self.most_hidden for loss in known)

    @property
    def undecided(self) -> tuple[PathChange, ...]:
        """The paths that leave a check inconclusive: those of `hiding` in the groups `BOUNDED`, or
        repeated by no process; all paths, if each could hide more than `most_hidden`. With a
        `max_hidden` all of `hiding`."""
        found = tuple(
            path
            for path in self.hiding
            if self.max_hidden is not None or path.headline in BOUNDED or path.detectable is None
        )
        return found or (self.measured if all(map(self._hides_much, self.measured)) else ())

    @property
    def hiding(self) -> tuple[PathChange, ...]:
        """Headline paths that are not suspected and whose bandwidth could hide a loss of more than
        `most_hidden`: of the groups `BOUNDED`, or of all groups if none of these was measured."""
        headlines = [path for path in self.measured if path.headline]
        bounded = [path for path in headlines if path.headline in BOUNDED]
        if self.max_hidden is not None:
            bounded = headlines or list(self.measured)
        return tuple(
            path
            for path in bounded or headlines
            if path.verdict != "suspected"
            and (path.parts[-1].regime == "bandwidth" or not headlines)
            and (path.detectable is None or path.detectable > self.most_hidden)
        )

    @property
    def disturbed(self) -> tuple[PathChange, ...]:
        """Paths of `BOUNDED` that show no loss, and would show one of more than `most_hidden` if
        the outliers of now counted."""
        return tuple(
            path
            for path in self.of("no change")
            if path.headline in BOUNDED
            and path.parts[-1].ratio_with_outliers < 1 - self.most_hidden
        )

    def noisy_sides(self, path: PathChange) -> tuple[bool, bool]:
        """Whether before and now scatter so much that a loss of `most_hidden` would not have been
        found if both sides were like that one. At least one does: now, if neither does alone."""
        most = self.most_hidden
        before, now = (
            noise.detectable is None or noise.detectable > most for noise in path.parts[-1].noise
        )
        return before, now or not before

    @property
    def most_hidden(self) -> float:
        """`max_hidden`, else `MOST_HIDDEN`; with a larger threshold than `THRESHOLD` as much more
        as that is larger, since no loss below the threshold is looked for."""
        if self.max_hidden is not None:
            return self.max_hidden
        beyond = (1 + THRESHOLD) / (1 + max(self.threshold, THRESHOLD))
        return 1 - (1 - MOST_HIDDEN) * beyond

    @property
    def may_hide(self) -> tuple[PathChange, ...]:
        """The headline paths, or all paths without any, of which no change was found."""
        headlines = [path for path in self.measured if path.headline]
        return tuple(p for p in headlines or self.measured if p.verdict in WITHOUT_CHANGE)


MOST_HIDDEN = 0.15
"""Relative loss of a bandwidth of `BOUNDED` that a clean result may hide at most."""

BOUNDED: frozenset[Group] = frozenset(
    {"H2D", "D2H", "bidirectional", "P2P", "P2P bidirectional", "host-to-all", "all-to-host"}
)
"""Headline groups for which `MOST_HIDDEN` holds: pinned copies, P2P and sets."""


def worst_first(path: PathChange) -> tuple[int, bool, float, str]:
    """The key by which paths are sorted: verdict, headline paths first, then the largest loss."""
    return PATH_REASONS.index(path.verdict), path.headline is None, path.ratio, path.name
