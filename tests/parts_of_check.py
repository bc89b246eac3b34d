"""The parts of what ``waywiser check`` prints."""

from __future__ import annotations

PEERS, NIGHTS = "Beside nodes of its kind", "Over its nights"


def part_of(text: str, title: str) -> list[str]:
    """The lines below a title, up to the next blank line; all lines without it."""
    lines = text.splitlines()
    if title not in lines:
        return lines
    below = lines[lines.index(title) + 1 :]
    return below[: below.index("")] if "" in below else below
