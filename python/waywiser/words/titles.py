"""Titles of findings: one line that a person takes in at a glance, with the rest below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import force_setattr

from waywiser.words.sizes_in_text import with_sizes

LONGEST_TITLE = 160
"""Characters of a title at most, its sizes with units."""

LEAST_TITLE = 40
"""A part of a statement that is shorter says too little to be its title."""

_HEAD = 85
"""Characters that stay before what is left out of a statement without an end of a clause."""

_CLAUSES = (re.compile(r"\. |; |: "), re.compile(r", "), re.compile(r" (?=\([^()]*\)([.,;:]|$))"))
_BRACKETS = re.compile(r" \([^()]*\)")
_FIGURE = re.compile(r"\d ?(%|×|GB/s|times|[µm]?s\b)")
_NAME = re.compile(
    r"-> \S+ by [\w-]+(\[[^\]]*\])?( as \S+)?( of [\d.]+( [KMGT]?i?B)?)?( \([a-z]+\))*$"
)


def divided(text: str) -> tuple[str, str]:
    """The title of a statement and what stands below it: the rest after the last clause that fits,
    of those with a figure if there are any; the whole statement if its title must leave out
    brackets for its figure, or else the middle. The rest is empty if all fits."""
    if _fits(text):
        return text, ""
    if found := _clause(text, with_figure=True):
        return found
    bare = _BRACKETS.sub("", text)
    if _fits(bare) and _FIGURE.search(bare):
        return bare, text
    if found := _clause(bare, with_figure=True):
        return found[0], text
    if found := _clause(text):
        return found
    tail = LONGEST_TITLE - _HEAD - len(" … ")
    while not _fits(title := f"{text[:_HEAD].rstrip()} … {text[len(text) - tail :].lstrip()}"):
        tail -= 1
    return title, text


def listed(head: str, parts: Sequence[str]) -> tuple[str, str]:
    """A title that lists as many parts as fit and says how many more there are, and the whole list
    if it does not fit: ``the fastest: a at 8 B; b at 1 MiB; and 1 more``."""
    text = f"{head}: {'; '.join(parts)}"
    if _fits(text):
        return text, ""
    for shown in range(len(parts) - 1, 0, -1):
        title = f"{head}: {'; '.join(parts[:shown])}; and {len(parts) - shown} more"
        if _fits(title):
            return title, text
    return text, ""


def _clause(text: str, *, with_figure: bool = False) -> tuple[str, str] | None:
    """The statement up to its last clause that fits, and the rest; None if none does."""
    for end, start in _ends(text):
        is_figure = not with_figure or _FIGURE.search(text, 0, end)
        if end >= LEAST_TITLE and is_figure and _fits(text[:end]):
            return text[:end], text[start:]
    return None


def divide(value: Any) -> None:
    """Moves what is too long for the ``statement`` of a new value to its ``detail``."""
    title, rest = divided(value.statement)
    if rest:
        force_setattr(value, "statement", title)
        force_setattr(value, "detail", "; ".join(filter(None, (rest, value.detail))))


def _fits(text: str) -> bool:
    return len(text) <= LONGEST_TITLE and len(with_sizes(text)) <= LONGEST_TITLE


def _ends(text: str) -> Iterator[tuple[int, int]]:
    """The ends of clauses with the starts of the next ones, the last one first: sentences before
    parts of lists, and these before brackets. None within brackets, and none after the name of a
    path or of a transfer of a set, which says nothing yet."""
    for kind in _CLAUSES:
        found = [(each.start(), each.end()) for each in kind.finditer(text, 0, LONGEST_TITLE + 2)]
        for end, start in reversed(found):
            before = text[:end]
            is_outside = all(before.count(a) == before.count(b) for a, b in ("()", "[]"))
            if is_outside and not _NAME.search(before):
                yield end, start
