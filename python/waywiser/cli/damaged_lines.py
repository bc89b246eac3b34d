"""What is said about lines of a cluster's folder that are skipped."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.cli.streams import say
from waywiser.words import count, visible

_MOST_SHOWN = 5


def say_damaged(lines: Sequence[str], total: int) -> None:
    """Names the first lines, and says how many more there are of this total."""
    for line in lines[:_MOST_SHOWN]:
        say(f"waywiser: warning: {visible(line)}\n")
    if (more := total - _MOST_SHOWN) > 0:
        say(f"waywiser: warning: {count(more, 'more line')} of the folder are skipped\n")
