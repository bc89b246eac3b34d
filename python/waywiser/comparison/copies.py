"""Files that hold the same survey: a copy says nothing that the original has not said."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.comparison.node import Node


def without_copies(nodes: Sequence[Node]) -> tuple[list[Node], list[tuple[str, str]]]:
    """(the nodes that are surveys of their own, (copy, original) by file).

    Replicates are blocks: one that is counted twice agrees with itself, and makes noise look small
    or a suspicion confirmed. Of a survey and a copy from before it was resumed the former is kept.
    """
    kept: list[Node] = []
    copies: list[tuple[str, str]] = []
    known: dict[tuple[str, str], list[int]] = {}
    for node in nodes:
        alike = known.setdefault((node.name, node.created), [])
        at = next(
            (n for n in alike if _is_within(kept[n], node) or _is_within(node, kept[n])), None
        )
        if at is None:
            alike.append(len(kept))
            kept.append(node)
            continue
        copy, original = node, kept[at]
        if not _is_within(node, original):
            copy, original = original, node
            kept[at] = node
        copies.append((_called(copy), _called(original)))
    return kept, copies


def _is_within(one: Node, other: Node) -> bool:
    """Whether all blocks of one, and there are some, are blocks of the other, to the last digit."""
    theirs = {series.identity: set(series.blocks) for series in other.series}
    blocks = [(series.identity, block) for series in one.series for block in series.blocks]
    return bool(blocks) and all(block in theirs.get(i, ()) for i, block in blocks)


def _called(node: Node) -> str:
    return node.file or node.name
