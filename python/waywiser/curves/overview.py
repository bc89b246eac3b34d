"""What a profile says as a whole: its series estimated, and what is missing grouped by reason.

This is what ``waywiser show`` prints, and what ``show --json`` writes, field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median as middle_of

import msgspec

from waywiser.curves.classes import representatives
from waywiser.curves.curve import Point, beside_contiguous, for_json, point_of
from waywiser.curves.imported import origin_of
from waywiser.curves.name import label_of
from waywiser.curves.reasons import ReasonGroup, Reasons
from waywiser.curves.select import (
    matches_any,
    require_match,
    sized_texts_of,
    texts_of_unsupported,
)
from waywiser.curves.wrong_bounds import without_wrong_bounds
from waywiser.machine import CpuLoad, Machine, load_of
from waywiser.profile import (
    Estimate,
    HealthReport,
    LayoutCrossover,
    Profile,
    Run,
    RunHealth,
    SeriesBlocks,
    SeriesFrame,
    Sides,
    decide_sides,
    health_report,
    is_finished,
    layout_crossovers,
    remedy_of,
)
from waywiser.profile.locality import Nearness, local_and_remote, nearness
from waywiser.profile.planned import planned
from waywiser.words import Locality, Series, Transfer, Unsupported, Value

SCHEMA = 3
"""The schema of the JSON form."""


class Summary(Value, frozen=True):
    """Counts of series; each is converged, not converged, failed, unsupported or skipped."""

    curves: int
    series: int
    converged: int
    not_converged: int
    failed: int
    skipped: int
    """Planned and left out, with a reason (see ``skipped`` beside)."""
    unsupported_paths: int
    """Paths, not series."""
    seconds: float
    blocks: float
    """Median number of blocks of a measured series."""
    unsupported: int = 0
    """Not supported, as the machine showed when measured (see ``unsupported`` below)."""


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
    """Visits that its survey was to make; None if the profile does not say."""
    series: tuple[Point, ...]
    unsupported_paths: tuple[ReasonGroup, ...]
    failures: tuple[ReasonGroup, ...]
    """Failed visits, by kind and reason; what is not supported is not among them."""
    skipped: tuple[ReasonGroup, ...]
    """Skipped visits by reason, which holds the rates that had saturated."""
    warnings: tuple[ReasonGroup, ...]
    """Quality flags by kind, the gravest first, each with its remedy."""
    notes: tuple[ReasonGroup, ...]
    """What the measuring itself remarked."""
    unbounded: tuple[ReasonGroup, ...]
    """Curves without a theoretical peak, by the reason why it is not known."""
    health: HealthReport | None
    """What the error counters of GPUs and links did meanwhile; None if it was not read."""
    summary: Summary
    sides: Sides | None = None
    """The sides of the machine, as its GPUs and cores showed; None if it was not read."""
    link_use_unknown: tuple[ReasonGroup, ...] = ()
    """Curves whose links are unknown, by the reason why no counters of links could be read."""
    unsupported: tuple[ReasonGroup, ...] = ()
    """Series that the machine did not support when measured, by the reason."""
    layout_crossovers: tuple[LayoutCrossover, ...] = ()
    """The fastest method of each layout at each size, between two memories."""
    nearness: dict[str, dict[int, Nearness]] = msgspec.field(default_factory=dict)
    """Whether the host memory of a block was on the side of its GPUs, by a series' identity and the
    block's number; only if sides are known and this is."""

    load: CpuLoad | None = None
    """How much other programs used the CPUs during the run with the most load; None if it
    was not read."""

    simulated: str = ""
    """The profile that a simulated machine is made of, its changes, and what is not known of it;
    empty for a real machine."""

    def for_json(self) -> Overview:
        """The overview with the fields that its schema has."""
        return msgspec.structs.replace(self, series=tuple(map(for_json, self.series)))


def overview(
    profile: Profile, only: Sequence[str] = (), frame: SeriesFrame | None = None
) -> Overview:
    """Reads the profile once.

    ``only`` keeps what matches any of the patterns of `waywiser.curves.select`; raises
    `NothingMatches` for a pattern that matches nothing, `ProfileError` for a damaged file.
    ``frame`` is the profile's, if it was read already.
    """
    frame = frame or SeriesFrame.read(profile)
    workloads, machine = frame.workloads, profile.machine
    chosen = frame
    if only:
        texts = {str(each): sized_texts_of(each, machine) for each in workloads}
        _require_known(profile, texts.values(), only)
        chosen = frame.only(lambda each: matches_any(texts[str(each)], only))
    localities = profile.localities()
    seen = overview_of(
        machine,
        chosen.series_blocks(),
        first=representatives(workloads, machine),
        localities=localities,
        unsupported_paths=[
            unsupported
            for unsupported in profile.unsupported_paths
            if not only or matches_any(texts_of_unsupported(unsupported.path, machine), only)
        ],
        health=profile.health(),
    )
    return _with_runs(seen, profile, sum(map(is_finished, frame.visits)))


def _with_runs(seen: Overview, profile: Profile, visits: int) -> Overview:
    """Returns it with what the profile says of its runs, and what to do about each warning."""
    foreseen = planned(profile.plan_json).estimate
    origin = origin_of(profile.machine, profile.environment)
    return msgspec.structs.replace(
        seen,
        warnings=tuple(
            msgspec.structs.replace(group, remedy=remedy_of(group.reason, origin))
            for group in seen.warnings
        ),
        profile=str(profile.path),
        created=profile.created,
        runs=profile.runs,
        visits=visits,
        planned_visits=foreseen.visits if foreseen else None,
        load=load_of(profile.environment),
        simulated=profile.machine.simulated,
    )


def overview_of(
    machine: Machine,
    series: Iterable[SeriesBlocks],
    *,
    first: Mapping[str, str],
    localities: Sequence[Locality] = (),
    unsupported_paths: Sequence[Unsupported] = (),
    health: Sequence[RunHealth] = (),
) -> Overview:
    """The overview of series that come from anywhere, read once; without file and run.

    ``first`` gives for each curve the first of its class, as
    `waywiser.curves.classes.representatives` finds it.
    """
    sides, reasons = decide_sides(localities), Reasons(unsupported_paths, localities)
    where: dict[str, dict[int, Nearness]] = {}
    points = [_read(known, machine, first, sides, reasons, where) for known in series]
    points = beside_contiguous(without_wrong_bounds(points, machine, reasons))
    return Overview(
        schema=SCHEMA,
        profile="",
        created="",
        hostname=machine.hostname,
        runs=(),
        visits=reasons.finished_visits,
        planned_visits=None,
        series=tuple(points),
        **reasons.grouped(),
        health=health_report(health),
        summary=_summary(points, reasons, len(unsupported_paths)),
        load=None,
        simulated="",
        sides=sides,
        layout_crossovers=tuple(layout_crossovers(_timed(points))),
        nearness=where,
    )


def _read(
    known: SeriesBlocks,
    machine: Machine,
    first: Mapping[str, str],
    sides: Sides | None,
    reasons: Reasons,
    where: dict[str, dict[int, Nearness]],
) -> Point:
    """The point of a series. Adds it to ``reasons``, and to ``where`` the side that it shows."""
    point = point_of(known, machine, first)
    reasons.add(known, point, machine)
    if found := _nearness(known.series, point, sides, reasons):
        where[point.identity] = found
    return point


def _nearness(
    series: Series, point: Point, sides: Sides | None, reasons: Reasons
) -> dict[int, Nearness]:
    """Nearness by block, if it is known; notes a difference between near and remote memory."""
    if sides is None:
        return {}
    known: dict[int, Nearness] = {visit.block: nearness(visit, sides) for visit in series.visits}
    if point.estimate and (note := local_and_remote(known, point.estimate.blocks)):
        reasons.concerned("notes", note).append(label_of(series.workload))
    return {block: where for block, where in known.items() if where}


def _timed(points: Iterable[Point]) -> list[tuple[Transfer, Estimate]]:
    """Those of a single transfer, with the caches as they are."""
    return [
        (point.shown.transfer, point.estimate)
        for point in points
        if point.shown.transfer and point.cache == "warm" and point.estimate
    ]


def _summary(points: Sequence[Point], reasons: Reasons, unsupported_paths: int) -> Summary:
    known = [point.estimate for point in points if point.estimate is not None]
    converged = sum(each.converged for each in known)
    return Summary(
        curves=len({point.curve for point in points}),
        series=len(points),
        converged=converged,
        not_converged=len(known) - converged,
        failed=len(points) - len(known) - reasons.only_skipped - reasons.only_unsupported,
        skipped=reasons.only_skipped,
        unsupported_paths=unsupported_paths,
        seconds=sum(point.spent_seconds for point in points),
        blocks=middle_of([len(each.blocks) for each in known]) if known else 0,
        unsupported=reasons.only_unsupported,
    )


def _require_known(profile: Profile, texts: Iterable[Iterable[str]], only: Sequence[str]) -> None:
    machine = profile.machine
    known = [text for each in texts for text in each]
    unsupported = profile.unsupported_paths
    others = [text for each in unsupported for text in texts_of_unsupported(each.path, machine)]
    gpus = len(machine.gpus) if machine.is_described else None
    require_match(only, known, others, gpus=gpus, measured=True)
