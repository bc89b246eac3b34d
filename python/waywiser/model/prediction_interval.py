"""Intervals of predicted times, calibrated on recorded profiles.

An interval of parameters says how well a line is known. A user asks how far a single time may be
from the prediction, which is more: the form may be wrong between two sizes, and each size has its
own deviations. So half the width of a prediction interval is a *spread* times a *width*. The spread
is made from what the curve itself shows around the size:

- how far the lines of the two sides are apart (`waywiser.model.neighbours.InterpolatedTimes.gap`);
- how far the nearest measured sizes are from what the others predict of them;
- the same of the whole curve, its median.

The width is a constant for each kind of path: the 95 % quantile of deviations over spreads at sizes
that were held out of recorded profiles (split conformal prediction with locally weighted scores:
Lei, G'Sell, Rinaldo, Tibshirani & Wasserman, *Distribution-Free Predictive Inference for
Regression*, J. Am. Stat. Assoc. 113, 2018). ``benchmarks/model_truth.py`` prints the constants, and
checks them on profiles that they were not made from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from waywiser.machine import Traits
from waywiser.stats import Interval
from waywiser.words import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PathKind = Literal["link", "pageable memory", "within a GPU", "host", "migrating memory"]
"""Between places over page-locked or device memory; with pageable memory of the host and a GPU;
within one GPU; within the host and its files; of memory that migrates."""

WIDTHS: dict[PathKind, float] = {
    "link": 4.2,
    "pageable memory": 4.4,
    "within a GPU": 2.4,
    "host": 2.4,
    "migrating memory": 8.8,
}

LEAST_SPREAD = 0.003
"""Relative deviations are not known more finely."""
UNKNOWN = 0.05
"""A deviation of a size that nothing can be compared with."""
_GAP_SHARE, _NEAR_SHARE, _CURVE_SHARE = 1 / 3, 1 / 3, 1 / 2


def path_kind(workload: Workload, traits: Traits) -> PathKind | None:
    """The kind of a workload of one transfer; None of another."""
    transfer = workload.transfer
    if transfer is None:
        return None
    ends, places = transfer.path.ends, transfer.path.places
    if any(traits.memory(end.kind).migrates for end in ends):
        return "migrating memory"
    at_host = [end for end in ends if end.place.kind in ("numa", "file")]
    if len(at_host) == 2:
        return "host"
    if places[0] == places[1]:
        return "within a GPU"
    if all(end.place.kind == "rank" or traits.memory(end.kind).page_locked for end in at_host):
        return "link"
    return "pageable memory"


def spread(gap: Array, near: Array, curve: Array) -> Array:
    """How far a time may be from the prediction, as a logarithm, up to the width of its kind.
    What is not known is not-a-number and counts as `UNKNOWN`."""
    import numpy as np

    gap, near, curve = (
        np.where(np.isfinite(each), each, UNKNOWN) for each in np.broadcast_arrays(gap, near, curve)
    )
    square = (_GAP_SHARE * gap) ** 2 + (_NEAR_SHARE * near) ** 2 + (_CURVE_SHARE * curve) ** 2
    return np.sqrt(LEAST_SPREAD**2 + square)


def interval(seconds: float, spread: float, kind: PathKind, scatter: float = 0.0) -> Interval:
    """The 95 % prediction interval of a time, of which 95 % are within ``scatter`` of the usual
    one, as a logarithm."""
    factor = math.exp(min(math.hypot(WIDTHS[kind] * spread, scatter), 50.0))
    return Interval(seconds / factor, seconds * factor)
