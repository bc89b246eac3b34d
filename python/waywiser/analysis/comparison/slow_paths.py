"""Which paths and links of which host are slow: how long every path of a class takes.

One path of one survey is now and then as far off as a bad link makes it, by chance; most paths over
one link hardly ever are. So beside single paths the middle one of all paths between the host and
one GPU is compared, and of all between one GPU and its peers. What is seen so is a suspicion, which
another survey of the host confirms or drops.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from waywiser.analysis.comparison.hardware import EqualHosts
from waywiser.analysis.comparison.node import gpus_of
from waywiser.analysis.comparison.outliers import columns_of, outliers
from waywiser.curves.name import name_of
from waywiser.curves.regimes import Regime, regime_of
from waywiser.stats.noise_model import without_outliers
from waywiser.stats.order import median
from waywiser.words import Value, Workload
from waywiser.words.grouping import grouped

Array = NDArray[np.float64]

MOST_HOSTS = 0.9
"""Share of hosts that have a path which others then miss."""

FALSE_PATHS, FALSE_LINKS = 0.05, 0.5
"""Suspicions by chance that a whole class may have. Those of links cost a survey of a few paths."""

FEWEST_PATHS = 3
"""Fewest paths over one link: the middle one of two deviates as much as one of them makes it."""


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


class PathTimes:
    """The times of a class relative to its middle, in logarithms, the middle one over sizes.

    Rows are profiles, columns are the regimes of curves, NaN is what was not measured.
    """

    def __init__(self, equal: EqualHosts) -> None:
        self.equal = equal
        self.hosts = [name for name, surveys in equal.hosts.items() for _ in surveys]
        """The host of each row."""
        rows: list[dict[str, float]] = []
        workloads: dict[str, Workload] = {}
        for survey in [survey for surveys in equal.hosts.values() for survey in surveys]:
            row = {}
            for series in survey.matched_series:
                if series.blocks:
                    logs = [math.log(block.median) for block in series.blocks]
                    row[series.identity] = median(without_outliers(logs))
                    workloads.setdefault(series.identity, series.workload)
            rows.append(row)
        self.workloads = list(workloads.values())
        self.groups = grouped(
            ((workload.curve, regime_of(workload)), at)
            for at, workload in enumerate(self.workloads)
        )
        raw = np.array([[row.get(identity, math.nan) for identity in workloads] for row in rows])
        self.sizes = columns_of(self.latest(raw))
        """One for each of ``workloads``."""
        sizes = raw - [size.middle for size in self.sizes]
        values = _middle_of(sizes, self.groups.values())
        self.columns = columns_of(self.latest(values))
        self.apart = values - [column.middle for column in self.columns]

    def latest(self, table: Array) -> Array:
        """One row per host, so that a host that was measured often does not count more: its last
        value."""
        last: dict[str, Array] = {}
        for name, row in zip(self.hosts, table, strict=True):
            last[name] = np.where(np.isfinite(row), row, last[name]) if name in last else row
        return np.array(list(last.values()))

    def slow(self, threshold: float) -> dict[str, list[SlowPath]]:
        """What the last survey of each host shows of paths and of links; the slowest first."""
        links = [at for at in self._links() if len(at) >= FEWEST_PATHS]
        of_links = _middle_of(self.apart, links)
        single = [[column] for column in range(len(self.columns))]
        found: dict[str, dict[tuple[str, int], SlowPath]] = {}
        last = self.latest(self.apart)
        for values, members, false in (
            (self.apart, single, FALSE_PATHS),
            (of_links, links, FALSE_LINKS),
        ):
            latest = self.latest(values)
            columns = columns_of(latest)
            for outlier in outliers(latest, columns, threshold, false):
                name = list(self.equal.hosts)[outlier.row]
                usual = columns[outlier.column].middle
                limit = usual + math.log1p(threshold) + 2 * outlier.scale
                confirmed = self._is_seen_again(name, values[:, outlier.column], limit)
                known = found.setdefault(name, {})
                for column in members[outlier.column]:
                    difference = float(last[outlier.row, column])
                    if difference > math.log1p(threshold):
                        path = self._slow_path(name, column, difference, outlier.p, confirmed)
                        key = path.curve, path.bytes
                        if key not in known or confirmed:
                            known[key] = path
        return {
            name: sorted(paths.values(), key=lambda path: path.ratio)
            for name, paths in found.items()
            if paths
        }

    def _slow_path(
        self, name: str, column: int, difference: float, p: float, confirmed: bool
    ) -> SlowPath:
        workloads = [self.workloads[at] for at in list(self.groups.values())[column]]
        workload = max(workloads, key=lambda each: each.bytes)
        own = self.equal.hosts[name][-1].own_numbers(workload)
        largest = max((transfer.bytes for transfer in own.transfers), default=0)
        return SlowPath(own.curve, name_of(own), math.exp(-difference), p, largest, confirmed)

    def _is_seen_again(self, name: str, values: Array, limit: float) -> bool:
        """Whether the last survey of a host shows a value above the limit, and another does."""
        again = [
            float(value) > limit
            for host, value in zip(self.hosts, values, strict=True)
            if host == name and math.isfinite(value)
        ]
        return sum(again) > 1 and again[-1]

    def _links(self) -> Iterable[list[int]]:
        """The columns of bandwidths over each link."""
        return grouped(
            (link, column)
            for column, ((_, regime), members) in enumerate(self.groups.items())
            if regime == "bandwidth"
            for link in _links_of(self.workloads[members[0]])
        ).values()

    @property
    def usual(self) -> set[str]:
        """Curves that nearly all hosts have measured, in the numbers of the class."""
        hosts = len(self.equal.hosts)
        return {
            curve
            for (curve, _), column in zip(self.groups, self.columns, strict=True)
            if column.hosts >= MOST_HOSTS * hosts
        }

    def described(self) -> tuple[UsualPath, ...]:
        """What the class does on each path."""
        found = []
        for ((curve, regime), members), (_, scale, hosts) in zip(
            self.groups.items(), self.columns, strict=True
        ):
            most = max(self.sizes[at].hosts for at in members)
            usual = [at for at in members if self.sizes[at].hosts * 2 >= most]
            largest = max(usual, key=lambda at: self.workloads[at].bytes)
            workload, seconds = self.workloads[largest], math.exp(self.sizes[largest].middle)
            name = name_of(workload)
            found.append(UsualPath(curve, name, regime, hosts, scale, workload.bytes, seconds))
        return tuple(found)


def _links_of(workload: Workload) -> list[tuple[str, int]]:
    """Those that set the time of a workload, as ``host`` or ``peers`` and the GPU: none of one that
    uses many."""
    gpus = sorted(gpus_of(workload))
    kinds = {end.place.kind for transfer in workload.transfers for end in transfer.path.ends}
    if kinds == {"gpu", "numa"} and len(gpus) == 1:
        return [("host", gpus[0])]
    if kinds == {"gpu"} and len(gpus) == 2:
        return [("peers", gpu) for gpu in gpus]
    return []


def _middle_of(values: Array, groups: Iterable[Sequence[int]]) -> Array:
    """The median over each group of columns; NaN for a row that has none of them."""
    groups = list(groups)
    found = np.full((len(values), len(groups)), math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for column, members in enumerate(groups):
            found[:, column] = np.nanmedian(values[:, members], axis=1)
    return found
