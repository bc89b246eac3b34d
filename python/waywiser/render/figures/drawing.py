"""A figure as shapes and texts in points, from the top left corner, drawn in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from waywiser.render.figures.styles import MARKERS, Position, Step, Steps
from waywiser.render.figures.text_width import folded
from waywiser.render.figures.theme import INK, SOFT, Colour

Anchor = Literal["start", "middle", "end"]

NOTE_SIZE = 10.0
NOTE_LINE = 13.0
KEY_SIZE = 11.0
KEY_LINE = 17.0
KEY_TEXT = 18.0
"""Text below a drawing that stands alone: the fonts of notes and names, the heights of their lines,
and the space of a marker before a name."""

HALF_CAPITAL = 0.38
"""How far the baseline lies below the middle of a line of text, over the size of the font."""


class Shape(NamedTuple):
    """A path that is filled or stroked in one colour."""

    steps: Steps
    fill: Colour | None = None
    stroke: Colour | None = None
    width: float = 0.0
    """Width of the stroke."""
    dashes: tuple[float, ...] = ()
    """Lengths of dashes and gaps; none for a solid stroke."""
    opacity: float = 1.0


class Text(NamedTuple):
    """One line of text."""

    x: float
    y: float
    """Position of the baseline."""
    text: str
    colour: Colour
    size: float
    anchor: Anchor
    bold: bool


class Key(NamedTuple):
    """A name with the marker of its curve."""

    name: str
    marker: int = 0
    colour: Colour | None = None
    """None for a curve that lies under the one above."""


class Drawing:
    """All that a figure shows."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self.marks: list[Shape | Text] = []
        self.keys: list[Key] = []
        """The names of the curves."""
        self.notes: list[str] = []
        """Sentences about the drawing. A page sets them below it, in its own size of text."""
        self.axes_width = width
        """The width of what a narrow frame shows: all but the names beside the axes."""
        self.names_from: int | None = None
        """The first of the marks that draw the names beside the axes; None if the names are not in
        the drawing."""

    def line(
        self,
        points: Sequence[Position],
        colour: Colour,
        width: float,
        dashes: tuple[float, ...] = (),
    ) -> None:
        """Joins the points."""
        self.marks.append(Shape(_joined(points), stroke=colour, width=width, dashes=dashes))

    def bars(
        self,
        ends: Iterable[tuple[Position, Position]],
        colour: Colour,
        width: float,
        opacity: float,
    ) -> None:
        """Separate lines, each between its two ends."""
        steps = tuple(step for pair in ends for step in _joined(pair))
        self.marks.append(Shape(steps, stroke=colour, width=width, opacity=opacity))

    def area(self, points: Sequence[Position], colour: Colour, opacity: float) -> None:
        """Fills a polygon."""
        self.marks.append(Shape((*_joined(points), ("Z", ())), colour, opacity=opacity))

    def box(
        self,
        corner: Position,
        width: float,
        height: float,
        fill: Colour,
        *,
        edge: Colour | None = None,
        edge_width: float = 0.0,
        radius: float = 0.0,
        dashes: tuple[float, ...] = (),
    ) -> None:
        """A rectangle from its upper left corner, with round corners if there is a ``radius``."""
        (left, top), (right, bottom) = corner, (corner[0] + width, corner[1] + height)
        steps: list[Step] = []
        if radius:
            for n, (x, y, across, down) in enumerate(
                ((left, top, 1, 1), (right, top, -1, 1), (right, bottom, -1, -1),
                 (left, bottom, 1, -1))
            ):  # fmt: skip
                sides = [(x, y + radius * down), (x + radius * across, y)]
                start, end = sides if n % 2 == 0 else sides[::-1]
                steps += [("L" if n else "M", (start,)), ("Q", ((x, y), end))]
        else:
            steps += _joined([corner, (right, top), (right, bottom), (left, bottom)])
        steps.append(("Z", ()))
        self.marks.append(Shape(tuple(steps), fill, edge, edge_width, dashes))

    def arc(
        self,
        start: Position,
        bends: tuple[Position, Position],
        end: Position,
        colour: Colour,
        width: float,
        dashes: tuple[float, ...] = (),
    ) -> None:
        """A curve of Bézier, drawn towards both ``bends``."""
        steps: Steps = (("M", (start,)), ("C", (*bends, end)))
        self.marks.append(Shape(steps, stroke=colour, width=width, dashes=dashes))

    def markers(
        self, centres: Iterable[Position], number: int, colour: Colour, size: float
    ) -> None:
        """The marker of the series with this number, at each centre."""
        outline = MARKERS[number % len(MARKERS)]
        steps = tuple(
            (command, tuple((x + size * dx, y + size * dy) for dx, dy in points))
            for x, y in centres
            for command, points in outline
        )
        self.marks.append(Shape(steps, colour))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: Colour,
        *,
        size: float = 11,
        anchor: Anchor = "start",
        bold: bool = False,
        on_baseline: bool = False,
    ) -> None:
        """Text whose middle is at ``y``, or its baseline."""
        baseline = y if on_baseline else y + HALF_CAPITAL * size
        self.marks.append(Text(x, baseline, text, colour, size, anchor, bold))

    def with_text_below(self) -> Drawing:
        """The drawing with its notes below it, and with its names if they are not in it: for a file
        that stands alone."""
        keys = self.keys if self.names_from is None else []
        lines = [line for note in self.notes for line in folded(note, NOTE_SIZE, self.width)]
        found = Drawing(self.width, self.height)
        found.add(self, 0, 0)
        if not keys and not lines:
            return found
        y = self.height + 4
        for key in keys:
            middle = y + KEY_LINE / 2
            if key.colour is None:
                found.text(KEY_TEXT / 2, middle, "=", INK, size=KEY_SIZE, anchor="middle")
            else:
                found.markers([(KEY_TEXT / 2, middle)], key.marker, key.colour, 5)
            for line in folded(key.name, KEY_SIZE, self.width - KEY_TEXT):
                found.text(KEY_TEXT, y + KEY_LINE / 2, line, INK, size=KEY_SIZE)
                y += KEY_LINE
        for line in lines:
            found.text(0, y + NOTE_LINE / 2, line, SOFT, size=NOTE_SIZE)
            y += NOTE_LINE
        found.height = y + 4
        return found

    def add(self, other: Drawing, x: float, y: float) -> None:
        """All of another drawing, with its top left corner at this place."""
        for mark in other.marks:
            if isinstance(mark, Text):
                self.marks.append(mark._replace(x=mark.x + x, y=mark.y + y))
            else:
                steps = tuple(
                    (command, tuple((px + x, py + y) for px, py in points))
                    for command, points in mark.steps
                )
                self.marks.append(mark._replace(steps=steps))


def _joined(points: Iterable[Position]) -> Steps:
    return tuple(("L" if n else "M", (point,)) for n, point in enumerate(points))
