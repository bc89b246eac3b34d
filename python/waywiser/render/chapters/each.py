"""A chapter with a section for each machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.render.entry import Entry
from waywiser.render.parts import Block, Section


def each(
    entries: Sequence[Entry], anchor: str, title: str, blocks: Callable[[Entry], Sequence[Block]]
) -> Section:
    """A section for each machine that has blocks, if there are several."""
    if len(entries) == 1:
        return Section(anchor, title, tuple(blocks(entries[0])))
    below = (Section(f"{entry.key}{anchor}", entry.name, tuple(blocks(entry))) for entry in entries)
    return Section(anchor, title, (), tuple(part for part in below if part.blocks))
