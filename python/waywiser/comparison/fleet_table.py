"""How long every path of a class of hosts takes, host by host, and which stand apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waywiser.analysis.regimes import Regime, regime_of
from waywiser.comparison.hardware import Twins
from waywiser.comparison.node import renumbered
from waywiser.comparison.outlying import Column, Outlier, columns_of, outliers
from waywiser.comparison.same_gpus import in_numbers_of
from waywiser.plan.name import name_of
from waywiser.stats.order import median
from waywiser.words import Value, Workload

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

MOST_HOSTS = 0.9
"""Share of hosts that have a path which others then miss."""

SIGNIFICANT = 0.05
"""Chance of any false suspicion in a whole class."""


class SlowPath(Value, frozen=True):
    """A path that takes longer than that of its twins."""

    curve: str
    """With the host's own numbers."""
    name: str
    ratio: float
    """Of its rate to the middle one of the class: 0.95 is 5 % slower."""
    p: float
    """That chance makes such an outlier anywhere in the class."""
    bytes: int
    """Of its largest transfer; 0 for an operation."""
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


class Table:
    """Values of a class: for each profile and each path's regime, how long it takes relative to
    the middle of the class, the middle one over sizes."""

    def __init__(self, twins: Twins) -> None:
        import numpy as np

        self.twins = twins
        self.rows = [
            (name, n) for name, surveys in twins.hosts.items() for n in range(len(surveys))
        ]
        self.workloads: dict[str, Workload] = {}
        self.groups: dict[tuple[str, Regime], list[str]] = {}
        values: list[dict[str, float]] = []
        for name, n in self.rows:
            node, matched = twins.hosts[name][n], twins.matched[name][n]
            row = {}
            for series in in_numbers_of(node, matched):
                if series.blocks:
                    row[series.identity] = math.log(median([b.median for b in series.blocks]))
                    self.workloads.setdefault(series.identity, series.workload)
            values.append(row)
        for identity, workload in self.workloads.items():
            self.groups.setdefault((workload.curve, regime_of(workload)), []).append(identity)
        self.order = order = {identity: n for n, identity in enumerate(self.workloads)}
        raw = np.full((len(values), len(order)), np.nan)
        for at, row in enumerate(values):
            for identity, value in row.items():
                raw[at, order[identity]] = value
        self.single = columns_of(self.latest(raw))
        self.table = self._over_sizes(raw, order)
        self.columns = columns_of(self.latest(self.table))

    def latest(self, table: NDArray[float64]) -> NDArray[float64]:
        """One row per host, so that a host that was measured often does not count more: its last
        value."""
        import numpy as np

        last: dict[str, NDArray[float64]] = {}
        for (name, _), row in zip(self.rows, table, strict=True):
            last[name] = np.where(np.isfinite(row), row, last[name]) if name in last else row
        return np.array(list(last.values()))

    def _over_sizes(self, raw: NDArray[float64], order: dict[str, int]) -> NDArray[float64]:
        import warnings

        import numpy as np

        middle = np.array([column.middle for column in self.single])
        table = np.full((len(self.rows), len(self.groups)), np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a host without any of the sizes
            for at, identities in enumerate(self.groups.values()):
                chosen = [order[identity] for identity in identities]
                table[:, at] = np.nanmedian(raw[:, chosen] - middle[chosen], axis=1)
        return table

    def slow(self, threshold: float) -> dict[str, list[SlowPath]]:
        """By host, what its last survey of a path shows; the slowest first."""
        last = self.latest(self.table)
        names = list(self.twins.hosts)
        found: dict[str, list[SlowPath]] = {}
        for outlier in outliers(last, self.columns, threshold, SIGNIFICANT):
            name = names[outlier.row]
            found.setdefault(name, []).append(self._slow_path(name, outlier, threshold))
        return found

    def _slow_path(self, name: str, outlier: Outlier, threshold: float) -> SlowPath:
        limit = math.log1p(threshold) + 2 * outlier.scale
        confirmed = self.seen_again(
            name, self.table[:, outlier.column], self.columns[outlier.column].middle + limit
        )
        return self.slow_path(name, outlier.column, outlier.difference, outlier.p, confirmed)

    def slow_path(
        self, name: str, column: int, difference: float, p: float, confirmed: bool
    ) -> SlowPath:
        """Of a host's path that takes longer by ``difference``, in logarithms."""
        identities = list(self.groups.values())[column]
        workload = max((self.workloads[i] for i in identities), key=lambda w: w.bytes)
        own = _own_numbers(workload, self.twins, name)
        largest = max((transfer.bytes for transfer in own.transfers), default=0)
        return SlowPath(own.curve, name_of(own), math.exp(-difference), p, largest, confirmed)

    def seen_again(self, name: str, values: NDArray[float64], limit: float) -> bool:
        """Whether the last survey of a host shows a value above the limit, and another does;
        ``values`` has one for each survey of the table."""
        again = [
            float(value) > limit
            for (host, _), value in zip(self.rows, values, strict=True)
            if host == name and math.isfinite(value)
        ]
        return sum(again) > 1 and again[-1]

    @property
    def usual(self) -> set[str]:
        """Curves that nearly all hosts have measured, in the numbers of the class."""
        hosts = len(self.twins.hosts)
        return {
            curve
            for (curve, _), column in zip(self.groups, self.columns, strict=True)
            if column.hosts >= MOST_HOSTS * hosts
        }

    def described(self) -> tuple[UsualPath, ...]:
        """What the class does on each path."""
        return tuple(
            self._usual(curve, regime, identities, column)
            for ((curve, regime), identities), column in zip(
                self.groups.items(), self.columns, strict=True
            )
        )

    def _usual(
        self, curve: str, regime: Regime, identities: Sequence[str], column: Column
    ) -> UsualPath:
        order = self.order
        most = max(self.single[order[i]].hosts for i in identities)
        usual = [i for i in identities if self.single[order[i]].hosts * 2 >= most]
        largest = max(usual, key=lambda i: self.workloads[i].bytes)
        workload = self.workloads[largest]
        return UsualPath(
            curve, name_of(workload), regime, column.hosts, column.scale, workload.bytes,
            math.exp(self.single[order[largest]].middle),
        )  # fmt: skip


def _own_numbers(workload: Workload, twins: Twins, name: str) -> Workload:
    back = {old: new for new, old in twins.matched[name][-1].numbers.items() if new != old}
    return renumbered(workload, back) if back else workload
