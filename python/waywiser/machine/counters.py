"""The byte counters of a GPU's links, through NVML: NVLink per link, and PCIe.

They are field values of ``nvmlDeviceGetFieldValues`` (nvml.h): 138 and 139 count the data of one
NVLink, sent and received, in KiB, with the link's number as the scope; 197 and 198 count what went
over PCIe in bytes, in 32 bits that begin anew at 4 GiB. Not every driver and GPU knows them, so
each is asked for alone, once. ``nvmlDeviceGetPcieThroughput`` is no way: it looks at 20 ms and
blocks for as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from waywiser.machine.machine import Gpu
from waywiser.machine.nvml import Nvml, field_number
from waywiser.machine.nvml_reader import NvmlReader
from waywiser.words.records import LinkBytes

_NVLINK_TX, _NVLINK_RX = 138, 139
_PCIE_TX, _PCIE_RX = 197, 198
_NVLINK_UNIT = 1024
_PCIE_WRAP = 1 << 32
_NAMES = {
    _NVLINK_TX: "NVLink sent",
    _NVLINK_RX: "NVLink received",
    _PCIE_TX: "PCIe sent",
    _PCIE_RX: "PCIe received",
}

_Field = tuple[int, int]
"""Identifier and scope."""

Reading = dict[_Field, int]
"""What the counters of one GPU showed, as they count."""


class _Known(NamedTuple):
    handle: object
    fields: tuple[_Field, ...]
    links: int
    reasons: tuple[str, ...]


class LinkCounters(NvmlReader):
    """The counters of some GPUs, opened and tried once."""

    def __init__(self, gpus: Sequence[Gpu], library: Any | None = None) -> None:
        super().__init__(gpus, library)
        self._known: dict[int, _Known] = {}
        self._reasons: dict[int, tuple[str, ...]] = {}
        for gpu, handle in self._handles:
            if handle is None:
                self._reasons[gpu.index] = (f"NVML does not know the GPU at {gpu.pci}",)
            else:
                self._known[gpu.index] = known = _try(self._door, handle)
                self._reasons[gpu.index] = known.reasons

    def reasons(self, index: int) -> tuple[str, ...]:
        """Why counters of this GPU cannot be read; nothing if all can."""
        return self._reasons.get(index, (self.reason,) if self.reason else ())

    def read(self, indices: Iterable[int]) -> dict[int, Reading]:
        """The counters of the GPUs with these indices, at this moment; one call per GPU."""
        return {index: self._read(self._known[index]) for index in indices if index in self._known}

    def _read(self, known: _Known) -> Reading:
        found = self._door.ask("DeviceGetFieldValues", known.handle, list(known.fields), default=())
        answers = zip(known.fields, found, strict=False)
        return {field: field_number(answer) for field, answer in answers if answer.nvmlReturn == 0}

    def between(self, index: int, before: Reading, after: Reading) -> LinkBytes:
        """What was counted from one reading to the next."""
        known = self._known.get(index)
        if known is None:
            return LinkBytes()
        return LinkBytes(
            nvlink_tx=_nvlink(_NVLINK_TX, known, before, after),
            nvlink_rx=_nvlink(_NVLINK_RX, known, before, after),
            pcie_tx=_pcie(_PCIE_TX, before, after),
            pcie_rx=_pcie(_PCIE_RX, before, after),
        )


def _try(door: Nvml, handle: object) -> _Known:
    """Which counters this GPU has, and for each of the others why not."""
    links = door.links(handle)
    requested = [(field, link) for field in (_NVLINK_TX, _NVLINK_RX) for link in range(links)]
    requested += [(_PCIE_TX, 0), (_PCIE_RX, 0)]
    unsupported_paths: dict[tuple[int, int], list[int]] = {}
    fields = []
    for field in requested:
        answers = door.ask("DeviceGetFieldValues", handle, [field])
        code = answers[0].nvmlReturn if answers else -1
        if code == 0:
            fields.append(field)
        else:
            unsupported_paths.setdefault((field[0], code), []).append(field[1])
    reasons = [] if links else ["NVML shows no NVLink here"]
    for (identifier, code), scopes in unsupported_paths.items():
        which = f" on {len(scopes)} of {links} links" if identifier in (138, 139) else ""
        why = "the call fails" if code < 0 else f"NVML error {code}"
        reasons.append(f"{_NAMES[identifier]} (field {identifier}) is not counted{which}: {why}")
    return _Known(handle, tuple(fields), links, tuple(reasons))


def _nvlink(
    identifier: int, known: _Known, before: Reading, after: Reading
) -> dict[int, int] | None:
    """Bytes by link. A counter that went back was reset meanwhile: then nothing is known."""
    fields = [field for field in known.fields if field[0] == identifier]
    if not fields or not all(field in before and field in after for field in fields):
        return None
    moved = {field[1]: (after[field] - before[field]) * _NVLINK_UNIT for field in fields}
    if any(count < 0 for count in moved.values()):
        return None
    return {link: count for link, count in moved.items() if count}


def _pcie(identifier: int, before: Reading, after: Reading) -> int | None:
    field = (identifier, 0)
    if field not in before or field not in after:
        return None
    return (after[field] - before[field]) % _PCIE_WRAP
