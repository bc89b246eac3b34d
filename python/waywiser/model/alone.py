"""What each transfer takes alone: the curves that models of several transfers start from."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from waywiser.curves import Classes
from waywiser.curves.classes import Key
from waywiser.machine import Machine
from waywiser.words import Transfer, Value, Workload, grouped


class TransferCurve(Protocol):
    """The seconds of one transfer over sizes: `SampledCurve`, or a fitted
    `waywiser.model.curve.CurveModel`."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Measured sizes in bytes, ascending."""

    @property
    def times(self) -> tuple[float, ...]:
        """Seconds of each."""

    def seconds(self, bytes: int) -> float:
        """Seconds of a transfer of so many bytes; a fit may deviate from measured times."""


class SampledCurve(Value, frozen=True):
    """Lines between measured sizes, and the last line beyond them: what capacities are fitted
    with, before and without a fit of each curve."""

    sizes: tuple[int, ...]
    times: tuple[float, ...]
    """Seconds of each size."""

    def seconds(self, bytes: int) -> float:
        """Raises `ValueError` for a curve without sizes."""
        sizes, times = self.sizes, self.times
        if not sizes:
            raise ValueError("a curve without sizes has no times")
        if bytes <= sizes[0]:
            return times[0]
        if len(sizes) == 1:
            return times[0] * bytes / sizes[0]
        n = min(bisect_left(sizes, bytes), len(sizes) - 1)
        slope = (times[n] - times[n - 1]) / (sizes[n] - sizes[n - 1])
        if bytes > sizes[n] and slope <= 0:
            return times[n] * bytes / sizes[n]
        return times[n - 1] + slope * (bytes - sizes[n - 1])


Alike = TypeVar("Alike", bound=Hashable)
Known = TypeVar("Known", bound=TransferCurve)


def longest(curves: Iterable[tuple[Alike, Known]]) -> dict[Alike, Known]:
    """The curve with the most sizes of those that are alike; the first of equals."""
    by_key = grouped(curves)
    return {key: max(same, key=lambda curve: len(curve.sizes)) for key, same in by_key.items()}


NEAR = 4
"""Sizes up to this factor from a size show how its time grows with its bytes."""


MOST_LATENCY = 0.999
"""The largest share of a time that is latency."""


class Alone(NamedTuple):
    """One transfer alone."""

    latency: float
    """Seconds before its bytes move: those that do not grow with the size, near this size."""
    seconds: float

    @property
    def moving(self) -> float:
        """Seconds in which its bytes move."""
        return self.seconds - self.latency


class AloneCurves:
    """The curves of a machine's transfers, by transfer. A transfer that was not measured has the
    curve of an equivalent one. A curve with few sizes has the shape of the first of its class."""

    def __init__(
        self,
        curves: Mapping[str, TransferCurve],
        machine: Machine,
        predicted: Callable[[Transfer], float | None] = lambda _: None,
    ) -> None:
        """``curves`` by the transfer's text without its size; ``predicted`` are the seconds of a
        transfer where something better than its curve is known."""
        self.curves = dict(curves)
        self._predicted = predicted
        self._classes = Classes(machine)
        self._first = longest(
            (self._key(Transfer.parse(text)), curve) for text, curve in self.curves.items()
        )

    def _key(self, transfer: Transfer) -> Key:
        return self._classes.key(Workload((transfer,)))

    def of(self, transfer: Transfer) -> Alone | None:
        """Returns None if neither the transfer nor an equivalent one was measured."""
        own, first = self.curves.get(transfer.way), self._first.get(self._key(transfer))
        curve = own or first
        if curve is None or first is None:
            return None
        bytes = transfer.bytes
        if (predicted := self._predicted(transfer)) is not None:
            seconds = predicted
        elif bytes in curve.sizes:
            seconds = _seconds(curve, bytes)
        else:
            near = min(curve.sizes, key=lambda size: abs(size - bytes))
            seconds = _seconds(first, bytes) * _seconds(curve, near) / _seconds(first, near)
        share = latency_share(first, bytes)
        return Alone(share * seconds, seconds)


def _seconds(curve: TransferCurve, bytes: int) -> float:
    """The measured time of a measured size, else that of the curve."""
    if bytes in curve.sizes:
        return curve.times[curve.sizes.index(bytes)]
    return curve.seconds(bytes)


def latency_share(curve: TransferCurve, bytes: int) -> float:
    """The share of a transfer's time that does not grow with its size: that of the line through the
    sizes up to `NEAR` times as large and small, by least squares of relative deviations."""
    points = [
        (size, time)
        for size, time in zip(curve.sizes, curve.times, strict=True)
        if bytes / NEAR <= size <= bytes * NEAR
    ]
    if len(points) < 2:
        points = list(zip(curve.sizes, curve.times, strict=True))[-2:]
    weights = [(1 / t**2, size, t) for size, t in points if t > 0]
    total = sum(w for w, _, _ in weights)
    x, y = (sum(w * each[n] for w, *each in weights) / total for n in (0, 1))
    square = sum(w * (size - x) ** 2 for w, size, _ in weights)
    if square <= 0:
        return 0.0
    slope = sum(w * (size - x) * (t - y) for w, size, t in weights) / square
    line = y + slope * (bytes - x)
    share = 1 - slope * bytes / line if line > 0 else 0.0
    return min(max(share, 0.0), MOST_LATENCY)
