"""One colour and marker for each method, the same in all figures of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waywiser.report.figures.markers import MARKERS
from waywiser.report.figures.theme import SERIES, Colour

Style = int
"""The number of a colour with a marker."""

STYLES = len(SERIES) * len(MARKERS)
"""All colours with all markers."""


def assigned(figures: Iterable[Sequence[str]], first: Iterable[str] = ()) -> dict[str, Style]:
    """A style for each method, given the methods that each figure draws.

    No two methods have the same style. Two in one figure have different colours, and different
    markers, if there are enough of them. Methods in ``first`` get the first styles; after them
    those in the most figures.
    """
    drawn_with: dict[str, set[str]] = {}
    drawn: dict[str, int] = {}
    for figure in figures:
        for method in figure:
            drawn_with.setdefault(method, set()).update(figure)
            drawn[method] = drawn.get(method, 0) + 1
    begin = [method for method in dict.fromkeys(first) if method in drawn]
    others = sorted((each for each in drawn if each not in begin), key=lambda each: -drawn[each])
    found: dict[str, Style] = {}
    for method in (*begin, *others):
        known = [found[each] for each in drawn_with[method] if each in found]
        colours, markers = ({part(each) for each in known} for part in (colour_of, marker_of))
        found[method] = min(
            (n for n in range(len(drawn) + STYLES) if n not in found.values()),
            key=lambda n: (colour_of(n) in colours, marker_of(n) in markers),
        )
    return found


def colour_of(style: Style) -> Colour:
    return SERIES[style % len(SERIES)]


def marker_of(style: Style) -> int:
    """The number of its marker: another one each time that the colours begin anew."""
    return (style + style // len(SERIES)) % len(MARKERS)
