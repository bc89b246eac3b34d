"""What two profiles have in common: a survey of which one is a copy, and GPUs.

GPUs are matched because numbers shift when one is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from waywiser.analysis.comparison.node import Node, gpus_of, renumbered
from waywiser.machine.machine import Gpu
from waywiser.profile.series_summary import SeriesSummary
from waywiser.words import Value, Workload


def without_copies(nodes: Sequence[Node]) -> tuple[list[Node], list[tuple[str, str]]]:
    """(the nodes that are surveys of their own, (copy, original) by file).

    Replicates are blocks: one that is counted twice agrees with itself, and makes noise look small
    or a suspicion confirmed. Of a survey and a copy from before it was resumed the former is kept.
    """
    kept: list[Node] = []
    copies: list[tuple[str, str]] = []
    for node in nodes:
        at = next((n for n, known in enumerate(kept) if is_copy(known, node)), None)
        if at is None:
            kept.append(node)
            continue
        copy, original = node, kept[at]
        if not _is_within(node, original):
            copy, original = original, node
            kept[at] = node
        copies.append((copy.called, original.called))
    return kept, copies


def is_copy(one: Node, other: Node) -> bool:
    """Whether two files are of one survey: equal, or one from before it was resumed."""
    same = (one.name, one.created) == (other.name, other.created)
    return same and (_is_within(one, other) or _is_within(other, one))


def _is_within(one: Node, other: Node) -> bool:
    """Whether all blocks of one, and there are some, are blocks of the other, to the last digit."""
    theirs = {series.identity: set(series.blocks) for series in other.series}
    blocks = [(series.identity, block) for series in one.series for block in series.blocks]
    return bool(blocks) and all(block in theirs.get(i, ()) for i, block in blocks)


class Matched(Value, frozen=True):
    """A node with its GPUs beside those of another."""

    node: Node
    numbers: dict[int, int]
    """Numbers of the node's GPUs to those of the other; a GPU that the other does not have gets an
    unused number."""
    missing: tuple[Gpu, ...] = ()
    """GPUs of the other that the node does not have."""
    exchanged: tuple[tuple[Gpu, Gpu], ...] = ()
    """(before, now): another device in the same place."""
    added: tuple[Gpu, ...] = ()
    """GPUs of the node that the other does not have."""

    @property
    def series(self) -> Iterator[SeriesSummary]:
        """Those of the node, with the other's numbers for its GPUs."""
        changed = {new: old for new, old in self.numbers.items() if new != old}
        for series in self.node.series:
            if not changed or not gpus_of(series.workload) & changed.keys():
                yield series
                continue
            moved = renumbered(series.workload, changed)
            yield SeriesSummary.of(moved, series.blocks, series.failures)

    def own_numbers(self, workload: Workload) -> Workload:
        """A workload of the other, with the node's numbers for its GPUs."""
        back = {old: new for new, old in self.numbers.items() if new != old}
        return renumbered(workload, back) if back else workload


def match(other: Node, node: Node) -> Matched:
    """Matches GPUs by UUID first, then by PCI address, which names the place; then by number, if
    neither side gives an address or the machines have different ones."""
    numbers: dict[int, int] = {}
    exchanged: list[tuple[Gpu, Gpu]] = []
    left, right = list(node.machine.gpus), list(other.machine.gpus)

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
    taken = {gpu.index for gpu in other.machine.gpus}
    for gpu in left:
        numbers[gpu.index] = gpu.index if gpu.index not in taken else max(taken) + 1
        taken.add(numbers[gpu.index])
    return Matched(node, numbers, tuple(right), tuple(exchanged), tuple(left))
