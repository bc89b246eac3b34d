"""Why series are missing or flagged: reasons, each with all that it concerns."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from waywiser.curves.name import label_of
from waywiser.curves.point import Point
from waywiser.machine.bounds import why_unbounded
from waywiser.machine.machine import Machine
from waywiser.profile.profile import is_finished
from waywiser.profile.quality_flags import REMEDIES
from waywiser.profile.series_frame import SeriesBlocks
from waywiser.words import Value
from waywiser.words.records import Failure, Locality, Unsupported, Visit

UNSUPPORTED = "not-supported"
"""The kind of failure that is no error, for example an operation on huge pages without any."""


class ReasonGroup(Value, frozen=True):
    """Things with the same reason, counted together and each named."""

    reason: str
    members: tuple[str, ...]
    remedy: str = ""


Named = dict[str, list[str]]
"""What each reason concerns."""


class Reasons(msgspec.Struct):
    """Reasons and what they concern, filled series by series."""

    unsupported_paths: Named = msgspec.field(default_factory=dict)
    failures: Named = msgspec.field(default_factory=dict)
    unsupported: Named = msgspec.field(default_factory=dict)
    skipped: Named = msgspec.field(default_factory=dict)
    quality_flags: Named = msgspec.field(default_factory=dict)
    notes: Named = msgspec.field(default_factory=dict)
    unbounded: Named = msgspec.field(default_factory=dict)
    link_use_unknown: Named = msgspec.field(default_factory=dict)
    only_skipped: int = 0
    """Series that nothing but a reason to skip them is known of."""
    only_unsupported: int = 0
    """Series that the machine never supported when measured."""
    finished_visits: int = 0

    @classmethod
    def of(
        cls, unsupported_paths: Iterable[Unsupported], localities: Iterable[Locality]
    ) -> Reasons:
        """The reasons before any series; notes the workers that did not find out where memory
        is."""
        found = cls()
        for unsupported in unsupported_paths:
            found.unsupported_paths.setdefault(unsupported.reason, []).append(unsupported.path)
        for each in localities:
            if each.failure is not None:
                note = f"the place of {each.memory} was not found: {each.failure.reason}"
                found.note(note, f"worker {each.worker}")
        return found

    def add(self, known: SeriesBlocks, point: Point, machine: Machine) -> None:
        series = known.series
        flags = point.estimate.quality_flags if point.estimate else ()
        visits = list(zip(series.visits, known.taken, strict=True))
        quiet = all(
            not visit.failure and not visit.notes and (point.estimate or not taken)
            for visit, taken in visits
        )
        label = "" if quiet and not flags else label_of(series.workload)
        for visit, taken in () if quiet else visits:
            name = f"{label}, block {visit.block}"
            if visit.failure is not None:
                self._unmeasured(visit, visit.failure, label)
            elif taken and point.estimate is None:
                reason = "void: the watchdog opened the gate at every sample"
                self.failures.setdefault(reason, []).append(name)
            for note in visit.notes:
                self.note(note, name)
        for flag in flags:
            self.quality_flags.setdefault(flag.kind, []).append(f"{label}: {flag.what}")
        if point.bound is None and point.bytes:
            curves = self.unbounded.setdefault(why_unbounded(machine, series.workload), [])
            if point.name not in curves:
                curves.append(point.name)
        if point.link_use is not None and not point.link_use.known:
            reason = "; ".join(point.link_use.reasons)
            self.link_use_unknown.setdefault(reason, []).append(point.name)
        self.finished_visits += sum(map(is_finished, series.visits))
        self.only_skipped += bool(point.skipped)
        kinds = {visit.failure.kind if visit.failure else "" for visit in series.visits}
        self.only_unsupported += kinds == {UNSUPPORTED}

    def _unmeasured(self, visit: Visit, failure: Failure, label: str) -> None:
        name = f"{label}, block {visit.block}"
        if visit.stop == "skipped":
            self.skipped.setdefault(failure.reason, []).append(name)
        elif failure.kind != UNSUPPORTED:
            self.failures.setdefault(f"{failure.kind}: {failure.reason}", []).append(name)
        elif label not in (unsupported := self.unsupported.setdefault(failure.reason, [])):
            unsupported.append(label)

    def note(self, note: str, what: str) -> None:
        self.notes.setdefault(note, []).append(what)

    def grouped(self) -> dict[str, tuple[ReasonGroup, ...]]:
        """The groups by their names in `waywiser.curves.overview.Overview`."""
        return {
            "unsupported_paths": groups(self.unsupported_paths),
            "failures": groups(self.failures),
            "unsupported": groups(self.unsupported),
            "skipped": groups(self.skipped),
            "warnings": self._warnings(),
            "notes": groups(self.notes),
            "unbounded": groups(self.unbounded),
            "link_use_unknown": groups(self.link_use_unknown),
        }

    def _warnings(self) -> tuple[ReasonGroup, ...]:
        """Quality flags by kind, the gravest first, each with its remedy."""
        return tuple(
            ReasonGroup(kind, tuple(self.quality_flags[kind]), remedy)
            for kind, remedy in REMEDIES.items()
            if kind in self.quality_flags
        )


def groups(reasons: dict[str, list[str]]) -> tuple[ReasonGroup, ...]:
    """The largest first."""
    largest_first = sorted(reasons.items(), key=lambda item: -len(item[1]))
    return tuple(ReasonGroup(reason, tuple(members)) for reason, members in largest_first)
