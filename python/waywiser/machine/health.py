"""Error counters of GPUs and their links, read at the beginning and the end of a survey's run.

Through NVML (nvml.h): ECC errors in all of a GPU's memories, since the driver was loaded and ever;
rows of its memory that were remapped; replays on its PCIe link; errors and recoveries of each
NVLink; XID messages of the driver. Each is asked for alone, since each is missing on some GPU,
driver or hypervisor, and what cannot be read says so with the reason: silence is not health.

Nothing is reset: the counters count for everybody, and only what they rose by is a run's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from waywiser.machine.machine import Gpu
from waywiser.machine.nvml import Nvml, field_number
from waywiser.machine.nvml_reader import NvmlReader
from waywiser.words import STANDING_COUNTERS, GpuHealth, Health

ECC = {
    "ECC corrected": (0, 0),
    "ECC uncorrected": (1, 0),
    "ECC corrected ever": (0, 1),
    "ECC uncorrected ever": (1, 1),
}
"""Counter -> NVML's numbers of the type of error and of the counter (volatile, aggregate)."""

REMAPPED = (
    "rows remapped after corrected errors",
    "rows remapped after uncorrected errors",
    *STANDING_COUNTERS,
)
"""Names in the order of NVML's answer."""

PCIE_REPLAYS = "PCIe replays"
LINKS_DOWN = "NVLinks down"
XIDS = "XID messages"
NVLINK_ERRORS = "NVLink errors"
"""What is reported as unavailable if a link has no counter of any generation."""

_LINK_FIELDS = (
    {161: "replays", 162: "recoveries", 163: "CRC errors"},
    {
        208: "receive errors",
        211: "integrity errors",
        214: "failed recoveries",
        215: "recoveries",
    },
)
"""Field values with the link as their scope: those up to NVLink 4, and those from NVLink 5 on."""
_LINK_COUNTERS = {0: "replays", 1: "recoveries", 2: "CRC errors"}
"""The same by ``nvmlDeviceGetNvLinkErrorCounter``, which older drivers know instead."""
_XID_EVENTS = 0x8
_MOST_EVENTS = 1000
"""A GPU that falls off its bus says so again and again."""


class HealthWatch(NvmlReader):
    """Opens NVML for a run and listens for XID messages; `read` it at its start and its end.

    Instances of one GPU are reported once, under the first.
    """

    def __init__(self, gpus: Sequence[Gpu], library: Any | None = None) -> None:
        first = {gpu.pci: gpu for gpu in reversed(gpus)}.values()
        super().__init__(sorted(first, key=lambda gpu: gpu.index), library)
        self._xids: dict[str, list[int]] = {}
        self._deaf: dict[str, str] = {}
        if not self._handles:
            return
        self._events, why = self._door.try_call("EventSetCreate")
        if not why:
            self._stack.callback(self._door.ask, "EventSetFree", self._events)
        self._listen(why)

    def read(self) -> Health:
        """The counters now."""
        taken = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self.reason:
            return Health(taken, reason=self.reason)
        self._hear()
        return Health(taken, tuple(self._gpu(gpu, handle) for gpu, handle in self._handles))

    def _gpu(self, gpu: Gpu, handle: object) -> GpuHealth:
        if handle is None:
            return GpuHealth(gpu.index, gpu.uuid, unavailable={"all": f"not found at {gpu.pci}"})
        counters: dict[str, int] = {}
        unavailable: dict[str, str] = {}
        for name, value in _counters(self._door, handle):
            if isinstance(value, int):
                counters[name] = value
            else:
                unavailable[name] = value
        xids = self._xids.get(gpu.pci, [])
        if gpu.pci in self._deaf:
            unavailable[XIDS] = self._deaf[gpu.pci]
        else:
            counters[XIDS] = len(xids)
        return GpuHealth(gpu.index, gpu.uuid, counters, unavailable, tuple(xids))

    def _listen(self, why: str) -> None:
        for gpu, handle in self._handles:
            reason = why
            if not why:
                _, reason = self._door.try_call(
                    "DeviceRegisterEvents", handle, _XID_EVENTS, self._events
                )
            if reason:
                self._deaf[gpu.pci] = reason

    def _hear(self) -> None:
        """Takes what the driver said since; without waiting."""
        if len(self._deaf) == len(self._handles):
            return
        for _ in range(_MOST_EVENTS):
            event = self._door.ask("EventSetWait_v2", self._events, 0)
            if event is None:
                return
            known = (gpu for gpu, _ in self._handles if self._is_of(event, gpu))
            gpu = next(known, None)
            if gpu is not None:
                self._xids.setdefault(gpu.pci, []).append(int(event.eventData))

    def _is_of(self, event: Any, gpu: Gpu) -> bool:
        address = getattr(self._door.ask("DeviceGetPciInfo", event.device), "busId", "")
        text = address.decode(errors="replace") if isinstance(address, bytes) else str(address)
        return bool(text) and text.lower()[-len(gpu.pci.partition(":")[2]) :] == (
            gpu.pci.partition(":")[2].lower()
        )


def _counters(door: Nvml, handle: object) -> Iterator[tuple[str, int | str]]:
    """Each counter's name with its value, or with the reason why there is none."""
    for name, (error, counter) in ECC.items():
        yield name, _number(door.try_call("DeviceGetTotalEccErrors", handle, error, counter))
    rows, why = door.try_call("DeviceGetRemappedRows", handle)
    for position, name in enumerate(REMAPPED):
        yield name, why or int(rows[position])
    yield PCIE_REPLAYS, _number(door.try_call("DeviceGetPcieReplayCounter", handle))
    yield from _links(door, handle)


def _number(answer: tuple[Any, str]) -> int | str:
    value, why = answer
    return why or int(value)


def _links(door: Nvml, handle: object) -> Iterator[tuple[str, int | str]]:
    links = range(door.links(handle))
    if not links:
        return
    states = [door.ask("DeviceGetNvLinkState", handle, link, default=-1) for link in links]
    if all(state < 0 for state in states):
        yield LINKS_DOWN, "the state of no link is known"
    else:
        yield LINKS_DOWN, states.count(0)
    up = [link for link, state in enumerate(states) if state == 1]
    found = _link_fields(door, handle, up) or _link_counters(door, handle, up)
    yield from found
    if up and not found:
        yield NVLINK_ERRORS, door.try_call("DeviceGetNvLinkErrorCounter", handle, up[0], 0)[1]


def _link_fields(door: Nvml, handle: object, links: Sequence[int]) -> list[tuple[str, int | str]]:
    """The field values of the first generation that answers, in one call for all links."""
    for names in _LINK_FIELDS:
        requested = [(field, link) for link in links for field in names]
        answers = (
            door.ask("DeviceGetFieldValues", handle, requested, default=()) if requested else ()
        )
        if any(answer.nvmlReturn == 0 for answer in answers):
            return [
                (f"NVLink {link} {names[field]}", _value(answer))
                for (field, link), answer in zip(requested, answers, strict=False)
            ]
    return []


def _value(answer: Any) -> int | str:
    if answer.nvmlReturn != 0:
        return f"NVML error {answer.nvmlReturn}"
    return field_number(answer)


def _link_counters(door: Nvml, handle: object, links: Sequence[int]) -> list[tuple[str, int | str]]:
    answers = (
        (f"NVLink {link} {name}", door.ask("DeviceGetNvLinkErrorCounter", handle, link, counter))
        for link in links
        for counter, name in _LINK_COUNTERS.items()
    )
    return [(name, int(value)) for name, value in answers if value is not None]
