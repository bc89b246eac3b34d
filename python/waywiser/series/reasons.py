"""Why series are missing or doubted: reasons, each with all that it concerns."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from waywiser.plan.name import label_of
from waywiser.records import Failure, Locality, Refusal, Visit
from waywiser.series.doubts import REMEDIES
from waywiser.series.line import Line
from waywiser.series.series_frame import SeriesBlocks
from waywiser.topology.bounds import why_unbounded
from waywiser.topology.machine import Machine
from waywiser.words import Value

DECLINED = "refused"
"""The kind of failure that is none: an operation without what it works on, as huge pages."""


class Group(Value, frozen=True):
    """Things with the same reason, counted together and each named."""

    reason: str
    members: tuple[str, ...]
    remedy: str = ""


Named = dict[str, list[str]]
"""By reason, what it concerns."""


class Reasons(msgspec.Struct):
    """Reasons and what they concern, filled series by series."""

    refused: Named = msgspec.field(default_factory=dict)
    failures: Named = msgspec.field(default_factory=dict)
    declined: Named = msgspec.field(default_factory=dict)
    skipped: Named = msgspec.field(default_factory=dict)
    doubts: Named = msgspec.field(default_factory=dict)
    notes: Named = msgspec.field(default_factory=dict)
    unbounded: Named = msgspec.field(default_factory=dict)
    untold: Named = msgspec.field(default_factory=dict)
    only_skipped: int = 0
    """Series that nothing but a reason to skip them is known of."""
    only_declined: int = 0
    """Series that the machine refused whenever it was asked."""

    def add(self, known: SeriesBlocks, line: Line, machine: Machine) -> None:
        series = known.series
        doubts = line.estimate.doubts if line.estimate else ()
        visits = list(zip(series.visits, known.taken, strict=True))
        quiet = all(
            not visit.failure and not visit.notes and (line.estimate or not taken)
            for visit, taken in visits
        )
        label = "" if quiet and not doubts else label_of(series.workload)
        for visit, taken in () if quiet else visits:
            name = f"{label}, block {visit.block}"
            if visit.failure is not None:
                self._unmeasured(visit, visit.failure, label)
            elif taken and line.estimate is None:
                reason = "void: the watchdog opened the gate at every sample"
                self.failures.setdefault(reason, []).append(name)
            for note in visit.notes:
                self.note(note, name)
        for doubt in doubts:
            self.doubts.setdefault(doubt.kind, []).append(f"{label}: {doubt.what}")
        if line.bound is None and line.bytes:
            curves = self.unbounded.setdefault(why_unbounded(machine, series.workload), [])
            if line.name not in curves:
                curves.append(line.name)
        if line.ways is not None and not line.ways.told:
            self.untold.setdefault("; ".join(line.ways.reasons), []).append(line.name)
        self.only_skipped += bool(line.left_out)
        kinds = {visit.failure.kind if visit.failure else "" for visit in series.visits}
        self.only_declined += kinds == {DECLINED}

    def _unmeasured(self, visit: Visit, failure: Failure, label: str) -> None:
        name = f"{label}, block {visit.block}"
        if visit.stop == "skipped":
            self.skipped.setdefault(failure.reason, []).append(name)
        elif failure.kind != DECLINED:
            self.failures.setdefault(f"{failure.kind}: {failure.reason}", []).append(name)
        elif label not in (declined := self.declined.setdefault(failure.reason, [])):
            declined.append(label)

    def add_refusals(self, refusals: Iterable[Refusal]) -> None:
        for refusal in refusals:
            self.refused.setdefault(refusal.reason, []).append(refusal.path)

    def add_localities(self, found: Iterable[Locality]) -> None:
        """Of workers that did not find out where memory is."""
        for each in found:
            if each.failure is not None:
                note = f"where {each.memory} is was not found out: {each.failure.reason}"
                self.note(note, f"worker {each.worker}")

    def note(self, note: str, what: str) -> None:
        self.notes.setdefault(note, []).append(what)

    def warnings(self) -> tuple[Group, ...]:
        """By kind of doubt, the gravest first, each with its remedy."""
        return tuple(
            Group(kind, tuple(self.doubts[kind]), remedy)
            for kind, remedy in REMEDIES.items()
            if kind in self.doubts
        )


def groups(reasons: dict[str, list[str]]) -> tuple[Group, ...]:
    """The largest first."""
    largest_first = sorted(reasons.items(), key=lambda item: -len(item[1]))
    return tuple(Group(reason, tuple(members)) for reason, members in largest_first)
