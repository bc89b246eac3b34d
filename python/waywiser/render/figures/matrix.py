"""A heat map of all ordered pairs of places, with a figure in each cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from waywiser.render.figures.drawing import Drawing
from waywiser.render.figures.text_width import text_width
from waywiser.render.figures.theme import HEAT, HEAT_INK, INK, PANEL, PAPER, SOFT
from waywiser.render.parts import Picture
from waywiser.render.views.pairs import Entered, pair_sheet

CELL_WIDTH = 52.0
CELL_GAP = 6.0
CELL_HEIGHT = 34.0
LEFT = 62.0
TOP = 46.0
LEAST_WIDTH = 320.0

MOST_IN_COLUMN = 7
"""Places whose matrix can be read in half a page's width."""

LEAST_RANGE = 2.0
"""The last step is at least so many times the first, or small differences would look large."""


def matrix_picture(
    name: str,
    title: str,
    unit: str,
    places: Sequence[str],
    entered: Mapping[tuple[str, str], Entered],
    note: str = "",
) -> Picture:
    """``entered`` by (source, destination); what is missing stays empty. The ``note`` stands below
    the table."""
    known = dict(entered)
    compared = {key: cell for key, cell in known.items() if cell.is_compared} or known
    low = min(compared.items(), key=lambda item: item[1].value)
    high = max(compared.items(), key=lambda item: item[1].value)
    return Picture(
        name=name,
        title=f"{title}, {unit}",
        description=(
            f"From row to column. Highest {high[1].text} from {high[0][0]} to {high[0][1]}, lowest "
            f"{low[1].text} from {low[0][0]} to {low[0][1]}."
        ),
        draw=partial(_draw, tuple(places), known),
        data=pair_sheet(f"{title}, {unit}", places, known, note),
        wide=len(places) > MOST_IN_COLUMN,
    )


def _draw(places: tuple[str, ...], entered: Mapping[tuple[str, str], Entered]) -> Drawing:
    texts = [cell.text for cell in entered.values()]
    widest = max(text_width(text, 11) for text in (*texts, *places))
    cell_width = max(CELL_WIDTH, widest + CELL_GAP)
    left = max(LEFT, max(text_width(place, 10) for place in places) + 10)
    width = max(left + cell_width * len(places) + 2, LEAST_WIDTH)
    found = Drawing(width, TOP + CELL_HEIGHT * len(places) + 2)
    steps = _steps(entered)
    missing = len(entered) < len(places) ** 2
    head = f"from row to column{', empty: not measured' if missing else ''}"
    found.text(0, 12, head, SOFT, size=10)
    for n, place in enumerate(places):
        middle = left + cell_width * (n + 0.5)
        found.text(middle, TOP - 10, place, SOFT, size=10, anchor="middle", on_baseline=True)
        y = TOP + CELL_HEIGHT * (n + 0.5)
        found.text(left - 8, y, place, SOFT, size=10, anchor="end")
        for column, other in enumerate(places):
            corner = (left + cell_width * column, TOP + CELL_HEIGHT * n)
            cell = entered.get((place, other))
            step = steps(cell.value) if cell and cell.is_compared else None
            fill, ink = (PANEL, INK) if step is None else (HEAT[step], HEAT_INK[step])
            found.box(corner, cell_width, CELL_HEIGHT, fill, edge=PAPER, edge_width=2)
            if cell is not None:
                found.text(corner[0] + cell_width / 2, y, cell.text, ink, anchor="middle")
    return found


def _steps(entered: Mapping[tuple[str, str], Entered]) -> Callable[[float], int]:
    """A value's step of `HEAT`, on a logarithmic scale: bandwidths differ by factors."""
    compared = [cell.value for cell in entered.values() if cell.is_compared]
    logs = [math.log(value) for value in compared if value > 0] or [0.0]
    low, high = min(logs), max(logs)
    if high - low < math.log(LEAST_RANGE):
        high = low + math.log(LEAST_RANGE)

    def step(value: float) -> int:
        share = (math.log(value) - low) / (high - low) if value > 0 else 0.0
        return min(len(HEAT) - 1, max(0, int(share * len(HEAT))))

    return step
