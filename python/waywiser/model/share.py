"""What each of several transfers gets that run together: max-min fair shares, filled over time.

At each moment the rates are max-min fair: no transfer can get more without taking from one that has
no more than it. Progressive filling finds them: all rates rise together until a resource is full or
a transfer reaches what it has alone; those that are concerned keep their rate, and the others rise
further (Bertsekas & Gallager, *Data Networks*, 2nd edition, 1992, section 6.5.2). A transfer may
take more than one byte of a resource for each of its own, so a load is what a byte takes of a
resource in seconds. When a transfer starts or ends, the rates are found again.

A transfer starts to move bytes after its latency. Transfers of one queue run one after another, in
the order of the workload.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from waywiser.model.errors import ModelError
from waywiser.words import Value

LASTING = 0.1
"""Share of a span that a rate lasts to count: what transfers reach for a moment shows no limit."""

LEAST_SHARE = 0.05
"""Part of its fair share that a transfer has at least if the others come first."""

ALMOST = 1e-12
"""Relative differences that are rounding."""


class Demand(Value, frozen=True):
    """What one transfer needs."""

    bytes: int
    rate: float
    """Bytes per second that it reaches alone, after its latency."""
    latency: float = 0.0
    """Seconds from its start until its first byte moves."""
    loads: dict[str, float] = msgspec.field(default_factory=dict)
    """Resource -> seconds of it that one byte takes: 1 / capacity, or more."""
    passes: dict[str, int] = msgspec.field(default_factory=dict)
    """Resource -> how often one byte goes through it, whether or not that limits the transfer."""
    queue: str = ""
    """The queue that it waits in; empty for none."""
    gap: float = 0.0
    """Further seconds that it takes to start if another one of its queue ran before it."""


class Filled(Value, frozen=True):
    """When transfers that start together are done."""

    seconds: tuple[float, ...]
    """From the common start to the end of each transfer."""
    limits: tuple[str, ...]
    """The resource that kept each transfer below what it has alone while most of its bytes moved;
    empty for none."""
    carried: dict[str, float]
    """Resource -> the most bytes per second that went through it for `LASTING` of the span."""
    waited: tuple[float, ...]
    """Seconds from the common start until each transfer was the first of its queue."""

    @property
    def own_seconds(self) -> tuple[float, ...]:
        """The seconds of each transfer without those that it waited."""
        return tuple(end - waited for end, waited in zip(self.seconds, self.waited, strict=True))

    @property
    def span(self) -> float:
        """Seconds from the common start to the last end."""
        return max(self.seconds, default=0.0)


def max_min_rates(demands: Sequence[Demand]) -> tuple[list[float], list[str]]:
    """The max-min fair rates of transfers that move bytes now, and the resource that limits each;
    empty if it has its own rate. Raises `ModelError` for a demand that no time can meet."""
    _require_sense(demands)
    rates = [0.0] * len(demands)
    limits = [""] * len(demands)
    left = {name: 1.0 for demand in demands for name, load in demand.loads.items() if load > 0}
    rising = set(range(len(demands)))
    level = 0.0
    while rising:
        per_rate: dict[str, float] = {}
        for n in rising:
            for name, load in demands[n].loads.items():
                if load > 0:
                    per_rate[name] = per_rate.get(name, 0.0) + load
        steps = {name: max(left[name], 0.0) / total for name, total in per_rate.items()}
        own = min(demands[n].rate for n in rising) - level
        step = max(min([own, *steps.values()]), 0.0)
        level += step
        for name, total in per_rate.items():
            left[name] -= step * total
        full = {name for name, most in steps.items() if most <= step * (1 + ALMOST)}
        for n in sorted(rising):
            name = next((name for name in demands[n].loads if name in full), "")
            if name or demands[n].rate <= level * (1 + ALMOST):
                rates[n] = min(level, demands[n].rate)
                limits[n] = name if rates[n] < demands[n].rate * (1 - ALMOST) else ""
                rising.discard(n)
    return rates, limits


def rates_with_last(demands: Sequence[Demand], last: int) -> tuple[list[float], list[str]]:
    """The same, if one transfer gets only what the others leave of their fair shares without it: no
    more than its own fair share, and at least `LEAST_SHARE` of that, so that it ends."""
    others = [n for n in range(len(demands)) if n != last]
    found = max_min_rates([demands[n] for n in others])
    fair, fair_limits = max_min_rates(demands)
    rates, limits = [0.0] * len(demands), list(fair_limits)
    left = dict.fromkeys(demands[last].loads, 1.0)
    for n, rate, limit in zip(others, *found, strict=True):
        rates[n], limits[n] = rate, limit
        for name, load in demands[n].loads.items():
            left[name] = left.get(name, 1.0) - rate * load
    most = {name: left[name] / load for name, load in demands[last].loads.items() if load > 0}
    name = min(most, key=lambda each: most[each], default="")
    rates[last] = fair[last]
    if most.get(name, math.inf) < fair[last] * (1 - ALMOST):
        rates[last], limits[last] = max(most[name], LEAST_SHARE * fair[last]), name
    return rates, limits


def fill(demands: Sequence[Demand], last: int | None = None) -> Filled:
    """The transfers from their common start to the last end; the one with the number ``last`` gets
    only what the others leave. Raises `ModelError` for no transfers and for a demand that no time
    can meet."""
    if not demands:
        raise ModelError("a set without transfers takes no time", remedy="name a transfer")
    _require_sense(demands)
    course = _Course(demands, last)
    course.run()
    return course.filled()


class _Course:
    """The course of transfers from their common start: each step lasts until one starts or ends."""

    def __init__(self, demands: Sequence[Demand], last: int | None) -> None:
        self._demands, self._last = demands, last
        self._now = 0.0
        self._starts = _starts(demands)
        self._ends = [math.inf] * len(demands)
        self._waited = [0.0] * len(demands)
        self._left = [float(demand.bytes) for demand in demands]
        self._limited: list[dict[str, float]] = [{} for _ in demands]
        """Bytes of each transfer by what limited it while they moved."""
        self._used: dict[str, list[tuple[float, float]]] = {}
        """The rates of each resource, with how long they lasted."""

    def run(self) -> None:
        while any(math.isinf(end) for end in self._ends):
            for n, start in enumerate(self._starts):  # an end may start the next one
                if self._left[n] <= 0 and self._is_running(n):
                    self._end(n, start)
            moving = [n for n in range(len(self._demands)) if self._is_running(n)]
            waiting = [start for start in self._starts if start > self._now]
            if moving:
                self._move(moving, waiting)
            elif waiting:
                self._now = min(waiting)
            else:
                break

    def _is_running(self, number: int) -> bool:
        """Whether a transfer has started and not ended."""
        return self._starts[number] <= self._now and math.isinf(self._ends[number])

    def _move(self, moving: Sequence[int], waiting: Sequence[float]) -> None:
        """Moves bytes until the first transfer ends or the next one starts."""
        own = [self._demands[n] for n in moving]
        if self._last in moving and len(moving) > 1:
            rates, limits = rates_with_last(own, moving.index(self._last))
        else:
            rates, limits = max_min_rates(own)
        ending = [self._left[n] / rate for n, rate in zip(moving, rates, strict=True)]
        step = min([*ending, *(start - self._now for start in waiting)])
        for name, rate in _rates_of_resources(own, rates):
            self._used.setdefault(name, []).append((rate, step))
        for n, rate, limit in zip(moving, rates, limits, strict=True):
            moved = rate * step
            self._left[n] -= moved
            self._limited[n][limit] = self._limited[n].get(limit, 0.0) + moved
            if self._left[n] <= self._demands[n].bytes * ALMOST:
                self._end(n, self._now + step)
        self._now += step

    def _end(self, ended: int, at: float) -> None:
        """Ends a transfer, and starts the next one of its queue."""
        self._ends[ended] = at
        queue = self._demands[ended].queue
        if not queue:
            return
        for n, demand in enumerate(self._demands):
            if demand.queue == queue and math.isinf(self._starts[n]):
                self._waited[n] = at
                self._starts[n] = at + demand.latency + demand.gap
                return

    def filled(self) -> Filled:
        main = tuple(max(each, key=lambda name: each[name], default="") for each in self._limited)
        least = LASTING * max(self._ends)
        carried = {name: _lasting(each, least) for name, each in self._used.items()}
        return Filled(tuple(self._ends), main, carried, tuple(self._waited))


def _starts(demands: Sequence[Demand]) -> list[float]:
    """When each transfer moves its first byte; infinite while it waits in its queue."""
    first: set[str] = set()
    starts = []
    for demand in demands:
        waits = bool(demand.queue) and demand.queue in first
        first.add(demand.queue)
        starts.append(math.inf if waits else demand.latency)
    return starts


def _rates_of_resources(
    demands: Sequence[Demand], rates: Sequence[float]
) -> Iterable[tuple[str, float]]:
    """The bytes per second that go through each resource."""
    used: dict[str, float] = {}
    for demand, rate in zip(demands, rates, strict=True):
        for name, passes in demand.passes.items():
            used[name] = used.get(name, 0.0) + passes * rate
    return used.items()


def _lasting(used: Sequence[tuple[float, float]], least: float) -> float:
    """The highest rate that was reached for ``least`` seconds together; 0 if none was."""
    lasted = 0.0
    for rate, seconds in sorted(used, reverse=True):
        lasted += seconds
        if lasted >= least:
            return rate
    return 0.0


def _require_sense(demands: Sequence[Demand]) -> None:
    for demand in demands:
        if not 0 < demand.rate < math.inf:
            raise ModelError(
                f"a transfer with a rate of {demand.rate:g} B/s has no end",
                remedy="give it a rate above 0",
            )
        if not (0 <= demand.latency < math.inf and 0 <= demand.gap < math.inf):
            raise ModelError(
                f"a latency of {demand.latency + demand.gap:g} s is not possible",
                remedy="give 0 or more seconds",
            )
        if demand.bytes < 0:
            raise ModelError(f"{demand.bytes} bytes are not possible", remedy="give 0 or more")
        for name, load in demand.loads.items():
            if not 0 <= load < math.inf:
                raise ModelError(
                    f"{name} has no capacity, so a transfer over it has no end",
                    remedy="give it a capacity above 0",
                )
