"""Numbers of GPUs: which GPU of one machine is which of another, since numbers shift when one is
gone, and which GPUs a workload names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from waywiser.curves.answer import Device
from waywiser.machine import Gpu, Machine
from waywiser.machine.routes import renumbered_relays
from waywiser.words import MOST_INDEX, Place, Value, Workload, whole_number


class GpuMatch(Value, frozen=True):
    """The GPUs of a machine beside those of another."""

    numbers: dict[int, int] = msgspec.field(default_factory=dict)
    """Numbers of the machine's GPUs to those of the other; a GPU that the other does not have gets
    an unused number."""
    missing: tuple[Gpu, ...] = ()
    """GPUs of the other that the machine does not have."""
    exchanged: tuple[tuple[Gpu, Gpu], ...] = ()
    """(before, now): another device in the same place."""
    added: tuple[Gpu, ...] = ()
    """GPUs of the machine that the other does not have."""

    @property
    def changed(self) -> dict[int, int]:
        """The numbers that differ."""
        return {new: old for new, old in self.numbers.items() if new != old}


def match_gpus(other: Machine, machine: Machine) -> GpuMatch:
    """Matches GPUs by UUID first, then by PCI address, which names the place; then by number, if
    neither side gives an address or the machines have different ones."""
    numbers: dict[int, int] = {}
    exchanged: list[tuple[Gpu, Gpu]] = []
    left, right = list(machine.gpus), list(other.gpus)

    def pair(is_same: Callable[[Gpu, Gpu], bool]) -> None:
        for new, old in [(n, o) for n in left for o in right if is_same(n, o)]:
            if new in left and old in right:
                numbers[new.index] = old.index
                left.remove(new)
                right.remove(old)
                if new.uuid and old.uuid and new.uuid != old.uuid:
                    exchanged.append((old, new))

    pair(lambda new, old: bool(new.uuid) and new.uuid == old.uuid)
    pair(lambda new, old: bool(new.pci) and new.pci == old.pci)
    unplaced = not numbers
    pair(lambda n, o: n.index == o.index and (unplaced or not (n.pci and o.pci)))
    taken = {gpu.index for gpu in other.gpus}
    for gpu in left:
        numbers[gpu.index] = gpu.index if gpu.index not in taken else max(taken) + 1
        taken.add(numbers[gpu.index])
    return GpuMatch(numbers, tuple(right), tuple(exchanged), tuple(left))


Devices = Mapping[int, Device]
"""GPUs by their numbers."""


def device_of(gpu: Gpu) -> Device:
    return Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)


def devices_on(workload: Workload, devices: Devices) -> tuple[Device, ...]:
    """The GPUs of a workload; by their numbers alone if ``devices`` does not have them."""
    gpus = sorted(gpus_of(workload))
    return tuple(devices.get(gpu, Device(f"gpu:{gpu}")) for gpu in gpus)


def gpus_of(workload: Workload) -> set[int]:
    """All GPUs that a workload names, in the parameters of an operation too."""
    return {place.index for place in workload.named_places if place.kind == "gpu"}


def renumbered(workload: Workload, numbers: Mapping[int, int]) -> Workload:
    """The workload with the GPUs under other numbers; those that ``numbers`` does not have keep
    theirs."""
    replace = msgspec.structs.replace

    def moved(place: Place) -> Place:
        if place.kind != "gpu":
            return place
        found = sorted(numbers.get(each.index, each.index) for each in place.each)
        if not place.is_several:
            return Place("gpu", found[0])
        is_range = found == list(range(found[0], found[0] + len(found)))
        return Place("gpu", found[0], last=found[-1]) if is_range else place

    operation = workload.operation
    if operation is not None:
        parameters = {
            key: str(moved(place)) if (place := _gpu_in(value)) else value
            for key, value in operation.parameters.items()
        }
        operation = replace(operation, place=moved(operation.place), parameters=parameters)
    transfers = []
    for transfer in workload.transfers:
        source, destination = (replace(m, place=moved(m.place)) for m in transfer.path.ends)
        path = replace(transfer.path, source=source, destination=destination)
        settings = renumbered_relays(transfer.parameters, numbers)
        transfers.append(replace(transfer, path=path, parameters=settings))
    return replace(workload, transfers=tuple(transfers), operation=operation)


def _gpu_in(value: str) -> Place | None:
    """The GPU that a parameter names; None if it says something else."""
    kind, _, index = value.partition(":")
    number = whole_number(index, MOST_INDEX)
    return Place("gpu", number) if kind == "gpu" and number is not None else None
