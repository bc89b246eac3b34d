"""What is said about lines of a cluster's folder that are skipped."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.words import count, visible

_MOST_SHOWN = 5


def damaged_notes(lines: Sequence[str], total: int) -> tuple[str, ...]:
    """Names the first lines, and how many more there are of this total."""
    notes = [f"waywiser: warning: {visible(line)}" for line in lines[:_MOST_SHOWN]]
    if (more := total - _MOST_SHOWN) > 0:
        notes.append(f"waywiser: warning: {count(more, 'more line')} of the folder are skipped")
    return tuple(notes)
