"""Curves with what describes them: latency and rate, the peak, and where it is reached."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.curves import Curve, Point
from waywiser.machine import DECLARED
from waywiser.model.curve import CurveModel, CurveTimes, fit_curves
from waywiser.model.neighbours import between
from waywiser.model.prediction_interval import path_kind
from waywiser.profile.derived import kept
from waywiser.stats.method_choice import TOLERANCE

SUSTAINED_SPAN = 8
"""The sustained rate is the best of the sizes from an eighth of the largest on: what caches hold,
and serve faster, is smaller, and one disturbed size does not rule."""
NEAR = 16
"""The largest ratio of sizes between which a time is interpolated."""


Fitted = tuple[Curve, CurveModel]
"""A curve of a single transfer with what describes it: its model's, so that both agree."""


def peak(curve: Curve) -> Point:
    """The point with the highest rate; the smallest size, if several have it."""
    return max(curve.measured, key=lambda point: (point.rate, -point.bytes))


def sustained(curve: Curve) -> Point:
    """Returns the point of the highest rate among large sizes. Within a host it is the largest
    size, since the caches of CPUs hold more than an eighth of it."""
    if is_within_host(curve):
        return curve.measured[-1]
    least = curve.measured[-1].bytes / SUSTAINED_SPAN
    return max((p for p in curve.measured if p.bytes >= least), key=lambda p: (p.rate, -p.bytes))


def is_within_host(curve: Curve) -> bool:
    """Returns whether its one transfer is between memories and files of the host."""
    path = curve.path
    if path is None or DECLARED.is_between_ranks(path):
        return False
    return {place.kind for place in path.places} <= {"numa", "file"}


def saturation(curve: Curve) -> int:
    """The smallest size whose rate is within `TOLERANCE` of the sustained one, or above."""
    enough = (1 - TOLERANCE) * sustained(curve).rate
    return next(point.bytes for point in curve.measured if point.rate >= enough)


def rate_at(curve: Curve, size: int) -> float | None:
    """Bytes per second at a size, as `seconds_at` has it."""
    seconds = seconds_at(curve, size)
    return size / seconds if seconds else None


def seconds_at(curve: Curve, size: int) -> float | None:
    """Measured, or between the times of the sizes on either side if these are `NEAR`; else
    None."""
    import numpy as np

    below = next((point for point in reversed(curve.measured) if point.bytes <= size), None)
    above = next((point for point in curve.measured if point.bytes >= size), None)
    if below is None or above is None or above.bytes > NEAR * below.bytes:
        return None
    if below.bytes == above.bytes:
        return below.seconds
    times = {point.bytes: point.seconds for point in curve.measured}
    found = between(np.array([*times], float), np.array([*times.values()]), np.array([float(size)]))
    return float(found.seconds[0])


def fitted(curves: Sequence[Curve]) -> list[Fitted]:
    """The fits in the order given; all are fitted at once, and kept by the times of all blocks."""
    times = [
        CurveTimes(curve.text, path_kind(curve.workload, DECLARED) or "link", curve.blocks)
        for curve in curves
    ]
    models = kept(times, "curves", list[CurveModel], lambda: fit_curves(times))
    return list(zip(curves, models, strict=True))
