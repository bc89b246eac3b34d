"""Which GPU of one machine is which of another: numbers shift when one is gone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from waywiser.machine.machine import Gpu, Machine
from waywiser.words import Value


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
