"""Which link of which host of a fleet is slow: what all paths over it say together.

One path of one survey is now and then as far off as a bad link makes it, by chance; most paths over
one link hardly ever are. So beside single paths (`waywiser.comparison.fleet_table`) the middle one
of all paths between the host and one GPU is judged, and of all between one GPU and its peers. What
is seen so is a suspicion, which another survey of the host confirms or drops.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from waywiser.comparison.fleet_table import SlowPath, Table
from waywiser.comparison.node import gpus_of
from waywiser.comparison.outlying import columns_of, outliers
from waywiser.words import Workload

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]

FEWEST_PATHS = 3
"""Over one link: the middle one of two is as far off as one of them makes it."""

SIGNIFICANT = 0.5
"""Suspicions by chance that a whole class may have: each costs a survey of a few paths."""

Link = tuple[str, int]
"""``host`` or ``peers``, and the GPU, by the numbers of the class."""


def slow_links(table: Table, threshold: float) -> dict[str, list[SlowPath]]:
    """By host: of each link that is slow the paths over it that are, the slowest first."""
    import numpy as np

    links = {link: at for link, at in _links(table).items() if len(at) >= FEWEST_PATHS}
    if not links:
        return {}
    middle = np.array([column.middle for column in table.columns])
    apart = table.table - middle
    together = np.stack([_middle(apart[:, at]) for at in links.values()], axis=1)
    last = table.latest(together)
    names = list(table.twins.hosts)
    found: dict[str, list[SlowPath]] = {}
    for outlier in outliers(last, columns_of(last), threshold, SIGNIFICANT):
        name = names[outlier.row]
        limit = math.log1p(threshold) + 2 * outlier.scale
        confirmed = table.seen_again(name, together[:, outlier.column], limit)
        own = table.latest(apart)[outlier.row]
        for column in list(links.values())[outlier.column]:
            if own[column] > math.log1p(threshold):
                found.setdefault(name, []).append(
                    table.slow_path(name, column, float(own[column]), outlier.p, confirmed)
                )
    return {name: sorted(paths, key=lambda path: path.ratio) for name, paths in found.items()}


def merged(
    first: dict[str, list[SlowPath]], second: dict[str, list[SlowPath]]
) -> dict[str, list[SlowPath]]:
    """Each path once; confirmed where either says so."""
    found: dict[str, dict[tuple[str, int], SlowPath]] = {}
    for each in (first, second):
        for name, paths in each.items():
            known = found.setdefault(name, {})
            for path in paths:
                key = (path.curve, path.bytes)
                if key not in known or path.confirmed:
                    known[key] = path
    return {name: sorted(known.values(), key=lambda path: path.ratio)
            for name, known in found.items()}  # fmt: skip


def _links(table: Table) -> dict[Link, list[int]]:
    """The columns of rates over each link."""
    found: dict[Link, list[int]] = {}
    for at, ((_, regime), identities) in enumerate(table.groups.items()):
        if regime == "bandwidth":
            for link in _links_of(table.workloads[identities[0]]):
                found.setdefault(link, []).append(at)
    return found


def _links_of(workload: Workload) -> Iterable[Link]:
    """Those that set the time of a workload: none of one that uses many."""
    gpus = sorted(gpus_of(workload))
    kinds = {
        memory.place.kind
        for transfer in workload.transfers
        for memory in (transfer.path.source, transfer.path.destination)
    }
    if kinds == {"gpu", "numa"} and len(gpus) == 1:
        return [("host", gpus[0])]
    if kinds == {"gpu"} and len(gpus) == 2:
        return [("peers", gpu) for gpu in gpus]
    return []


def _middle(values: Array) -> Array:
    """Of each row, NaN where it has none at all."""
    import warnings

    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Array = np.nanmedian(values, axis=1)
    return found


def suspected(table: Table, threshold: float) -> dict[str, list[SlowPath]]:
    """Single paths that stand apart, and links."""
    return merged(table.slow(threshold), slow_links(table, threshold))
