"""Curves with what describes them: latency and rate, the peak, and where it is reached."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.subject import MeasuredCurve, MeasuredPoint
from waywiser.stats.method_choice import TOLERANCE
from waywiser.stats.postal import Postal, ProtocolRange, describes, fit_all, protocol_ranges
from waywiser.words import Value

SUSTAINED_SPAN = 8
"""The sustained rate is the best of the sizes from an eighth of the largest on: what caches hold,
and serve faster, is smaller, and one disturbed size does not rule."""
NEAR = 16
"""The largest ratio of sizes between which a time is interpolated."""


class Fitted(Value, frozen=True):
    """A curve of a single transfer with what describes it."""

    curve: MeasuredCurve
    postal: Postal | None
    """None if it has too few sizes."""
    is_line: bool
    """Whether one latency and one rate describe it at all sizes."""
    ranges: tuple[ProtocolRange, ...]
    """Lines over ranges of sizes, if one line does not describe it and two or three do."""


def peak(curve: MeasuredCurve) -> MeasuredPoint:
    """The point with the highest rate; the smallest size, if several have it."""
    return max(curve.points, key=lambda point: (point.rate, -point.bytes))


def sustained(curve: MeasuredCurve) -> MeasuredPoint:
    """Returns the point of the highest rate among large sizes. Within a host it is the largest
    size, since the caches of CPUs hold more than an eighth of it."""
    if is_within_host(curve):
        return curve.points[-1]
    least = curve.points[-1].bytes / SUSTAINED_SPAN
    return max((p for p in curve.points if p.bytes >= least), key=lambda p: (p.rate, -p.bytes))


def is_within_host(curve: MeasuredCurve) -> bool:
    """Returns whether its one transfer is between memories and files of the host."""
    return curve.path is not None and {place.kind for place in curve.path.places} <= {
        "numa",
        "file",
    }


def saturation(curve: MeasuredCurve) -> int:
    """The smallest size whose rate is within `TOLERANCE` of the sustained one, or above."""
    enough = (1 - TOLERANCE) * sustained(curve).rate
    return next(point.bytes for point in curve.points if point.rate >= enough)


def rate_at(curve: MeasuredCurve, size: int) -> float | None:
    """Bytes per second at a size, as `seconds_at` has it."""
    seconds = seconds_at(curve, size)
    return size / seconds if seconds else None


def seconds_at(curve: MeasuredCurve, size: int) -> float | None:
    """Measured, or between the times of the sizes on either side if these are `NEAR`; else
    None."""
    below = next((point for point in reversed(curve.points) if point.bytes <= size), None)
    above = next((point for point in curve.points if point.bytes >= size), None)
    if below is None or above is None or above.bytes > NEAR * below.bytes:
        return None
    if below.bytes == above.bytes:
        return below.seconds
    share = (size - below.bytes) / (above.bytes - below.bytes)
    return below.seconds + share * (above.seconds - below.seconds)


def fitted(curves: Sequence[MeasuredCurve]) -> list[Fitted]:
    """The fits in the order given; all are fitted at once."""
    fits = fit_all([curve.blocks for curve in curves])
    return [_fitted(curve, fit) for curve, fit in zip(curves, fits, strict=True)]


def _fitted(curve: MeasuredCurve, fit: Postal | None) -> Fitted:
    is_line = fit is not None and describes(fit.deviations)
    found: tuple[ProtocolRange, ...] = ()
    if fit is not None and not is_line:
        sizes = [point.bytes for point in curve.points]
        found = protocol_ranges(sizes, [point.seconds for point in curve.points])
    return Fitted(curve, fit, is_line, found)
