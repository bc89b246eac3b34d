"""What a profile says as a whole: its series estimated, and what is missing grouped by reason.

This is what ``waywiser show`` prints, and what ``show --json`` writes, field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median as middle_of

import msgspec

from waywiser.plan.classes import representatives
from waywiser.plan.name import label_of, texts_of
from waywiser.plan.select import matches, matches_any, require_match
from waywiser.profile import Profile, Run, RunHealth
from waywiser.profile.profile import UNFINISHED
from waywiser.records import Locality, Refusal, Series, Visit
from waywiser.stats.doubts import REMEDIES
from waywiser.stats.estimate import Estimate
from waywiser.stats.health import HealthReport, health_report
from waywiser.stats.line import Line, beside_contiguous, line_of
from waywiser.stats.locality import Sides, judge_sides
from waywiser.stats.nearness import Nearness, near_and_far, nearness
from waywiser.stats.overtaking import Overtaking, overtaking
from waywiser.topology.bounds import why_unbounded
from waywiser.topology.machine import Machine
from waywiser.words import Transfer, Value, Workload

SCHEMA = 1
"""Of the JSON form."""


class Group(Value, frozen=True):
    """Things with the same reason, counted together and each named."""

    reason: str
    members: tuple[str, ...]
    remedy: str = ""


class Summary(Value, frozen=True):
    """Counts of series; each is in exactly one of the last five."""

    curves: int
    series: int
    converged: int
    not_converged: int
    failed: int
    skipped: int
    """Planned and left out, with a reason (see ``skipped`` beside)."""
    refused: int
    """Paths, not series."""
    seconds: float
    blocks: float
    """Median number of blocks of a measured series."""


class Overview(Value, frozen=True):
    """A profile without its samples."""

    schema: int
    profile: str
    created: str
    hostname: str
    runs: tuple[Run, ...]
    visits: int
    """Finished ones of the whole profile, whatever is asked for."""
    planned_visits: int | None
    """That its survey was to make; None where the profile does not tell."""
    series: tuple[Line, ...]
    refusals: tuple[Group, ...]
    failures: tuple[Group, ...]
    skipped: tuple[Group, ...]
    """By reason, which holds the rates that had saturated."""
    warnings: tuple[Group, ...]
    """By kind of doubt, the gravest first, each with its remedy."""
    notes: tuple[Group, ...]
    """What the measuring itself remarked."""
    unbounded: tuple[Group, ...]
    """Curves without a theoretical peak, by the reason why it is not known."""
    health: HealthReport | None
    """What the error counters of GPUs and links did meanwhile; None where nobody looked."""
    summary: Summary
    sides: Sides | None = None
    """Of the machine, as its GPUs and cores showed; None where nobody looked."""
    ways: tuple[Group, ...] = ()
    """By the reason why no counters of links could be read: the curves whose ways are not told."""
    overtaking: tuple[Overtaking, ...] = ()
    """Between two memories, the fastest way of each layout at each size."""
    nearness: dict[str, dict[int, Nearness]] = msgspec.field(default_factory=dict)
    """By a series' identity and the number of a block: whether its host memory was on the side of
    its GPUs; only where sides are known and this is."""


def overview(profile: Profile, only: Sequence[str] = ()) -> Overview:
    """Reads the profile once, one series in memory at a time.

    ``only`` keeps what matches any of the patterns of `waywiser.plan.select`; raises
    `NothingMatches` for a pattern that matches nothing, `ProfileError` for a damaged file.
    """
    _require_known(profile, only)
    workloads = profile.workloads()
    chosen = (workload for workload in workloads if _asked_for(workload, only))
    seen = overview_of(
        profile.machine,
        (Series(workload, tuple(profile.visits_of(workload))) for workload in chosen),
        first=representatives(workloads, profile.machine),
        localities=profile.localities(),
        refusals=[refusal for refusal in profile.refusals if matches(refusal.path, only)],
        health=profile.health(),
    )
    return msgspec.structs.replace(
        seen,
        profile=str(profile.path),
        created=profile.created,
        runs=profile.runs,
        visits=len(profile.finished()),
        planned_visits=_planned_visits(profile),
    )


def overview_of(
    machine: Machine,
    series: Iterable[Series],
    *,
    first: Mapping[str, str],
    localities: Sequence[Locality] = (),
    refusals: Sequence[Refusal] = (),
    health: Sequence[RunHealth] = (),
) -> Overview:
    """Of series that come from anywhere, read once; of no file and no run.

    ``first`` gives for each curve the first of its class, as
    `waywiser.plan.classes.representatives` finds it.
    """
    sides = judge_sides(localities)
    gathered = _Gathered()
    for found in localities:
        if found.failure is not None:
            note = f"where {found.memory} is was not found out: {found.failure.reason}"
            gathered.notes.setdefault(note, []).append(f"worker {found.worker}")
    lines: list[Line] = []
    chosen: list[Workload] = []
    visits = 0
    for each in series:
        lines.append(line_of(each, machine, first[each.workload.curve]))
        chosen.append(each.workload)
        visits += sum(map(_is_finished, each.visits))
        gathered.add(each, lines[-1], machine)
        gathered.look(each, lines[-1], sides)
    lines = beside_contiguous(lines, chosen)
    return Overview(
        schema=SCHEMA,
        profile="",
        created="",
        hostname=machine.hostname,
        runs=(),
        visits=visits,
        planned_visits=None,
        series=tuple(lines),
        refusals=_refused(refusals),
        failures=_groups(gathered.failures),
        skipped=_groups(gathered.skipped),
        warnings=tuple(
            Group(kind, tuple(gathered.doubts[kind]), remedy)
            for kind, remedy in REMEDIES.items()
            if kind in gathered.doubts
        ),
        notes=_groups(gathered.notes),
        unbounded=_groups(gathered.unbounded),
        health=health_report(health),
        summary=_summary(lines, gathered, len(refusals)),
        sides=sides,
        ways=_groups(gathered.untold),
        overtaking=tuple(overtaking(gathered.laid_out)),
        nearness=gathered.nearness,
    )


def _is_finished(visit: Visit) -> bool:
    return visit.failure is None or visit.failure.kind not in UNFINISHED


class _Gathered:
    """Reasons and what they concern, filled series by series."""

    def __init__(self) -> None:
        self.failures: dict[str, list[str]] = {}
        self.skipped: dict[str, list[str]] = {}
        self.doubts: dict[str, list[str]] = {}
        self.notes: dict[str, list[str]] = {}
        self.unbounded: dict[str, list[str]] = {}
        self.untold: dict[str, list[str]] = {}
        self.laid_out: list[tuple[Transfer, Estimate]] = []
        self.nearness: dict[str, dict[int, Nearness]] = {}
        self.only_skipped = 0

    def add(self, series: Series, line: Line, machine: Machine) -> None:
        if len(series.workload.transfers) == 1 and line.estimate is not None:
            self.laid_out.append((series.workload.transfers[0], line.estimate))
        told = line.estimate.doubts if line.estimate else ()
        quiet = all(
            not visit.failure and not visit.notes and (line.estimate or not len(visit.samples))
            for visit in series.visits
        )
        label = "" if quiet and not told else label_of(series.workload)
        for visit in () if quiet else series.visits:
            name = f"{label}, block {visit.block}"
            if visit.failure is not None:
                skipped = visit.stop == "skipped"
                reason = visit.failure.reason
                text = reason if skipped else f"{visit.failure.kind}: {reason}"
                (self.skipped if skipped else self.failures).setdefault(text, []).append(name)
            elif len(visit.samples) and line.estimate is None:
                reason = "void: the watchdog opened the gate at every sample"
                self.failures.setdefault(reason, []).append(name)
            for note in visit.notes:
                self.notes.setdefault(note, []).append(name)
        for doubt in told:
            self.doubts.setdefault(doubt.kind, []).append(f"{label}: {doubt.what}")
        if line.bound is None and line.bytes:
            curves = self.unbounded.setdefault(why_unbounded(machine, series.workload), [])
            if line.name not in curves:
                curves.append(line.name)
        self.only_skipped += bool(line.left_out)

    def look(self, series: Series, line: Line, sides: Sides | None) -> None:
        """What of its ways is not told, and where it matters on which side its memory was."""
        if line.ways is not None and not line.ways.told:
            self.untold.setdefault("; ".join(line.ways.reasons), []).append(line.name)
        if sides is None:
            return
        known: dict[int, Nearness] = {
            visit.block: nearness(visit, sides) for visit in series.visits
        }
        if line.estimate and (note := near_and_far(known, line.estimate.blocks)):
            self.notes.setdefault(note, []).append(label_of(series.workload))
        if any(known.values()):
            self.nearness[series.workload.identity] = {
                block: where for block, where in known.items() if where
            }


def _summary(lines: Sequence[Line], gathered: _Gathered, refused: int) -> Summary:
    known = [line.estimate for line in lines if line.estimate is not None]
    converged = sum(each.converged for each in known)
    return Summary(
        curves=len({line.curve for line in lines}),
        series=len(lines),
        converged=converged,
        not_converged=len(known) - converged,
        failed=len(lines) - len(known) - gathered.only_skipped,
        skipped=gathered.only_skipped,
        refused=refused,
        seconds=sum(line.seconds for line in lines),
        blocks=middle_of([len(each.blocks) for each in known]) if known else 0,
    )


class _Estimate(msgspec.Struct):
    visits: int


class _Commission(msgspec.Struct):
    """As much as matters here of what a survey writes as its plan."""

    estimate: _Estimate


def _planned_visits(profile: Profile) -> int | None:
    try:
        return msgspec.json.decode(profile.plan_json, type=_Commission).estimate.visits
    except msgspec.MsgspecError:
        return None  # made by something else than a survey of this version


def _texts(workload: Workload) -> tuple[str, ...]:
    """A pattern may be meant for a curve, for its name, or for one of its sizes."""
    return str(workload), *texts_of(workload)


def _asked_for(workload: Workload, only: Sequence[str]) -> bool:
    return matches_any(_texts(workload), only)


def _require_known(profile: Profile, only: Sequence[str]) -> None:
    if only:
        texts = [text for workload in profile.workloads() for text in _texts(workload)]
        require_match(only, [*texts, *(refusal.path for refusal in profile.refusals)])


def _refused(refusals: Sequence[Refusal]) -> tuple[Group, ...]:
    reasons: dict[str, list[str]] = {}
    for refusal in refusals:
        reasons.setdefault(refusal.reason, []).append(refusal.path)
    return _groups(reasons)


def _groups(reasons: dict[str, list[str]]) -> tuple[Group, ...]:
    def largest_first() -> Iterator[tuple[str, list[str]]]:
        yield from sorted(reasons.items(), key=lambda item: -len(item[1]))

    return tuple(Group(reason, tuple(members)) for reason, members in largest_first())
