"""Why series are missing or flagged: reasons, each with all that it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from waywiser.curves.curve import Point
from waywiser.curves.name import label_of
from waywiser.machine import Machine
from waywiser.machine.bounds import why_unbounded
from waywiser.profile import SeriesBlocks, is_finished
from waywiser.profile.quality_flags import REMEDIES
from waywiser.words import Failure, Locality, Unsupported, Value, Visit
from waywiser.words.crash_text import without_addresses

UNSUPPORTED = "not-supported"
"""The kind of failure that is no error, for example an operation on huge pages without any."""


class ReasonGroup(Value, frozen=True):
    """Things with the same reason, counted together and each named."""

    reason: str
    members: tuple[str, ...]
    remedy: str = ""
    kind: str = ""
    """The kind of a failure (`words.records.Failure.kind`); its reason does not repeat it."""

    def __str__(self) -> str:
        """Returns the reason, behind the kind if it has one."""
        return f"{self.kind}: {self.reason}" if self.kind else self.reason


Group = Literal[
    "unsupported_paths", "failures", "unsupported", "skipped", "warnings", "notes", "unbounded",
    "link_use_unknown",
]  # fmt: skip
"""Groups of reasons, as `waywiser.curves.overview.Overview` names them."""


class Reasons:
    """Reasons and what they concern, filled series by series."""

    def __init__(
        self, unsupported_paths: Iterable[Unsupported], localities: Iterable[Locality]
    ) -> None:
        """Notes the workers that did not find out where memory is."""
        self._found: dict[Group, dict[tuple[str, str], list[str]]]
        """By the kind of a failure and the reason."""
        self._found = {each: {} for each in get_args(Group)}
        self.only_skipped = 0
        """Series that nothing but a reason to skip them is known of."""
        self.only_unsupported = 0
        """Series that the machine never supported when measured."""
        self.finished_visits = 0
        for unsupported in unsupported_paths:
            self.concerned("unsupported_paths", unsupported.reason).append(unsupported.path)
        for each in localities:
            if each.failure is not None:
                note = f"the place of {each.memory} was not found: {each.failure.reason}"
                self.concerned("notes", note).append(f"worker {each.worker}")

    def concerned(self, group: Group, reason: str, kind: str = "") -> list[str]:
        """What a reason concerns, to be added to."""
        return self._found[group].setdefault((kind, reason), [])

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
                reason = "the watchdog opened the gate at every sample"
                self.concerned("failures", reason, "void").append(name)
            for note in visit.notes:
                self.concerned("notes", note).append(name)
        for flag in flags:
            self.concerned("warnings", flag.kind).append(f"{label}: {flag.what}")
        if point.bound is None and point.bytes:
            self.add_unbounded(why_unbounded(machine, series.workload), point)
        if point.link_use is not None and not point.link_use.known:
            reason = "; ".join(point.link_use.reasons)
            self.concerned("link_use_unknown", reason).append(point.name)
        self.finished_visits += sum(map(is_finished, series.visits))
        self.only_skipped += bool(point.skipped)
        kinds = {visit.failure.kind if visit.failure else "" for visit in series.visits}
        self.only_unsupported += kinds == {UNSUPPORTED}

    def _unmeasured(self, visit: Visit, failure: Failure, label: str) -> None:
        name = f"{label}, block {visit.block}"
        if visit.stop == "skipped":
            self.concerned("skipped", failure.reason).append(name)
        elif failure.kind != UNSUPPORTED:
            # Without what differs between equal crashes.
            reason = without_addresses(failure.reason)
            self.concerned("failures", reason, failure.kind).append(name)
        elif label not in (unsupported := self.concerned("unsupported", failure.reason)):
            unsupported.append(label)

    def add_unbounded(self, reason: str, point: Point) -> None:
        """Adds the curve of a point without a bound, once."""
        if point.name not in (curves := self.concerned("unbounded", reason)):
            curves.append(point.name)

    def grouped(self) -> dict[str, tuple[ReasonGroup, ...]]:
        """The groups: quality flags in the order of their gravity, each with its remedy; of others
        the largest reason first."""
        return {
            group: tuple(
                ReasonGroup(reason, tuple(found[kind, reason]), REMEDIES.get(reason, ""), kind)
                for kind, reason in (
                    (("", flag) for flag in REMEDIES)
                    if group == "warnings"
                    else _largest_first(found)
                )
                if found.get((kind, reason))
            )
            for group, found in self._found.items()
        }


def _largest_first(found: Mapping[tuple[str, str], Sequence[str]]) -> list[tuple[str, str]]:
    return sorted(found, key=lambda reason: -len(found[reason]))
