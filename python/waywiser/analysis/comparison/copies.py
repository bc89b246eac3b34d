"""Surveys of which one is a copy of the other."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.curves.subject import Subject


def without_copies(nodes: Sequence[Subject]) -> tuple[list[Subject], list[tuple[str, str]]]:
    """(the nodes that are surveys of their own, (copy, original) by file).

    Replicates are blocks: one that is counted twice agrees with itself, and makes noise look small
    or a suspicion confirmed. Of a survey and a copy from before it was resumed the former is kept.
    """
    kept: list[Subject] = []
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


def is_copy(one: Subject, other: Subject) -> bool:
    """Whether two files are of one survey: equal, or one from before it was resumed."""
    same = (one.name, one.created) == (other.name, other.created)
    return same and (_is_within(one, other) or _is_within(other, one))


def _is_within(one: Subject, other: Subject) -> bool:
    """Whether all blocks of one, and there are some, are blocks of the other, to the last digit."""
    theirs = {series.identity: set(series.blocks) for series in other.points}
    blocks = [(series.identity, block) for series in one.points for block in series.blocks]
    return bool(blocks) and all(block in theirs.get(i, ()) for i, block in blocks)
