"""Which GPUs answer NVML, and at which addresses are those that do not.

NVML counts GPUs that it gives no handle for: those that this process may not use (a container, a
batch job), and those that are lost. It does not say their addresses; the order of its numbers is
that of the addresses on the PCI bus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from waywiser.machine.facts import SilentGpu
from waywiser.machine.nvml import Nvml, NvmlAnswer, pci_address, read_pci_address

NO_PERMISSION = 4
"""NVML's error for a GPU that this process may not use."""

EXCLUDED = -1
"""Stands for the number of an error: an administrator excluded the GPU (``NVreg_ExcludedGpus``)."""

_LOST = 15
_DEAD = frozenset({_LOST, 16, 999})
"""NVML's errors of a GPU that has a handle and answers nothing: lost, needs a reset, unknown."""

_REASONS = {
    NO_PERMISSION: "no permission",
    6: "NVML does not know it",
    _LOST: "GPU is lost",
    16: "GPU requires a reset",
}


def find_gpus(door: Nvml, addresses: Sequence[str]) -> tuple[list[object], tuple[SilentGpu, ...]]:
    """The handles of the GPUs that answer, and the GPUs that do not. ``addresses`` are those of the
    GPUs on the PCI bus."""
    found = [_probe(door, index) for index in range(door.ask("DeviceGetCount", default=0))]
    handles = [answer.value for answer, _ in found if not answer.reason]
    answered = {address for answer, address in found if not answer.reason and address}
    free = {
        address: door.answer("DeviceGetHandleByPciBusId", address)
        for address in sorted(addresses)
        if address not in answered
    }
    counted = list(_counted(found, free))
    named = {gpu.pci for gpu in counted}
    excluded = _excluded(door)
    uncounted = (
        SilentGpu(-1, pci, EXCLUDED, "excluded by the settings of the driver")
        if pci in excluded
        else _silent(-1, pci, answer)
        for pci, answer in free.items()
        if pci not in named
    )
    return handles, (*counted, *uncounted)


def _excluded(door: Nvml) -> set[str]:
    found = (
        door.ask("GetExcludedDeviceInfoByIndex", index)
        for index in range(door.ask("GetExcludedDeviceCount", default=0))
    )
    return {pci_address(getattr(getattr(each, "pciInfo", None), "busId", "")) for each in found}


def _probe(door: Nvml, index: int) -> tuple[NvmlAnswer, str]:
    """The handle of a GPU that answers, or why it does not, and its address if NVML says it."""
    handle = door.answer("DeviceGetHandleByIndex", index)
    if handle.reason:
        return handle, ""
    address = read_pci_address(door, handle.value)
    first = door.answer("DeviceGetUUID", handle.value)
    return (first if first.error in _DEAD else handle), address


def _counted(
    found: Sequence[tuple[NvmlAnswer, str]], free: Mapping[str, NvmlAnswer]
) -> Iterator[SilentGpu]:
    """The GPUs of NVML's count without an answer, with the free addresses between those of the GPUs
    before and after them; ``free`` are the answers to the question for an address."""
    gap: list[int] = []
    before = ""
    for index, (answer, address) in enumerate([*found, (NvmlAnswer(), "")]):
        if answer.reason and not address:
            gap.append(index)
            continue
        if answer.reason:
            yield _silent(index, address, answer)
        if address or index == len(found):
            between = [each for each in free if before < each and (not address or each < address)]
            errors = [found[silent][0].error for silent in gap]
            for silent, pci in zip(gap, _placed(errors, between, free), strict=True):
                yield _silent(silent, pci, found[silent][0])
            gap, before = [], address


def _placed(
    errors: Sequence[int], between: Sequence[str], free: Mapping[str, NvmlAnswer]
) -> Sequence[str]:
    """The addresses of the GPUs with these errors: all between, if they are as many, else those
    with the same errors, if they are as many; else none is known."""
    alike = [pci for pci in between if free[pci].error in errors]
    return next((each for each in (between, alike) if len(each) == len(errors)), [""] * len(errors))


def _silent(index: int, address: str, answer: NvmlAnswer) -> SilentGpu:
    return SilentGpu(index, address, answer.error, _REASONS.get(answer.error, answer.reason))
