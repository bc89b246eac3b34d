"""One colour and marker for each method, the same in all figures of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waywiser.report.figures.markers import MARKERS
from waywiser.report.figures.theme import SERIES, Colour

Style = int
"""The number of a colour with a marker."""


def assigned(figures: Iterable[Sequence[str]], first: Iterable[str] = ()) -> dict[str, Style]:
    """A style for each method, given the methods that each figure draws.

    No two methods have the same style. Two in one figure have different colours, if the figure has
    no more methods than there are colours. Methods in ``first`` get the first styles; after them
    those in the most figures.
    """
    beside: dict[str, set[str]] = {}
    drawn: dict[str, int] = {}
    for figure in figures:
        for method in figure:
            beside.setdefault(method, set()).update(figure)
            drawn[method] = drawn.get(method, 0) + 1
    begin = [method for method in dict.fromkeys(first) if method in drawn]
    others = sorted((each for each in drawn if each not in begin), key=lambda each: -drawn[each])
    found: dict[str, Style] = {}
    for method in (*begin, *others):
        colours = {found[each] % len(SERIES) for each in beside[method] if each in found}
        free = (n for n in range(len(drawn) + len(SERIES)) if n not in found.values())
        known = list(free)
        found[method] = next((n for n in known if n % len(SERIES) not in colours), known[0])
    return found


def colour_of(style: Style) -> Colour:
    return SERIES[style % len(SERIES)]


def marker_of(style: Style) -> int:
    """The number of its marker: another one each time that the colours begin anew."""
    return (style + style // len(SERIES)) % len(MARKERS)
