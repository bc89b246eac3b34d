"""What a machine would do with other capacities, latencies or more GPUs.

A link that one transfer fills is what holds single transfers back too: with a faster link they take
less time, by what their bytes took on the link. Nothing else becomes faster, so that a set may be
limited by what was measured of another resource, and no further. Its theoretical peak changes too:
copies reach the same share of it as before.

A machine with more GPUs has more of the same: each new GPU is a copy of a measured one, with its
links. What GPUs share keeps its capacity. If it has none, the model does not know what more GPUs
reach together, and says so (`waywiser.model.capacity.SetPrediction.unknown`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from waywiser.machine import Gpu, Machine
from waywiser.machine.machine import AssumedPeak
from waywiser.model.alone import SampledCurve
from waywiser.model.capacity import Capacity, CapacityKey, CapacityModel, CapacityModelReader
from waywiser.model.errors import ModelError
from waywiser.model.resources import BOTH, MachineResources
from waywiser.words import Transfer, Value, decimal_number

MOST_GPUS = 1024
"""The most GPUs of one machine."""

GPUS = "gpus="
"""What the change of their number begins with."""


def with_capacity(model: CapacityModel, pattern: str, bytes_per_second: float) -> CapacityModel:
    """The model with another capacity of the resources that match the pattern, for all methods that
    use them: ``PCIe to gpu:*``, ``reads of numa:0``. Raises `ModelError` for a capacity that is not
    above 0, and for a pattern that matches no resource."""
    if not 0 < bytes_per_second < math.inf:
        raise ModelError(
            f"{pattern} cannot have a capacity of {bytes_per_second:g} B/s",
            remedy="give a capacity above 0, as in 126GB/s",
        )
    reader = CapacityModelReader(model)
    names = _matching(model, reader, pattern)
    kinds = {use.name: use.kind for t in model.curves for use in reader.uses(Transfer.parse(t))}
    before = {each.key: each for each in model.capacities}
    kept = [each for key, each in before.items() if key not in names]
    changed: list[Capacity] = []
    for key in names:
        of_kind = CapacityKey(kinds.get(key.resource, key.resource), key.method)
        measured = _measured(before.get(key) or before.get(of_kind))
        changed.append(
            Capacity(key.resource, key.method, bytes_per_second, None, "assumed", measured=measured)
        )
    machine = msgspec.structs.replace(
        model.machine, assumed_peaks=_assumed_peaks(model, changed, bytes_per_second)
    )
    return msgspec.structs.replace(model, machine=machine, capacities=tuple(kept + changed))


def _matching(model: CapacityModel, reader: CapacityModelReader, pattern: str) -> list[CapacityKey]:
    """The resources that match, by kind or by name, with the methods that use them. Raises
    `ModelError` if there is none."""
    found: dict[CapacityKey, None] = {}
    known: set[str] = set()
    for text in model.curves:
        transfer = Transfer.parse(text)
        for use in reader.uses(transfer):
            known.add(use.kind)
            if pattern in (use.kind, "*") or fnmatchcase(use.kind, pattern):
                found[CapacityKey(use.kind, reader.method(transfer))] = None
            elif fnmatchcase(use.name, pattern):
                found[CapacityKey(use.name, reader.method(transfer))] = None
    if not found:
        raise ModelError(
            f"no resource of this machine is {pattern!r}",
            remedy=f"use one of: {'; '.join(sorted(known))}",
        )
    return list(found)


def _assumed_peaks(
    model: CapacityModel, changed: Sequence[Capacity], bytes_per_second: float
) -> tuple[AssumedPeak, ...]:
    """The peaks of a machine of which these capacities were changed.

    One transfer reaches a share of the topology's peak; it reaches the same share of the new one.
    The largest share of all methods counts. If no transfer fills the link, its share is not known:
    the peak is the capacity, but no less than the topology shows."""
    names = {each.resource for each in changed}
    found = {p.resource: p for p in model.machine.assumed_peaks if p.resource not in names}
    machine = msgspec.structs.replace(model.machine, assumed_peaks=())
    shown = {
        name: use.bound
        for transfer in map(Transfer.parse, model.curves)
        for use in MachineResources(machine, model.groups).uses(transfer)
        if use.bound is not None and not use.name.endswith(BOTH)
        for name in (use.kind, use.name)
    }
    for name in sorted(names & shown.keys()):
        peak = shown[name]
        measured = max(each.measured for each in changed if each.resource == name)
        share = min(measured / peak, 1.0)
        most = bytes_per_second / share if share else max(bytes_per_second, peak)
        made_of = f"assumed: {most / 1e9:.1f} GB/s instead of {peak / 1e9:.1f} GB/s"
        found[name] = AssumedPeak(name, most, made_of)
    return tuple(found.values())


def _measured(capacity: Capacity | None) -> float:
    """The measured capacity of a link that one transfer fills; 0 for other resources, which do not
    hold single transfers back."""
    if capacity is None:
        return 0.0
    if capacity.basis == "assumed":
        return capacity.measured
    return capacity.bytes_per_second if capacity.basis == "one transfer" else 0.0


def with_latency(model: CapacityModel, pattern: str, seconds: float) -> CapacityModel:
    """The model with another latency of the transfers whose text matches the pattern: all their
    times change by the difference to that of their smallest size. Raises `ModelError` for a latency
    below 0, and for a pattern that matches no transfer."""
    if not 0 <= seconds < math.inf:
        raise ModelError(f"a latency of {seconds:g} s is not possible", remedy="give 0 or more")
    curves = dict(model.curves)
    matching = [text for text in curves if fnmatchcase(text, pattern)]
    for text in matching:
        curve = curves[text]
        change = seconds - min(curve.times)
        times = tuple(max(time + change, 1e-9) for time in curve.times)
        curves[text] = SampledCurve(curve.sizes, times)
    if not matching:
        raise ModelError(
            f"no measured transfer is {pattern!r}",
            remedy=f"write it as the profile has it, as in '{next(iter(curves), 'A -> B by C')}'",
        )
    return msgspec.structs.replace(model, curves=curves)


def with_gpus(model: CapacityModel, count: int) -> CapacityModel:
    """The model of a machine with so many GPUs like the measured ones. Raises `ModelError` if it
    cannot be described."""
    machine = model.machine
    if not 1 <= count <= MOST_GPUS:
        raise ModelError(
            f"a machine with {count} GPUs is not possible", remedy=f"give 1 to {MOST_GPUS}"
        )
    if not machine.gpus:
        raise ModelError(
            "the profile has no GPU that further ones could be like",
            remedy="use a profile of a machine with GPUs",
        )
    if count > len(machine.gpus) and _has_direct_links(machine):
        raise ModelError(
            "its GPUs are linked directly, so that the links of further GPUs are not known",
            remedy="use a profile of a machine with as many GPUs",
        )
    gpus = list(machine.gpus[:count])
    number = max((gpu.index for gpu in gpus), default=-1) + 1
    for n in range(len(gpus), count):
        like = machine.gpus[n % len(machine.gpus)]
        gpus.append(msgspec.structs.replace(like, index=number, uuid=f"{like.uuid}+{number}"))
        number += 1
    indexes = tuple(gpu.index for gpu in gpus)
    are_peers = any(gpu.peers for gpu in machine.gpus)
    machine = msgspec.structs.replace(
        machine, gpus=tuple(_with_peers(gpu, indexes, are_peers=are_peers) for gpu in gpus)
    )
    curves = {
        text: curve
        for text, curve in model.curves.items()
        if all(p.kind != "gpu" or p.index in indexes for p in Transfer.parse(text).path.places)
    }
    return msgspec.structs.replace(model, machine=machine, curves=curves)


def _has_direct_links(machine: Machine) -> bool:
    return any(link.to.startswith("gpu:") for gpu in machine.gpus for link in gpu.nvlinks)


def _with_peers(gpu: Gpu, indexes: tuple[int, ...], *, are_peers: bool) -> Gpu:
    others = tuple(index for index in indexes if index != gpu.index)
    return msgspec.structs.replace(gpu, peers=others if are_peers else ())


# Changes as the user writes them: ``PCIe to gpu:*=126GB/s``.

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


def _count(text: str, most: int) -> int:
    written = text.partition("=")[2].strip()
    if not (written.isascii() and written.isdigit() and 1 <= int(written[:9]) <= most):
        raise ModelError(
            f"--set {text!r} is not a number of GPUs", remedy=f"write gpus=N, N from 1 to {most}"
        )
    return int(written)


class MachineChanges(Value, frozen=True):
    """All changes of a machine."""

    changes: tuple[Change, ...] = ()
    gpus: int | None = None
    """The number of GPUs; None for those of the profile."""

    @classmethod
    def parse(cls, texts: Sequence[str], most_gpus: int = MOST_GPUS) -> MachineChanges:
        """The changes of ``--set``: ``gpus=4``, and those of `Change`. Raises `ModelError`."""
        counts = {text for text in texts if text.replace(" ", "").startswith(GPUS)}
        if len(counts) > 1:
            first, second, *_ = sorted(counts)
            raise ModelError(
                f"--set {first!r} and --set {second!r} contradict each other",
                remedy="remove one of them",
            )
        changes = tuple(Change.parse(text) for text in texts if text not in counts)
        return cls(changes, *(_count(text, most_gpus) for text in counts))

    def __post_init__(self) -> None:
        """Raises `ModelError` for two values of one thing."""
        first: dict[tuple[str, bool], Change] = {}
        for change in self.changes:
            other = first.setdefault((change.pattern, change.is_latency), change)
            if change.value != other.value:
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
