"""A heat map of all pairs of nodes on one rail: a row per sender, a column per receiver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from waywiser.analysis.cluster.verdict_values import PairTime
from waywiser.render.figures.drawing import Drawing
from waywiser.render.figures.theme import HEAT, PANEL, SOFT
from waywiser.render.parts import Picture, Sheet, numbers
from waywiser.words import format_time

CELL = 14.0
LEFT = 86.0
TOP = 60.0
MOST_ROWS = 20
"""Pairs of the table: the slowest."""

MOST_LABELS = 24
"""Names at an edge; of more nodes, every second or third is named."""

STEPS = (1.03, 1.06, 1.1, 1.2, 1.5, 2.0)
"""Times beside the usual one at which the next colour begins."""

SCALE_STEP = CELL + 36.0
SCALE_WIDTH = SCALE_STEP * len(HEAT)

HALF_PAGE_NODES = 24

Cells = Mapping[tuple[str, str], PairTime]


def node_matrix(rail: int, nodes: Sequence[str], pairs: Sequence[PairTime]) -> Picture:
    """The pairs of one rail."""
    cells = {(each.sender, each.receiver): each for each in pairs}
    slowest = sorted(pairs, key=lambda each: -each.ratio)
    first = slowest[0]
    title = f"Rail {rail}: time of a message beside the usual one"
    return Picture(
        name=f"pairs-rail-{rail}",
        title=title,
        description=(
            f"From row to column; dark is slow. Slowest: {first.sender} to {first.receiver}, "
            f"{first.ratio:.2f} times the usual time."
        ),
        draw=partial(_draw, tuple(nodes), cells),
        data=Sheet.of(
            f"Rail {rail}: the slowest pairs",
            ("sender", "receiver", *numbers("time", "beside usual", "tests")),
            (
                (p.sender, p.receiver, format_time(p.seconds), f"{p.ratio:.2f} ×", p.tests)
                for p in slowest[:MOST_ROWS]
            ),
        ),
        wide=len(nodes) > HALF_PAGE_NODES,
    )


def step_of(ratio: float) -> int:
    """The colour of a time beside the usual one."""
    return sum(ratio >= each for each in STEPS)


def _draw(nodes: tuple[str, ...], cells: Cells) -> Drawing:
    size = CELL * len(nodes)
    found = Drawing(LEFT + max(size, SCALE_WIDTH) + 2, TOP + size + 2)
    found.text(0, 12, "from row to column, empty: not measured", SOFT, size=10)
    found.notes.append(
        "A dark row is a slow sender, a dark column a slow receiver, a dark block a slow group; a "
        "single dark cell may be one disturbed test."
    )
    _draw_scale(found)
    each_named = -(-len(nodes) // MOST_LABELS)
    for n, node in enumerate(nodes):
        y = TOP + CELL * n
        if n % each_named == 0:
            found.text(LEFT - 6, y + CELL / 2, _short(node), SOFT, size=9, anchor="end")
        _draw_row(found, y, [cells.get((node, other)) for other in nodes])
    for n in range(0, len(nodes), max(each_named, 4)):
        x = LEFT + CELL * (n + 0.5)
        found.text(x, TOP - 8, _short(nodes[n], 8), SOFT, size=9, anchor="middle", on_baseline=True)
    return found


def _draw_scale(found: Drawing) -> None:
    x = LEFT
    for step, colour in enumerate(HEAT):
        found.box((x, 22), CELL, CELL, colour)
        text = f"<{STEPS[0]:g}" if step == 0 else f"{STEPS[step - 1]:g}"
        found.text(x + CELL + 3, 22 + CELL / 2, text, SOFT, size=9)
        x += SCALE_STEP


def _draw_row(found: Drawing, y: float, row: Sequence[PairTime | None]) -> None:
    """Cells of one colour that are beside each other are one box."""
    x = LEFT
    for step, run in groupby(row, lambda each: None if each is None else step_of(each.ratio)):
        width = CELL * len(list(run))
        found.box((x, y + 0.5), width, CELL - 1, PANEL if step is None else HEAT[step])
        x += width


def _short(node: str, most: int = 13) -> str:
    """The end of a long name: numbers are there."""
    return node if len(node) <= most else f"…{node[1 - most :]}"
