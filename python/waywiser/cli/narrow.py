"""Tables in terminals that are too narrow for them: whole columns go, and never those that speak
against a figure. ``--json`` has all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

GAP = 2
"""Blanks after a column."""

_ANY = (0, 2**31)


def fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    spared: Sequence[str],
    bounds: Mapping[str, tuple[int, int]],
) -> list[int]:
    """The positions of the columns that fit into ``width``, after taking those of ``spared`` away
    one by one as far as that is needed.

    ``bounds`` are the least and the most characters of columns, whatever is in them: what is longer
    folds.
    """
    widths = []
    for n, name in enumerate(columns):
        least, most = bounds.get(name, _ANY)
        needed = max(map(cell_len, (name, *(row[n] for row in rows))))
        widths.append(min(max(needed, least), most))
    kept = list(range(len(columns)))
    for name in spared:
        if sum(widths[n] + GAP for n in kept) - GAP <= width:
            break
        kept = [n for n in kept if columns[n] != name]
    return kept
