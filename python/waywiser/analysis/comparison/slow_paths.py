"""Which paths and links of which host are slow: how long every path of a class takes.

One path of one survey is now and then as far off as a bad link makes it, by chance; most paths over
one link hardly ever are. So beside single paths the middle one of all paths between the host and
one GPU is compared, and of all between one GPU and its peers. What is seen so is a suspicion, which
another survey of the host confirms or drops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from waywiser.analysis.comparison.column_scale import ColumnScale, columns_of, pooled_columns
from waywiser.analysis.comparison.hardware import EqualHosts
from waywiser.analysis.comparison.outliers import MANY, SPARE, Outlier, detectable_losses, outliers
from waywiser.analysis.comparison.part_change import equivalence_class
from waywiser.curves import START_BYTES, Group, Point, Regime, gpus_of, group_of, name_of, regime_of
from waywiser.machine import DECLARED
from waywiser.stats import medians_without_outliers, returned_of_rows, row_medians
from waywiser.words import Value, Workload, grouped

Array = NDArray[np.float64]

MOST_HOSTS = 0.9
"""Share of hosts that have a path which others then miss."""

FALSE_PATHS, FALSE_LINKS = 0.05, 0.5
"""Suspicions by chance that a whole class may have. Those of links cost a survey of a few paths."""

FEWEST_PATHS = 2
"""Fewest paths over one link, of which two have to be slow."""

BETWEEN_LEVELS: tuple[Regime, ...] = ("latency", "medium")
"""Regimes whose paths change between two levels."""


class Tested(NamedTuple):
    """Values that are tested together, each the middle one of several columns."""

    values: Array
    own: Array
    """How much they deviate by themselves."""
    members: Sequence[list[int]]
    scales: Sequence[ColumnScale]
    false: float
    """Suspicions by chance that they may make."""
    apart: Array
    """The columns that the ``members`` are of."""
    beside: bool = False
    """Whether the values are relative to the host's own equivalent paths."""
    spare: float = 0.0
    """Scales by which a suspicion exceeds the threshold."""


class SlowPath(Value, frozen=True):
    """A path that takes longer than on other hosts of the class."""

    curve: str
    """The curve with the host's own numbers."""
    name: str
    ratio: float
    """The ratio of its rate to the middle one of the class: 0.95 is 5 % slower."""
    p: float
    """The probability that chance makes such an outlier anywhere in the class."""
    bytes: int
    """Bytes of its largest transfer; 0 for an operation."""
    confirmed: bool = False
    """Two surveys of the host or more show it."""
    beside: bool = False
    """The ratio is to the host's own equivalent paths, and relative to what it is in the class."""

    @property
    def is_time(self) -> bool:
        """Whether its change is one of time."""
        return self.bytes < START_BYTES


class OtherHostSizes(NamedTuple):
    """A path of which a host has no size in common with the other hosts of its class."""

    curve: str
    own: int
    """The most bytes that it has measured."""
    others: int
    """The most that others have."""


class UsualPath(Value, frozen=True):
    """What a class does on one path."""

    curve: str
    name: str
    regime: Regime
    hosts: int
    scale: float
    """Relative deviation from host to host."""
    bytes: int
    """The largest size that most have."""
    seconds: float
    """The middle time at that size."""
    group: Group | None = None
    """Its group of headline paths."""
    detectable: float | None = None
    """The smallest loss of one host that is found with a power of 80 %; None if the path is not
    compared by itself."""
    detectable_beside: float | None = None
    """The same if the host's equivalent paths have not lost it; None if it has none."""

    @property
    def is_time(self) -> bool:
        """Whether its losses are of time."""
        return self.regime in ("operation", "latency")


class PathTimes:
    """The times of a class relative to its middle, in logarithms, the middle one over sizes.

    Rows are profiles, columns are the regimes of curves, NaN is what was not measured.
    """

    def __init__(self, equal: EqualHosts, threshold: float) -> None:
        self.equal, self.threshold = equal, threshold
        self.hosts = [name for name, surveys in equal.hosts.items() for _ in surveys]
        """The host of each row."""
        rows: list[dict[str, Point]] = []
        workloads: dict[str, Workload] = {}
        for survey in [survey for surveys in equal.hosts.values() for survey in surveys]:
            row = {series.identity: series for series in survey.matched_points if series.blocks}
            workloads |= {key: each.workload for key, each in row.items() if key not in workloads}
            rows.append(row)
        self.workloads = list(workloads.values())
        self.groups = grouped(
            ((workload.curve, regime_of(workload)), at)
            for at, workload in enumerate(self.workloads)
        )
        processes = list(_processes([row.get(name) for row in rows for name in workloads]))
        self.raw = raw = np.full((len(rows), len(workloads)), math.nan)
        for each in processes:
            raw.flat[each.places] = medians_without_outliers(each.logs)
        self.sizes = columns_of(self.latest(raw))
        """One for each of ``workloads``."""
        middle = [size.middle for size in self.sizes]
        values = _middle_of(raw - middle, self.groups.values())
        self.columns = columns_of(self.latest(values))
        self.apart = values - [column.middle for column in self.columns]
        shifts = np.full_like(raw, math.nan)
        for each in processes:
            shifts.flat[each.places] = each.returned(np.tile(middle, len(rows)))
        self.own = _middle_of(shifts, self.groups.values())
        """How much a value deviates by itself: a level that shifted and returned."""

    def latest(self, table: Array) -> Array:
        """One row per host, so that a host that was measured often does not count more: its last
        value."""
        surveys = [len(own) for own in self.equal.hosts.values()]
        first = np.cumsum([0, *surveys[:-1]])
        known = np.where(np.isfinite(table), np.arange(len(table))[:, None], 0)
        last = np.maximum(np.maximum.reduceat(known, first), first[:, None])
        found: Array = np.take_along_axis(table, last, axis=0)
        return found

    @cached_property
    def other_sizes(self) -> dict[str, list[OtherHostSizes]]:
        """By host, the paths that other hosts have measured too, at no size of its own."""
        found: dict[str, list[OtherHostSizes]] = {}
        measured = np.isfinite(self.raw)
        for (curve, regime), members in self.groups.items():
            if regime != "bandwidth" or measured[:, members].all(axis=0).any():
                continue  # all have one of its sizes
            sizes: dict[str, set[int]] = {}
            for row, host in enumerate(self.hosts):
                own = {self.workloads[at].bytes for at in members if measured[row, at]}
                sizes.setdefault(host, set()).update(own)
            hosts = Counter(size for own in sizes.values() for size in own)
            for host, own in sizes.items():
                others = hosts.keys() - own
                if own and others and all(hosts[size] == 1 for size in own):
                    apart = OtherHostSizes(curve, max(own), max(others))
                    found.setdefault(host, []).append(apart)
        return found

    @cached_property
    def beside(self) -> Array:
        """The values of `apart`, relative to the median of the host's other equivalent paths of
        bandwidth, and to that of the class: what a host has in common cancels out."""
        found = np.full_like(self.apart, math.nan)
        kinds = ((kind, at) for at, kind in enumerate(self.kinds) if kind[1] == "bandwidth")
        for members in grouped(kinds).values():
            others = [[each for each in members if each != at] for at in members]
            if len(members) > 1:
                found[:, members] = self.apart[:, members] - _middle_of(self.apart, others)
        return found - [column.middle for column in columns_of(self.latest(found))]

    @cached_property
    def _own_beside(self) -> Array:
        """The values of `own`, over all paths that one is compared with, and itself."""
        found = self.own.copy()
        for members in grouped((kind, at) for at, kind in enumerate(self.kinds)).values():
            found[:, members] = np.nan_to_num(self.own[:, members]).max(axis=1, keepdims=True)
        return found

    @cached_property
    def kinds(self) -> list[tuple[Hashable, Regime]]:
        """What is equivalent, of each column."""
        return [(equivalence_class(curve), regime) for curve, regime in self.groups]

    def slow(self) -> dict[str, list[SlowPath]]:
        """What the last survey of each host shows of paths and of links; the slowest first."""
        found: dict[str, dict[tuple[str, int], SlowPath]] = {}
        for tested in self.tested:
            for name, path in self._slow_of(tested):
                known = found.setdefault(name, {})
                key = path.curve, path.bytes
                known[key] = _of_both(known.get(key), path)
        return {
            name: sorted(paths.values(), key=lambda path: path.ratio)
            for name, paths in found.items()
        }

    def _slow_of(self, tested: Tested) -> Iterator[tuple[str, SlowPath]]:
        """The slow paths of one test, each with its host."""
        names, least = list(self.equal.hosts), math.log1p(self.threshold)
        last, own = self.latest(tested.apart), self.latest(tested.own)
        latest = self.latest(tested.values)
        for outlier in outliers(
            latest, tested.scales, self.threshold, tested.false, own, tested.spare
        ):
            name = names[outlier.row]
            confirmed = self._is_confirmed(tested, outlier, name)
            for column in tested.members[outlier.column]:
                difference = float(last[outlier.row, column])
                if difference > least:
                    path = self._slow_path(name, column, difference, outlier.p)
                    seen = {"confirmed": confirmed, "beside": tested.beside}
                    yield name, msgspec.structs.replace(path, **seen)

    @cached_property
    def tested(self) -> tuple[Tested, ...]:
        """Single paths, then links. Of few hosts a path below the sizes of bandwidth is none by
        itself: such paths change between two levels at times, one in twenty by 4 %."""
        many = np.isfinite(self.latest(self.apart)).sum() >= MANY
        single = [
            [at]
            for at, (_, regime) in enumerate(self.kinds)
            if many or regime not in BETWEEN_LEVELS
        ]
        links = [(key, at) for key, at in self._links().items() if len(at) >= FEWEST_PATHS]
        kinds = [self.kinds[at] for (at,) in single]
        return (
            self._tested(single, kinds, FALSE_PATHS),
            self._tested(
                [at for _, at in links], [key[:2] for key, _ in links], FALSE_LINKS, spare=SPARE
            ),
            *(() if many else (self._tested(single, kinds, FALSE_PATHS, beside=True),)),
        )

    def _tested(
        self,
        members: Sequence[list[int]],
        kinds: Sequence[tuple[Hashable, Regime]],
        false: float,
        *,
        beside: bool = False,
        spare: float = 0.0,
    ) -> Tested:
        apart = self.beside if beside else self.apart
        values = _middle_of(apart, members)
        own = _middle_of(self._own_beside if beside else self.own, members)
        regimes = [regime for _, regime in kinds]
        scales = pooled_columns(self.latest(values), kinds, self.threshold, regimes)
        return Tested(values, own, members, scales, false, apart, beside, spare)

    def _slow_path(self, name: str, column: int, difference: float, p: float) -> SlowPath:
        workloads = [self.workloads[at] for at in list(self.groups.values())[column]]
        workload = max(workloads, key=lambda each: each.bytes)
        own = self.equal.hosts[name][-1].own_numbers(workload)
        largest = max((transfer.bytes for transfer in own.transfers), default=0)
        return SlowPath(own.curve, name_of(own), math.exp(-difference), p, largest)

    def _is_confirmed(self, tested: Tested, outlier: Outlier, name: str) -> bool:
        """Whether the last survey of a host shows a value above the limit, and another does."""
        usual = tested.scales[outlier.column].middle
        limit = usual + max(math.log1p(self.threshold), SPARE * outlier.scale)
        values = tested.values[:, outlier.column]
        again = [
            float(value) > limit
            for host, value in zip(self.hosts, values, strict=True)
            if host == name and math.isfinite(value)
        ]
        return sum(again) > 1 and again[-1]

    def _links(self) -> dict[tuple[str, Regime, int], list[int]]:
        """The columns of latency and of bandwidth over each link."""
        return grouped(
            ((kind, regime, gpu), column)
            for column, ((_, regime), members) in enumerate(self.groups.items())
            if regime != "medium"
            for kind, gpu in _links_of(self.workloads[members[0]])
        )

    @property
    def usual(self) -> set[str]:
        """Curves that nearly all hosts have measured, in the numbers of the class."""
        hosts = len(self.equal.hosts)
        return {
            curve
            for (curve, _), column in zip(self.groups, self.columns, strict=True)
            if column.hosts >= MOST_HOSTS * hosts
        }

    def _detectable(self, tested: Tested) -> dict[int, float | None]:
        """The smallest loss that is found, by column; of single paths."""
        latest = self.latest(tested.values)
        losses = detectable_losses(latest, tested.scales, self.threshold, tested.false)
        return {at: loss for (at,), loss in zip(tested.members, losses, strict=True)}

    def described(self) -> tuple[UsualPath, ...]:
        """What the class does on each path."""
        found = []
        known = self._detectable(self.tested[0])
        beside = self._detectable(self.tested[-1]) if self.tested[-1].beside else {}
        traits = next(iter(self.equal.hosts.values()))[-1].machine.traits
        groups = enumerate(zip(self.groups.items(), self.columns, strict=True))
        for at, (((curve, regime), members), own) in groups:
            most = max(self.sizes[each].hosts for each in members)
            usual = [each for each in members if self.sizes[each].hosts * 2 >= most]
            largest = max(usual, key=lambda each: self.workloads[each].bytes)
            workload, seconds = self.workloads[largest], math.exp(self.sizes[largest].middle)
            found.append(UsualPath(
                curve, name_of(workload), regime, own.hosts, own.scale, workload.bytes, seconds,
                group_of(workload, traits), known.get(at), beside.get(at),
            ))  # fmt: skip
        return tuple(found)


def _of_both(former: SlowPath | None, path: SlowPath) -> SlowPath:
    """Returns what two tests find about one path. The test against the host's own equivalent paths
    can confirm it, but does not replace it."""
    if former is not None and path.beside:
        return msgspec.structs.replace(former, confirmed=former.confirmed or path.confirmed)
    return path if former is None or path.confirmed else former


class _Processes(NamedTuple):
    """The processes of series that have equally many, one series in each row."""

    places: list[int]
    logs: Array
    """The logarithms of their times."""
    shifts: Array
    """How far most of the processes of a series shift by themselves."""

    def returned(self, usual: Array) -> Array:
        """The size of a level that shifts from the ``usual`` one, of each place, and returns,
        among the processes or the samples of most of them."""
        apart = self.logs - usual[self.places, None]
        # before the first process there was no difference
        among = returned_of_rows(np.insert(apart, 0, 0.0, axis=1))
        found: Array = np.maximum(among, self.shifts)
        return found


def _processes(series: Sequence[Point | None]) -> Iterator[_Processes]:
    """The processes of series, those with equally many together."""
    counts = ((len(each.blocks), at) for at, each in enumerate(series) if each is not None)
    for places in grouped(counts).values():
        blocks = [each.blocks for at in places if (each := series[at]) is not None]
        times = np.array([[block.median for block in own] for own in blocks])
        shifts = row_medians(np.array([[block.shift for block in own] for own in blocks]))
        yield _Processes(places, np.log(times), shifts)


def _links_of(workload: Workload) -> list[tuple[str, int]]:
    """Those that set the time of a workload, as ``host`` or ``peers`` and the GPU: none of one that
    uses many, and none of messages between ranks."""
    if any(DECLARED.is_between_ranks(transfer.path) for transfer in workload.transfers):
        return []
    gpus = sorted(gpus_of(workload))
    kinds = {end.place.kind for transfer in workload.transfers for end in transfer.path.ends}
    if kinds == {"gpu", "numa"} and len(gpus) == 1:
        return [("host", gpus[0])]
    if kinds == {"gpu"} and len(gpus) == 2:
        return [("peers", gpu) for gpu in gpus]
    return []


def _middle_of(values: Array, groups: Iterable[Sequence[int]]) -> Array:
    """The median over each group of columns, the smaller of two; NaN for a row that has none of
    them."""
    columns = list(groups)
    middles = np.empty((len(values), len(columns)))
    for places in grouped((len(members), at) for at, members in enumerate(columns)).values():
        ordered = np.sort(values[:, [columns[at] for at in places]], axis=2)  # NaN comes last
        known = np.isfinite(ordered).sum(axis=2, keepdims=True)
        middle = np.take_along_axis(ordered, np.maximum(known - 1, 0) // 2, axis=2)
        middles[:, places] = middle[..., 0]
    return middles
