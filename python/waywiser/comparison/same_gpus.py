"""Which GPU of one node is which of another: numbers shift when a GPU is gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from waywiser.comparison.node import Node, gpus_of, renumbered
from waywiser.series.series_summary import SeriesSummary
from waywiser.topology.machine import Gpu
from waywiser.words import Value


class Matched(Value, frozen=True):
    """The GPUs of a node beside those of another."""

    numbers: dict[int, int]
    """Of the node -> of the other; a GPU that the other has not gets a number that it has not."""
    missing: tuple[Gpu, ...] = ()
    """Of the other, that the node has not."""
    exchanged: tuple[tuple[Gpu, Gpu], ...] = ()
    """(before, now): another device in the same place."""
    added: tuple[Gpu, ...] = ()
    """Of the node, that the other has not."""


def match(before: Sequence[Gpu], now: Sequence[Gpu]) -> Matched:
    """By UUID first, then by PCI address, which names the place; then by number, where neither
    side tells an address or the machines have different ones."""
    numbers: dict[int, int] = {}
    exchanged: list[tuple[Gpu, Gpu]] = []
    left, right = list(now), list(before)

    def pair(same: Iterable[tuple[Gpu, Gpu]], other_device: bool) -> None:
        for new, old in list(same):
            if new in left and old in right:
                numbers[new.index] = old.index
                left.remove(new)
                right.remove(old)
                if other_device and new.uuid and old.uuid and new.uuid != old.uuid:
                    exchanged.append((old, new))

    pair(((n, o) for n in left for o in right if n.uuid and n.uuid == o.uuid), False)
    pair(((n, o) for n in left for o in right if n.pci and n.pci == o.pci), True)
    unplaced = not numbers
    pair(
        ((n, o) for n in left for o in right
         if n.index == o.index and (unplaced or not (n.pci and o.pci))),
        True,
    )  # fmt: skip
    taken = {gpu.index for gpu in before}
    for gpu in left:
        numbers[gpu.index] = gpu.index if gpu.index not in taken else max(taken) + 1
        taken.add(numbers[gpu.index])
    return Matched(numbers, tuple(right), tuple(exchanged), tuple(left))


def in_numbers_of(node: Node, matched: Matched) -> tuple[SeriesSummary, ...]:
    """The node's series with the other's numbers for its GPUs."""
    changed = {new: old for new, old in matched.numbers.items() if new != old}
    if not changed:
        return node.series
    return tuple(
        _moved(series, changed) if gpus_of(series.workload) & changed.keys() else series
        for series in node.series
    )


def _moved(series: SeriesSummary, numbers: dict[int, int]) -> SeriesSummary:
    moved = SeriesSummary.of(renumbered(series.workload, numbers))
    return msgspec.structs.replace(moved, blocks=series.blocks, failures=series.failures)
