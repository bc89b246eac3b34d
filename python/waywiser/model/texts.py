"""What a model has found, as terminals and reports show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from waywiser.curves import Classes
from waywiser.curves.classes import Key
from waywiser.machine import Machine
from waywiser.model.capacity import Capacity, CapacityModelReader
from waywiser.model.curve import CurveModel, FittedParameter
from waywiser.model.machine_model import MachineModel
from waywiser.stats import Interval
from waywiser.words import Transfer, Workload, count, format_bytes, format_rate, format_time

MOST_SHARERS = 2
"""Paths that are named beside a capacity."""

FORMS = {
    "line": "one line",
    "switched lines": "lines with switches",
    "neighbours": "between measured sizes",
}
"""From what sizes between measured ones are predicted."""

_GPU = re.compile(r"gpu:\d+")


def first_of_classes(curves: Sequence[CurveModel], machine: Machine) -> list[CurveModel]:
    """The first of each class of equal paths."""
    classes = Classes(machine)
    found: dict[Key, CurveModel] = {}
    for curve in curves:
        found.setdefault(classes.key(Workload.parse(curve.text)), curve)
    return list(found.values())


def form_text(curve: CurveModel) -> str:
    """From what sizes between measured ones are predicted."""
    if curve.borrowed_from:
        return "the shape of an equal path"
    form = FORMS[curve.form]
    if curve.switches:
        form += " at " + ", ".join(format_bytes(each.low) for each in curve.switches[1:])
    return form


def latency_text(parameter: FittedParameter) -> str:
    """``1.35 µs (1.30 to 1.41)``; a dash if it is not identified."""
    if parameter.value is None:
        return "—"
    return with_interval(format_time, parameter.value, parameter.interval)


def bandwidth_text(parameter: FittedParameter) -> str:
    """The same of seconds per byte, as GB/s; in words if the time falls with the size."""
    if parameter.value is None:
        return parameter.reason if parameter.falls else "—"

    def rate(seconds_per_byte: float, sure: float | None) -> str:
        return format_rate(1 / seconds_per_byte, sure)

    around = parameter.interval and Interval(parameter.interval.high, parameter.interval.low)
    return with_interval(rate, parameter.value, around)


def with_interval(
    text: Callable[[float, float | None], str],
    value: float,
    around: Interval | None,
    sure: float | None = None,
) -> str:
    """``55.6 (54.0 to 57.2)``, by ``text`` of each value with its relative interval; without an
    interval by that with ``sure`` in its place."""
    if around is None:
        return text(value, sure)
    sure = abs(around.width) / 2 / value
    return f"{text(value, sure)} ({text(around.low, sure)} to {text(around.high, sure)})"


def not_identified(curves: Sequence[CurveModel]) -> Iterator[str]:
    """Why curves have no latency or bandwidth, with how many."""
    reasons: Counter[tuple[str, str]] = Counter()
    for curve in curves:
        latency, rate = curve.latency.reason, curve.inverse_rate.reason
        if latency and latency == rate:
            reasons["latency and bandwidth", latency] += 1
            continue
        for what, reason in (("latency", latency), ("bandwidth", rate)):
            if reason:
                reasons[what, reason] += 1
    for (what, reason), number in reasons.most_common():
        yield f"Not identified: {what} of {count(number, 'curve')}: {reason}."


class SharedCapacity(NamedTuple):
    """A capacity with the paths that share it."""

    capacity: Capacity
    paths: tuple[str, ...]
    """The shortest first; with ``*`` for the numbers of GPUs."""

    @property
    def rate(self) -> str:
        """``101.6 (99.9 to 103.3)``, in GB/s."""
        own = self.capacity
        return with_interval(format_rate, own.bytes_per_second, own.interval, 0.005)

    @property
    def sharers(self) -> str:
        more = len(self.paths) - MOST_SHARERS
        shown = "; ".join(self.paths[:MOST_SHARERS])
        return f"{shown}; {more} more" if more > 0 else shown


def shared_capacities(model: MachineModel) -> list[SharedCapacity]:
    """The capacities from sets first, each with the paths of its method that use the resource."""
    reader = CapacityModelReader(model.capacities)
    users: dict[tuple[str, str], dict[str, None]] = {}
    for text in model.capacities.curves:
        transfer = Transfer.parse(text)
        ends = f"{transfer.path.source} -> {transfer.path.destination}"
        method = reader.method(transfer)
        for use in reader.uses(transfer):
            users.setdefault((use.kind, method), {})[_GPU.sub("gpu:*", ends)] = None
            if use.name != use.kind:
                users.setdefault((use.name, method), {})[ends] = None
    found = [
        SharedCapacity(each, tuple(sorted(users.get((each.resource, each.method), ()), key=len)))
        for each in model.capacities.capacities
    ]
    return sorted(found, key=lambda each: each.capacity.basis != "sets")
