"""Each headline path of each node over its nights: level, drift, and changes with their date, size
and what else changed that night; the worst first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import msgspec
import numpy as np

from waywiser.analysis.history.night import PROCESSES, SECONDS, FollowedPath, Night, gpus_in
from waywiser.analysis.history.nodes import NodeNights, named_nodes, nodes_of
from waywiser.stats import THRESHOLD, Interval, SeriesNoise, median
from waywiser.stats.level_changes import (
    CandidateChanges,
    FittedSeries,
    SeriesFits,
    SeriesOfNights,
    finish_series,
    least_changes,
    noise_of_series,
)
from waywiser.stats.night_noise import NightNoise
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SCHEMA = 1
"""The schema of the JSON form."""

WHOLE_NODE = 0.8
"""The share of the paths of a node from which on a change in one night is of the node."""

COMPARABLE_PROCESSES = 1.5
"""Processes of one survey over those of another up to which their fastest ones are compared: the
fastest of more processes is faster."""

PATHS_AT_ONCE = 16_384
"""Paths of one level whose noise is in memory at once."""

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


class NightValues(Sequence[NightValue]):
    """The nights of a path, each a `NightValue`. A fleet has many millions: they are in columns,
    and the dates are those of the node."""

    __slots__ = ("_at", "_bytes", "_dates", "_seconds", "_surveys")

    def __init__(
        self, dates: Sequence[str], at: Array, size: int, seconds: Array, surveys: Array
    ) -> None:
        """``dates`` are those of all surveys of a node, ``at`` the first survey of each night,
        ``seconds`` the median of ``size`` bytes."""
        self._dates, self._at, self._bytes = dates, at, size
        self._seconds, self._surveys = seconds, surveys

    @classmethod
    def of(cls, values: Iterable[NightValue]) -> NightValues:
        rows = list(values)
        seconds = 1 / np.array([row.rate for row in rows], float)
        surveys = np.array([row.surveys for row in rows], int)
        return cls([row.date for row in rows], np.arange(len(rows)), 1, seconds, surveys)

    def __len__(self) -> int:
        return len(self._at)

    @property
    def last_date(self) -> str:
        """When the last night began."""
        last = int(self._at[-1])
        return self._dates[last]

    @overload
    def __getitem__(self, place: int) -> NightValue: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[NightValue, ...]: ...
    def __getitem__(self, place: int | slice) -> NightValue | tuple[NightValue, ...]:
        if isinstance(place, slice):
            return tuple(self[n] for n in range(len(self))[place])
        rate = self._bytes / float(self._seconds[place])
        return NightValue(self._dates[self._at[place]], rate, int(self._surveys[place]))

    def __iter__(self) -> Iterator[NightValue]:
        rates = (self._bytes / self._seconds.astype(float)).tolist()
        for at, rate, surveys in zip(self._at.tolist(), rates, self._surveys.tolist(), strict=True):
            yield NightValue(self._dates[at], rate, surveys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NightValues) and [*self] == [*other]

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"NightValues.of({[*self]})"


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
    nights: NightValues
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
    first_day: str = ""
    """Nights before this day were not looked at; empty if all were."""

    @property
    def first_day_text(self) -> str:
        """The part of a sentence that states the first day: `` from 2026-11-01 on``, or empty."""
        return f" from {self.first_day} on" if self.first_day else ""

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
    first_day: str = "",
) -> History:
    """Follows all nodes. ``surveys`` may be an iterator that nothing else holds: they are dropped
    as soon as they are not needed. ``since``, a day, is the first one whose changes are listed;
    ``labels`` are those of hosts and GPUs, by name and by UUID. ``first_day`` is that before which
    no ``surveys`` were read."""
    nodes, unused = nodes_of(surveys, now)
    named = named_nodes(nodes)
    paths = path_histories(path_nights(named), threshold, since)
    found = node_histories(named, paths, labels or {})
    every = {**(unreadable or {}), **unused}
    history = History(SCHEMA, threshold, since, tuple(found), tuple(paths), every, first_day)
    return sorted_history(history)


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
    worst: dict[str, int] = {}
    for n, path in enumerate(paths):
        worst.setdefault(path.node, n)
    nodes = sorted(
        history.nodes,
        key=lambda node: (worst.get(node.name, len(paths)), natural_key(node.name)),
    )
    return msgspec.structs.replace(history, nodes=tuple(nodes), paths=tuple(paths))


def path_nights(nodes: Mapping[str, NodeNights]) -> list[NightsOfPath]:
    """The nights of all paths of nodes, which have these names. The surveys of the nodes have no
    columns after it."""
    found: list[NightsOfPath] = []
    for name, node in nodes.items():
        found += _lines_of(name, node)
        node.drop_paths()
    return found


def path_histories(
    lines: Sequence[NightsOfPath],
    threshold: float = THRESHOLD,
    since: str = "",
    noise: SeriesNoise | None = None,
    candidates: Sequence[CandidateChanges] = (),
) -> list[PathHistory]:
    """Follows paths, each with the ``noise`` that all show, by default these. ``candidates`` are
    those that were found before with this noise, of the medians and of the fastest processes."""
    if not candidates or noise is None:
        candidates, noise = _found_candidates(lines, threshold, noise)
    followed = _FollowedPaths(lines, threshold, since, noise.settled, candidates)
    found: list[PathHistory | None] = [None] * len(lines)
    for number, path in chain(followed.of_one_level(), followed.others()):
        found[number] = path
    return [path for path in found if path is not None]


def _found_candidates(
    lines: Sequence[NightsOfPath], threshold: float, noise: SeriesNoise | None
) -> tuple[list[CandidateChanges], SeriesNoise]:
    """The candidates of the medians and of the fastest processes, and the noise around them."""
    found, shown = [], []
    for is_fastest in (False, True):
        fits = SeriesFits(series_of_paths(lines, is_fastest=is_fastest), threshold)
        shown.append(fits.look(noise))
        found.append(fits.candidates)
    medians, fastest = shown
    return found, SeriesNoise({}, {**medians.settled, **fastest.settled})


class _FollowedPaths(NamedTuple):
    """Paths whose candidates for changes are known."""

    lines: Sequence[NightsOfPath]
    threshold: float
    since: str
    settled: Mapping[Hashable, NightNoise]
    """The noise of peers."""
    candidates: Sequence[CandidateChanges]
    """The candidates of the medians, and of the fastest processes."""

    def of_one_level(self) -> Iterator[tuple[int, PathHistory]]:
        """Yields the paths that have one level alone, as most have, each with its number. Their
        values are not looked at again."""
        numbers = np.flatnonzero(self._are_level())
        for first in range(0, len(numbers), PATHS_AT_ONCE):
            own = numbers[first : first + PATHS_AT_ONCE]
            usual, fastest = (
                self._noise_of(own, is_fastest=is_fastest) for is_fastest in (False, True)
            )
            is_calmer = self._have_calm_fastest(own) & (fastest[1] < usual[1])
            weights = np.where(is_calmer[:, None], fastest[0], usual[0])
            deviations = np.where(is_calmer, fastest[1], usual[1])
            medians = self.candidates[False]
            columns = (medians.means[own], deviations, medians.trends[own])
            fits = [
                FittedSeries(mean, NightNoise(weights[n], deviation), (), trend)
                for n, (mean, deviation, trend) in enumerate(
                    zip(*(column.tolist() for column in columns), strict=True)
                )
            ]
            yield from self._paths(own.tolist(), fits)

    def others(self) -> Iterator[tuple[int, PathHistory]]:
        """Yields all other paths, each with its number."""
        numbers = np.flatnonzero(~self._are_level())
        known = numbers.tolist()
        own = [self.lines[n] for n in known]
        usual, fastest = (
            finish_series(
                series_of_paths(own, is_fastest=is_fastest),
                self.threshold,
                self.settled,
                self.candidates[is_fastest].of(known),
            )
            for is_fastest in (False, True)
        )
        calm = self._have_calm_fastest(numbers).tolist()
        fits = [_clearer(*each) for each in zip(calm, usual, fastest, strict=True)]
        yield from self._paths(known, fits)

    def _are_level(self) -> Array:
        usual, fastest = (each.is_level for each in self.candidates)
        found: Array = usual & fastest
        return found

    def _noise_of(self, numbers: Array, *, is_fastest: bool) -> tuple[Array, Array]:
        """The weights and the deviation of the noise of each."""
        known = self.candidates[is_fastest]
        peers: dict[Hashable, list[int]] = grouped(
            (_peers_of(self.lines[number], is_fastest), place)
            for place, number in enumerate(numbers.tolist())
        )
        return noise_of_series(self.settled, peers, known.squares[numbers], known.freedom[numbers])

    def _have_calm_fastest(self, numbers: Array) -> Array:
        """Returns whether the fastest processes of each path differ less from night to night than
        the medians do."""
        usual, fastest = (each.wander[numbers] for each in self.candidates)
        may = np.array([self.lines[n].is_fastest_comparable for n in numbers.tolist()], bool)
        found: Array = may & (fastest < usual)
        return found

    def _paths(
        self, numbers: Sequence[int], fits: Sequence[FittedSeries | None]
    ) -> Iterator[tuple[int, PathHistory]]:
        fitted = [(n, fit) for n, fit in zip(numbers, fits, strict=True) if fit is not None]
        weights = np.array([fit.noise.weights for _, fit in fitted])
        nights = np.array([len(self.lines[n]) for n, _ in fitted])
        least = iter(least_changes(weights, nights, self.threshold).tolist() if fitted else ())
        for number, fit in zip(numbers, fits, strict=True):
            detectable = None if fit is None else next(least)
            yield number, _path(self.lines[number], fit, detectable, self.threshold, self.since)


def _rank(path: PathHistory) -> tuple[object, ...]:
    if path.status == "steady":
        return rank("steady"), 1.0, 0.0, natural_key(path.node), natural_key(path.path)
    loss = min(path.ratio, 1.0) if STATUSES[path.status] >= Status.SUSPECTED else 1.0
    change = path.last_change
    latest = -datetime.fromisoformat(change.date).timestamp() if change else 0.0
    return rank(path.status), round(loss, 4), latest, natural_key(path.node), natural_key(path.path)


class NightsOfPath(NamedTuple):
    """The nights of one path that have a value, in columns."""

    node: str
    facts: Sequence[Mapping[str, str]]
    """What could explain a change, of each survey of the node."""
    dates: Sequence[str]
    """When each of them began."""
    path: FollowedPath
    """The path, named as in the last of these surveys."""
    gpus: tuple[str, ...]
    """The UUIDs that are known."""
    first: Array
    """The first survey of each night, and the last one."""
    last: Array
    number: Array
    """Surveys of each night."""
    days: Array
    """When each night was, in days since the first one of the node."""
    seconds: Array
    """The median over surveys of the medians over processes, in single precision."""
    fastest_seconds: Array
    """The median over surveys of the fastest processes, in single precision."""
    is_fastest_comparable: bool
    """Whether all surveys have about equally many processes: the fastest of more is faster."""
    peers: tuple[str | int, ...]
    """Paths with an equal value have equal noise."""

    def __len__(self) -> int:
        return len(self.days)

    def first_nights(self, nights: int) -> NightsOfPath:
        """Returns the line with its first nights alone."""
        columns = ("first", "last", "number", "days", "seconds", "fastest_seconds")
        return self._replace(**{name: getattr(self, name)[:nights] for name in columns})


def series_of_paths(
    lines: Sequence[NightsOfPath], *, is_fastest: bool = False
) -> Iterator[SeriesOfNights]:
    """The bandwidths of paths, by the medians over processes or by the fastest processes, those of
    the same nights together."""
    for own in _of_same_nights(lines):
        sizes = np.log(np.array([[line.path.bytes] for line in own], float))
        values = sizes - _log_seconds(own, is_fastest)
        peers = [_peers_of(line, is_fastest) for line in own]
        yield SeriesOfNights(values, own[0].days, own[0].number, peers)


def _peers_of(line: NightsOfPath, is_fastest: bool) -> tuple[str | int, ...]:
    return (*line.peers, "fastest" if is_fastest else "medians")


def _of_same_nights(lines: Sequence[NightsOfPath]) -> Iterator[list[NightsOfPath]]:
    """The paths that have their nights in common, as one object."""
    for _, own in groupby(lines, key=lambda line: id(line.days)):
        yield list(own)


def _log_seconds(lines: Sequence[NightsOfPath], is_fastest: bool) -> Array:
    """The logarithms of the seconds of paths of the same nights, one in each row."""
    rows = [line.fastest_seconds if is_fastest else line.seconds for line in lines]
    found: Array = np.log(np.array(rows), dtype=float)
    return found


class _NightColumns(NamedTuple):
    """Fields of `NightsOfPath` that many paths of a node have in common."""

    first: Array
    last: Array
    number: Array
    days: Array


class _MeasuredPaths(NamedTuple):
    """All paths of all surveys of a node in columns: by path, then by survey."""

    key: Array
    """A number for each path."""
    survey: Array
    place: Array
    """The place of the path in its survey."""
    seconds: Array
    fastest: Array
    processes: Array

    @classmethod
    def of(cls, surveys: Sequence[Night]) -> _MeasuredPaths:
        numbers: dict[str, int] = {}
        known: dict[tuple[int, int], Array] = {}
        keys = []
        for survey in surveys:
            # most surveys have the same paths and GPUs, which are one object then
            same = id(survey.paths.paths), id(survey.gpus)
            if same not in known:
                own = [numbers.setdefault(key, len(numbers)) for key in survey.keys]
                known[same] = np.array(own, np.int32)
            keys.append(known[same])
        sizes = [len(own) for own in keys]
        places = [np.arange(size, dtype=np.int32) for size in sizes]
        columns = (
            np.concatenate(keys),
            np.repeat(np.arange(len(surveys), dtype=np.int32), sizes),
            np.concatenate(places),
            np.frombuffer(b"".join(survey.paths.seconds for survey in surveys), SECONDS),
            np.frombuffer(b"".join(survey.paths.fastest for survey in surveys), SECONDS),
            np.frombuffer(b"".join(survey.paths.processes for survey in surveys), PROCESSES),
        )
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))


def _lines_of(name: str, node: NodeNights) -> Iterator[NightsOfPath]:
    nights, surveys = node.nights(), node.surveys
    hardware, dates = node.last.hardware, [survey.created for survey in surveys]
    facts = [survey.facts for survey in surveys]
    moments = [survey.moment for survey in surveys]
    days = np.array([(each - moments[0]).total_seconds() / 86400 for each in moments])
    night_of = np.repeat(np.arange(len(nights)), [len(together) for together in nights])
    rows = _MeasuredPaths.of(surveys)
    is_other = np.diff(rows.key, prepend=-1) != 0
    begins = np.flatnonzero(is_other | (np.diff(night_of[rows.survey], prepend=-1) != 0))
    number = np.diff(begins, append=len(rows.key)).astype(np.int32)
    last = begins + number - 1
    seconds, fastest = (_medians(each, begins, number) for each in (rows.seconds, rows.fastest))
    paths = np.flatnonzero(is_other[begins])
    if not len(paths):
        return
    ends = np.append(paths[1:], len(begins))
    first = rows.survey[begins]
    columns = _NightColumns(first, rows.survey[last], number, days[first])
    usual = _NightColumns(*(each[: ends[0]].copy() for each in columns))
    at = begins[paths]
    most, fewest = (f.reduceat(rows.processes, at) for f in (np.maximum, np.minimum))
    named_by = rows.survey[last[ends - 1]].tolist()
    uuids = {survey: surveys[survey].known_gpus for survey in set(named_by)}
    for begin, end, survey, place, is_usual, is_comparable in zip(
        paths.tolist(),
        ends.tolist(),
        named_by,
        rows.place[last[ends - 1]].tolist(),
        _have_usual_nights(columns, paths, usual).tolist(),
        (most <= COMPARABLE_PROCESSES * fewest).tolist(),
        strict=True,
    ):
        of, path, known = slice(begin, end), surveys[survey].paths.paths[place], uuids[survey]
        gpus = tuple([known[gpu] for gpu in _gpu_names(path.curve) if gpu in known])
        at_nights = usual if is_usual else _NightColumns(*(each[of] for each in columns))
        yield NightsOfPath(
            name, facts, dates, path, gpus, *at_nights, seconds[of], fastest[of], is_comparable,
            (hardware, path.group, path.bytes),
        )  # fmt: skip


def _have_usual_nights(columns: _NightColumns, paths: Array, usual: _NightColumns) -> Array:
    """Whether the nights of each path, which begin at ``paths``, are those of the first one: they
    are once in memory then."""
    count = len(usual.first)
    found: Array = np.diff(paths, append=len(columns.first)) == count
    for column, own in zip(columns, usual, strict=True):
        found[found] = (column[paths[found, None] + np.arange(count)] == own).all(axis=1)
    return found


@lru_cache(maxsize=16384)
def _gpu_names(curve: str) -> tuple[str, ...]:
    """The numbers of the GPUs that a curve names, as texts."""
    return tuple(map(str, gpus_in(curve)))


def _medians(values: Array, begins: Array, number: Array) -> Array:
    """The median of each night, of which most have one survey."""
    found = values[begins]
    for n in np.flatnonzero(number > 1).tolist():
        found[n] = np.median(values[begins[n] : begins[n] + number[n]])
    return found


def _clearer(
    has_calm_fastest: bool, usual: FittedSeries | None, fastest: FittedSeries | None
) -> FittedSeries | None:
    """What is known of a path: its level by the medians, and the changes by what shows some, or by
    what has less noise."""
    if usual is None or fastest is None or not has_calm_fastest:
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
    path = line.path
    status: Reason = "too few nights"
    ratio, trend, noise = 1.0, 0.0, None
    changes: tuple[DatedChange, ...] = ()
    slower_before = False
    if fit is None:
        level = float(np.median(path.bytes / line.seconds.astype(float)))
    else:
        level = math.exp(fit.level)
        every = [each for each in _dated(line, fit) if each.confirmed or each.ratio < 1]
        changes = tuple(each for each in every if not since or each.date[:10] >= since)
        status, ratio = _status(changes, threshold)
        slower_before = status != "slower" and _status(every, threshold)[0] == "slower"
        trend = math.expm1(fit.slope * WEEK)
        noise = fit.noise.deviation
    return PathHistory(
        node=line.node,
        path=path.path,
        curve=path.curve,
        group=path.group,
        bytes=path.bytes,
        gpus=line.gpus,
        status=status,
        ratio=ratio,
        rate=level,
        trend_per_week=trend,
        noise=noise,
        detectable=detectable,
        nights=NightValues(line.dates, line.first, path.bytes, line.seconds, line.number),
        changes=changes,
        slower_before=slower_before,
    )


def _status(changes: Sequence[DatedChange], threshold: float) -> tuple[Reason, float]:
    """The status, and the bandwidth now over that of the best level."""
    if not changes:
        return "steady", 1.0
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
        before, first = line.last[max(change.start - 1, 0)], line.first[change.start]
        facts = line.facts[before], line.facts[first]
        half = NORMAL_95 * change.deviation
        yield DatedChange(
            kind="drift" if change.per_day else "step",
            date=line.dates[first],
            after=line.dates[before],
            ratio=math.exp(change.size),
            interval=Interval(math.exp(change.size - half), math.exp(change.size + half)),
            p=change.p,
            confirmed=change.confirmed,
            per_week=math.expm1(change.per_day * WEEK),
            since=() if change.per_day else tuple(_differences(*facts)),
        )


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """What differs between the facts of two surveys of a node, the driver first. What only one of
    them has recorded is no difference, but for results of another version of Waywiser."""
    for name, value in after.items():
        former = before.get(name)
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
    past = [path for path in paths if path.nights.last_date < latest_night]
    now = {_without_size(path) for path in paths if past and path.nights.last_date >= latest_night}
    gone = [path for path in past if _without_size(path) not in now]
    notes = list(node.notes)
    notes += _of_other_sizes([path for path in past if _without_size(path) in now], paths)
    if gone:
        are = "is" if len(gone) == 1 else "are"
        latest = max(gone, key=lambda path: path.nights.last_date)
        notes.append(
            f"{count(len(gone), 'path')} {are} not in the last survey; {latest.path} was measured "
            f"until {latest.nights.last_date[:10]}"
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
        key=lambda path: path.nights.last_date,
    )
    are = "path has" if len(past) == 1 else "paths have"
    return [
        f"{len(past)} {are} another size in the last survey, and its nights are followed apart: "
        f"{first.path} of {format_bytes(now.bytes)} after {format_bytes(first.bytes)}; measure the "
        "same size each night"
    ]


def _common(paths: Sequence[PathHistory]) -> Iterator[NodeChange]:
    """The steps that nearly all paths have in one night, or in a neighbouring one, to one side."""
    changed = [
        (path, each)
        for path in paths
        for each in path.changes
        if each.confirmed and each.kind == "step"
    ]
    if not changed:
        return
    days = sorted({night.date[:10] for path in paths for night in path.nights})
    place = {day: number for number, day in enumerate(days)}
    steps = [(place[each.date[:10]], path, each) for path, each in changed]
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
