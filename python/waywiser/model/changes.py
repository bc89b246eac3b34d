"""Changes of a machine as the user writes them: ``PCIe to gpu:*=126GB/s``."""

from __future__ import annotations

import math
import re

from waywiser.model.capacity import CapacityModel
from waywiser.model.errors import ModelError
from waywiser.model.whatif import with_capacity, with_gpus, with_latency
from waywiser.words import Value
from waywiser.words.numbers import decimal_number

LATENCY = "latency "
"""How the change of a latency begins; the pattern of its transfers follows."""

RATES = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

LEAST_RATE, MOST_RATE = 1e3, 1e15
"""Limits of a capacity, in bytes per second."""
MOST_LATENCY_SECONDS = 10.0

_VALUE = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Zµ/]+)\s*")


class Change(Value, frozen=True):
    """Another capacity of some resources, or another latency of some transfers."""

    pattern: str
    value: float
    """Bytes per second, or seconds."""
    is_latency: bool = False
    text: str = ""
    """As it was written."""

    @classmethod
    def parse(cls, text: str) -> Change:
        """Raises `ModelError` for a text that is not ``NAME=VALUE`` with a unit, and for values
        that no machine has."""
        pattern, equals, written = text.rpartition("=")
        is_latency = pattern.strip().startswith(LATENCY)
        if is_latency:
            pattern = pattern.strip().removeprefix(LATENCY)
        units = TIMES if is_latency else RATES
        found = _VALUE.fullmatch(written)
        value = decimal_number(found[1]) * units.get(found[2], math.nan) if found else math.nan
        if not (equals and pattern.strip()) or math.isnan(value):
            raise ModelError(
                f"--set {text!r} is not a change",
                remedy="write 'PCIe to gpu:*=126GB/s', or 'latency A -> B by X=1.5us'",
            )
        low, high = (0.0, MOST_LATENCY_SECONDS) if is_latency else (LEAST_RATE, MOST_RATE)
        if not low <= value <= high:
            allowed = "0 to 10 s" if is_latency else "1 kB/s to 1000 TB/s"
            raise ModelError(f"--set {text!r} is out of range", remedy=f"give {allowed}")
        return cls(pattern.strip(), value, is_latency, text.strip())

    def applied(self, model: CapacityModel) -> CapacityModel:
        """Raises `ModelError` for a pattern that matches nothing."""
        change = with_latency if self.is_latency else with_capacity
        return change(model, self.pattern, self.value)


class MachineChanges(Value, frozen=True):
    """All changes of a machine."""

    changes: tuple[Change, ...] = ()
    gpus: int | None = None
    """The number of GPUs; None for those of the profile."""

    def __post_init__(self) -> None:
        """Raises `ModelError` for two values of one thing."""
        for n, change in enumerate(self.changes):
            for other in self.changes[:n]:
                same = (change.pattern, change.is_latency) == (other.pattern, other.is_latency)
                if same and change.value != other.value:
                    raise ModelError(
                        f"--set {other.text!r} and --set {change.text!r} contradict each other",
                        remedy="remove one of them",
                    )

    def applied(self, model: CapacityModel) -> CapacityModel:
        """The changed model: first the number of GPUs, then the changes in their order. Raises
        `ModelError`."""
        if self.gpus is not None:
            model = with_gpus(model, self.gpus)
        for change in self.changes:
            model = change.applied(model)
        return model

    def __str__(self) -> str:
        """``8 GPUs, PCIe to gpu:*=126GB/s``; empty for no changes."""
        gpus = [] if self.gpus is None else [f"{self.gpus} GPU{'s' * (self.gpus != 1)}"]
        return ", ".join([*gpus, *(change.text for change in self.changes)])
