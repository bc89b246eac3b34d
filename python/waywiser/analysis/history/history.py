"""Each headline path of each node over its nights: level, drift, and changes with their date, size
and what else changed that night; the worst first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from waywiser.analysis.history.night import Night, PathNight, gpus_in
from waywiser.analysis.history.nodes import NodeNights, named_nodes, nodes_of
from waywiser.stats import THRESHOLD, Interval, SeriesNoise, median
from waywiser.stats.level_changes import FittedSeries, SeriesOfNights, fit_series, least_changes
from waywiser.words import (
    STATUSES,
    Reason,
    Status,
    Value,
    count,
    format_bytes,
    grouped,
    natural_key,
    rank,
)

SCHEMA = 1
"""The schema of the JSON form."""

WHOLE_NODE = 0.8
"""The share of the paths of a node from which on a change in one night is of the node."""

MOST_PROCESSES = 1.5
"""Processes of one survey over those of another up to which their fastest ones are compared: the
fastest of more processes is faster."""

NORMAL_95 = 1.96
"""Half the width of a 95 % interval, in standard errors."""

WEEK = 7.0

NIGHT_REASONS: tuple[Reason, ...] = (
    "slower", "suspected", "changed", "steady", "too few nights",
)  # fmt: skip
"""The status of a path over its nights."""


class DatedChange(Value, frozen=True):
    """A change of a level, or a drift."""

    kind: Literal["step", "drift"]
    date: str
    """When the first survey began that shows it: UTC, ISO 8601."""
    after: str
    """When the last survey before it began."""
    ratio: float
    """The bandwidth after over that before: 0.95 is 5 % slower. For a drift, from its start until
    its end."""
    interval: Interval
    """95 % of the ratio."""
    p: float
    """The chance of such a change by noise alone, in one night."""
    confirmed: bool
    """Whether enough nights show it; False: it is suspected."""
    per_week: float = 0.0
    """The relative change of the bandwidth in a week, for a drift."""
    since: tuple[str, ...] = ()
    """What else changed then: ``driver 550.54 before, 560.28 now``."""


class NightValue(Value, frozen=True):
    """A path in one night."""

    date: str
    """When its first survey began."""
    rate: float
    """Bytes per second, the median over surveys."""
    surveys: int


class PathHistory(Value, frozen=True):
    """One headline path of one node."""

    node: str
    path: str
    curve: str
    group: str
    bytes: int
    gpus: tuple[str, ...]
    """UUIDs."""
    status: Reason
    ratio: float
    """The bandwidth now over that of the best level."""
    rate: float
    """Bytes per second of the level now."""
    trend_per_week: float
    """The relative change in a week, over all nights."""
    noise: float | None
    """Relative standard deviation of a night, of the median over processes or of the fastest
    one, whichever has less; None if there are too few nights."""
    detectable: float | None
    """The smallest relative change that three nights would show with a chance of one half."""
    nights: tuple[NightValue, ...]
    changes: tuple[DatedChange, ...] = ()
    """In the order of time; gains that are not confirmed are not listed."""
    slower_before: bool = False
    """Whether a loss lasts that began before the first day whose changes are listed."""

    @property
    def last_change(self) -> DatedChange | None:
        return self.changes[-1] if self.changes else None


class NodeChange(Value, frozen=True):
    """A change that nearly all paths of a node have in common."""

    date: str
    after: str
    ratio: float
    """The median over paths."""
    paths: int
    of: int
    since: tuple[str, ...] = ()


class NodeHistory(Value, frozen=True):
    """One node."""

    name: str
    host: str
    gpus: tuple[str, ...]
    nights: int
    surveys: int
    first: str
    last: str
    last_file: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    changes: tuple[NodeChange, ...] = ()
    """Those of nearly all paths at once."""
    notes: tuple[str, ...] = ()
    simulated: bool = False


class History(Value, frozen=True):
    """All paths of all nodes, the worst first."""

    schema: int
    threshold: float
    since: str
    nodes: tuple[NodeHistory, ...]
    paths: tuple[PathHistory, ...]
    unreadable: dict[str, str] = msgspec.field(default_factory=dict)
    """File -> why it was not read or not used."""

    def of(self, *reasons: Reason) -> tuple[PathHistory, ...]:
        return tuple(path for path in self.paths if path.status in reasons)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The hosts on which something has to be measured again."""
        named = {node.name: node.host for node in self.nodes}
        hosts = {named[path.node] for path in self.of("suspected")}
        return tuple(sorted(hosts, key=natural_key))


def history_of(
    surveys: Iterable[Night],
    threshold: float = THRESHOLD,
    since: str = "",
    labels: Mapping[str, Mapping[str, str]] | None = None,
    unreadable: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> History:
    """Follows all nodes. ``since``, a day, is the first one whose changes are listed; ``labels``
    are those of hosts and GPUs, by name and by UUID."""
    nodes, unused = nodes_of(surveys, now)
    named = named_nodes(nodes)
    paths = path_histories(path_nights(named), threshold, since)
    found = node_histories(named, paths, labels or {})
    every = {**(unreadable or {}), **unused}
    return sorted_history(History(SCHEMA, threshold, since, tuple(found), tuple(paths), every))


def node_histories(
    named: Mapping[str, NodeNights],
    paths: Iterable[PathHistory],
    labels: Mapping[str, Mapping[str, str]],
) -> list[NodeHistory]:
    """The nodes with what their paths have in common."""
    by_node = grouped((path.node, path) for path in paths)
    return [_node(name, node, by_node.get(name, []), labels) for name, node in named.items()]


def sorted_history(history: History) -> History:
    """The same with the worst paths and nodes first."""
    paths = sorted(history.paths, key=_rank)
    worst = {path.node: n for n, path in reversed(list(enumerate(paths)))}
    nodes = sorted(
        history.nodes,
        key=lambda node: (worst.get(node.name, len(paths)), natural_key(node.name)),
    )
    return msgspec.structs.replace(history, nodes=tuple(nodes), paths=tuple(paths))


def path_nights(nodes: Mapping[str, NodeNights]) -> list[NightsOfPath]:
    """The nights of all paths of nodes, which have these names."""
    return [line for name, node in nodes.items() for line in _lines_of(name, node)]


def path_histories(
    lines: Sequence[NightsOfPath],
    threshold: float = THRESHOLD,
    since: str = "",
    noise: SeriesNoise | None = None,
) -> list[PathHistory]:
    """Follows paths, each with the ``noise`` that all show, by default these."""
    usual = fit_series([line.series for line in lines], threshold, noise)
    fastest = fit_series([line.fastest for line in lines], threshold, noise)
    fitted = [_clearer(*each) for each in zip(lines, usual, fastest, strict=True)]
    known = [(fit.noise, len(line.paths)) for line, fit in zip(lines, fitted, strict=True) if fit]
    noises, nights = zip(*known, strict=True) if known else ((), ())
    least = iter(least_changes(noises, nights, threshold).tolist())
    return [
        _path(line, fit, next(least) if fit else None, threshold, since)
        for line, fit in zip(lines, fitted, strict=True)
    ]


def _rank(path: PathHistory) -> tuple[object, ...]:
    loss = min(path.ratio, 1.0) if STATUSES[path.status] >= Status.SUSPECTED else 1.0
    change = path.last_change
    latest = -datetime.fromisoformat(change.date).timestamp() if change else 0.0
    return rank(path.status), round(loss, 4), latest, natural_key(path.node), natural_key(path.path)


class NightsOfPath(NamedTuple):
    """The nights of one path."""

    node: str
    surveys: list[list[Night]]
    """By night."""
    paths: list[list[PathNight]]
    series: SeriesOfNights
    """The medians over processes, as bandwidths."""
    fastest: SeriesOfNights
    """The fastest processes, as bandwidths."""

    def first(self, nights: int) -> NightsOfPath:
        """Returns the line with its first nights alone."""
        return self._replace(
            surveys=self.surveys[:nights],
            paths=self.paths[:nights],
            series=self.series.first(nights),
            fastest=self.fastest.first(nights),
        )

    @property
    def has_calm_fastest(self) -> bool:
        """Whether the fastest processes differ less from night to night than the medians do."""
        counts = [path.processes for paths in self.paths for path in paths]
        wander, calm = (
            sum((b - a) ** 2 for a, b in pairwise(series.values))
            for series in (self.series, self.fastest)
        )
        return calm < wander and max(counts) <= MOST_PROCESSES * min(counts)


def _lines_of(name: str, node: NodeNights) -> Iterator[NightsOfPath]:
    nights = node.nights()
    found: dict[str, dict[int, tuple[float, list[Night], list[PathNight]]]] = {}
    start = nights[0][0].moment
    for number, together in enumerate(nights):
        for survey in together:
            day = (survey.moment - start).total_seconds() / 86400
            for key, path in zip(survey.keys, survey.paths, strict=True):
                by_night = found.setdefault(key, {})
                if number in by_night:
                    _, own, at = by_night[number]
                    own.append(survey)
                    at.append(path)
                else:
                    by_night[number] = day, [survey], [path]
    for by_night in found.values():
        days, surveys, paths = map(list, zip(*by_night.values(), strict=True))
        last = paths[-1][-1]
        peers = node.last.hardware, last.group, last.bytes
        series = SeriesOfNights(
            values=[_log_rate(each, _SECONDS) for each in paths],
            days=days,
            surveys=[len(each) for each in surveys],
            peers=(*peers, "medians"),
        )
        fastest = series._replace(
            values=[_log_rate(each, _FASTEST) for each in paths],
            peers=(*peers, "fastest"),
        )
        yield NightsOfPath(name, surveys, paths, series, fastest)


_SECONDS, _FASTEST = attrgetter("seconds"), attrgetter("fastest_seconds")


def _log_rate(paths: Sequence[PathNight], seconds: Callable[[PathNight], float]) -> float:
    first = paths[0]
    taken = seconds(first) if len(paths) == 1 else median([seconds(path) for path in paths])
    return math.log(first.bytes / taken)


def _clearer(
    line: NightsOfPath, usual: FittedSeries | None, fastest: FittedSeries | None
) -> FittedSeries | None:
    """What is known of a path: its level by the medians, and the changes by what shows some, or by
    what has less noise."""
    if usual is None or fastest is None or not line.has_calm_fastest:
        return usual
    changes = max(usual, fastest, key=_clearness).changes
    noise = min(usual.noise, fastest.noise, key=lambda each: each.deviation)
    return usual._replace(changes=changes, noise=noise)


def _clearness(fit: FittedSeries) -> tuple[bool, bool, float]:
    is_confirmed = any(change.confirmed for change in fit.changes)
    return is_confirmed, bool(fit.changes), -fit.noise.deviation


def _path(
    line: NightsOfPath,
    fit: FittedSeries | None,
    detectable: float | None,
    threshold: float,
    since: str,
) -> PathHistory:
    survey, path = line.surveys[-1][-1], line.paths[-1][-1]
    rates = [math.exp(value) for value in line.series.values]
    status: Reason = "too few nights"
    ratio, level, trend, noise = 1.0, median(rates), 0.0, None
    changes: tuple[DatedChange, ...] = ()
    slower_before = False
    if fit is not None:
        every = [each for each in _dated(line, fit) if each.confirmed or each.ratio < 1]
        changes = tuple(each for each in every if not since or each.date[:10] >= since)
        status, ratio = _status(changes, threshold)
        slower_before = status != "slower" and _status(every, threshold)[0] == "slower"
        level, trend = math.exp(fit.level), math.expm1(fit.slope * WEEK)
        noise = fit.noise.deviation
    uuids = survey.known_gpus
    return PathHistory(
        node=line.node,
        path=path.path,
        curve=path.curve,
        group=path.group,
        bytes=path.bytes,
        gpus=tuple(uuids[str(gpu)] for gpu in gpus_in(path.curve) if str(gpu) in uuids),
        status=status,
        ratio=ratio,
        rate=level,
        trend_per_week=trend,
        noise=noise,
        detectable=detectable,
        nights=tuple(
            NightValue(each[0].created, rate, len(each))
            for each, rate in zip(line.surveys, rates, strict=True)
        ),
        changes=changes,
        slower_before=slower_before,
    )


def _status(changes: Sequence[DatedChange], threshold: float) -> tuple[Reason, float]:
    """The status, and the bandwidth now over that of the best level."""
    levels = [1.0]
    for change in changes:
        if change.confirmed:
            levels.append(levels[-1] * change.ratio)
    ratio = levels[-1] / max(levels)
    pending = [change for change in changes if not change.confirmed]
    if 1 / ratio - 1 > threshold:
        return "slower", ratio
    if pending and pending[-1].ratio < 1:
        return "suspected", pending[-1].ratio * ratio
    return ("changed" if changes else "steady"), ratio


def _dated(line: NightsOfPath, fit: FittedSeries) -> Iterator[DatedChange]:
    for change in fit.changes:
        before = line.surveys[max(change.start - 1, 0)][-1]
        first = line.surveys[change.start][0]
        half = NORMAL_95 * change.deviation
        yield DatedChange(
            kind="drift" if change.per_day else "step",
            date=first.created,
            after=before.created,
            ratio=math.exp(change.size),
            interval=Interval(math.exp(change.size - half), math.exp(change.size + half)),
            p=change.p,
            confirmed=change.confirmed,
            per_week=math.expm1(change.per_day * WEEK),
            since=() if change.per_day else tuple(_differences(before, first)),
        )


def _differences(before: Night, after: Night) -> Iterator[str]:
    """What differs between two surveys of a node, the driver first. What only one of them has
    recorded is no difference, but for results of another version of Waywiser."""
    for name, value in after.facts.items():
        former = before.facts.get(name)
        if former is not None and former != value:
            yield f"{name} {former} before, {value} now"


def _node(
    name: str,
    node: NodeNights,
    paths: Sequence[PathHistory],
    labels: Mapping[str, Mapping[str, str]],
) -> NodeHistory:
    own: dict[str, str] = {}
    for key in (*sorted(node.uuids), node.host):
        own |= labels.get(key, {})
    nights = node.nights()
    last = node.last
    latest_night = nights[-1][0].created
    now = {_without_size(path) for path in paths if path.nights[-1].date >= latest_night}
    past = [path for path in paths if path.nights[-1].date < latest_night]
    gone = [path for path in past if _without_size(path) not in now]
    notes = list(node.notes)
    notes += _of_other_sizes([path for path in past if _without_size(path) in now], paths)
    if gone:
        are = "is" if len(gone) == 1 else "are"
        latest = max(gone, key=lambda path: path.nights[-1].date)
        notes.append(
            f"{count(len(gone), 'path')} {are} not in the last survey; {latest.path} was measured "
            f"until {latest.nights[-1].date[:10]}"
        )
    return NodeHistory(
        name=name,
        host=node.host,
        gpus=tuple(sorted(node.uuids)),
        nights=len(nights),
        surveys=len(node.surveys),
        first=node.surveys[0].created,
        last=last.created,
        last_file=last.file,
        labels=own,
        changes=tuple(_common(paths)),
        notes=tuple(notes),
        simulated=bool(last.simulated),
    )


def _without_size(path: PathHistory) -> tuple[str, ...]:
    return path.curve, *path.gpus


def _of_other_sizes(past: Sequence[PathHistory], paths: Sequence[PathHistory]) -> list[str]:
    """A note on paths that the last survey has at another size than earlier ones."""
    if not past:
        return []
    first = past[0]
    now = max(
        (path for path in paths if _without_size(path) == _without_size(first)),
        key=lambda path: path.nights[-1].date,
    )
    are = "path has" if len(past) == 1 else "paths have"
    return [
        f"{len(past)} {are} another size in the last survey, and its nights are followed apart: "
        f"{first.path} of {format_bytes(now.bytes)} after {format_bytes(first.bytes)}; measure the "
        "same size each night"
    ]


def _common(paths: Sequence[PathHistory]) -> Iterator[NodeChange]:
    """The steps that nearly all paths have in one night, or in a neighbouring one, to one side."""
    days = sorted({night.date[:10] for path in paths for night in path.nights})
    place = {day: number for number, day in enumerate(days)}
    steps = [
        (place[each.date[:10]], path, each)
        for path in paths
        for each in path.changes
        if each.confirmed and each.kind == "step"
    ]
    nights = Counter(night for night, _, _ in steps)
    while nights:
        night, _ = nights.most_common(1)[0]
        for near in (night - 1, night, night + 1):
            nights.pop(near, None)
        there = [p for p in paths if p.nights[0].date[:10] < days[night] <= p.nights[-1].date[:10]]
        for is_slower in (True, False):
            same = {
                path.path: each
                for at, path, each in steps
                if abs(at - night) <= 1 and (each.ratio < 1) is is_slower
            }
            if len(same) < 2 or len(same) < WHOLE_NODE * len(there):
                continue
            explained = [each for each in same.values() if each.since]
            first = (
                explained or [each for each in same.values() if each.date[:10] == days[night]]
            )[0]
            yield NodeChange(
                date=first.date,
                after=first.after,
                ratio=median([each.ratio for each in same.values()]),
                paths=len(same),
                of=len(there),
                since=first.since,
            )
