"""Writes ``docs/design.svg``: the packages in their layers, and the flow of values between them.

    python docs/design.py > docs/design.svg

The layers are those of the import contract in pyproject.toml, the text of a package is the first
sentence of its docstring. A test checks that the picture is current, that each value of the flow is
defined where it comes from, and that the contract allows each step.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "waywiser"

WIDTH, ROW, GAP, MARGIN = 1000, 46, 10, 20
LINE = 16
"""Pixels that each further line of text adds to a box."""
BOX_TEXT = 13
"""Pixels of the text in a box; a character is taken to be half as wide and a bit more."""


class Step(NamedTuple):
    """A value on its way from the package that defines it to one that reads it."""

    source: str
    value: str
    destination: str


FLOW = (
    (
        Step("machine", "Machine", "measure"),
        Step("measure", "Visit", "profile"),
        Step("profile", "SeriesFrame", "curves"),
        Step("curves", "Curve", "analysis"),
        Step("analysis", "Answer", "render"),
        Step("render", "Document", "cli"),
    ),
    (Step("curves", "Curve", "model"), Step("model", "CapacityModel", "measure")),
    (Step("exchange", "ForeignFile", "profile"),),
    (Step("analysis", "Policy", "transfer"),),
)
"""Chains of steps. Visits are records, whose form is in `waywiser.words`; a policy is a file, which
the transfer library reads."""

FILES = ("Visit", "ForeignFile", "Policy")
"""Values that are written to a file, so that the reader need not import their package."""


def layers() -> list[list[str]]:
    """The packages of each layer of the contract, the uppermost layer first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [[name.strip(" ()") for name in layer.split("|")] for layer in found]


def purpose(name: str) -> str:
    """The first sentence of the docstring of a package or module."""
    file = PACKAGE / name / "__init__.py"
    text = ast.get_docstring(
        ast.parse((file if file.exists() else PACKAGE / f"{name}.py").read_text())
    )
    return " ".join((text or "").split("\n\n")[0].split()).replace("`", "")


def picture() -> str:
    """The whole picture as SVG."""
    shown = [layer for layer in layers() if layer != ["__main__"]]
    top = 40
    parts = [*_heading("Packages: each imports only from layers below it", 24)]
    for layer in shown:
        parts += _layer(layer, top)
        top += _height(layer) + GAP
    below = top + 30
    parts += _heading("Flow: the values that packages hand on", below)
    for n, chain in enumerate(FLOW):
        parts += _chain(chain, below + 16 + n * 52)
    height = below + 16 + len(FLOW) * 52 + 4
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="sans-serif" role="img">',
            "<title>The packages of Waywiser in layers, and the flow of values</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *parts,
            "</svg>",
        ]
    )


def _heading(text: str, y: int) -> Iterator[str]:
    yield f'<text x="{MARGIN}" y="{y}" font-size="16" font-weight="bold">{escape(text)}</text>'


def _layer(names: list[str], y: int) -> Iterator[str]:
    width = _width(names)
    for n, name in enumerate(names):
        x = MARGIN + n * (width + GAP)
        yield _box(x, y, width, _height(names))
        yield _text(x + 10, y + 20, name, bold=True)
        for k, line in enumerate(_lines(name, width)):
            yield _text(x + 10, y + 38 + LINE * k, line)


def _width(names: list[str]) -> float:
    return (WIDTH - 2 * MARGIN - GAP * (len(names) - 1)) / len(names)


def _height(names: list[str]) -> int:
    most = max(len(_lines(name, _width(names))) for name in names)
    return ROW + LINE * (most - 1)


def _lines(name: str, width: float) -> list[str]:
    return textwrap.wrap(purpose(name), int((width - 20) / (BOX_TEXT * 0.54)))


def _chain(chain: tuple[Step, ...], y: int) -> Iterator[str]:
    box, arrow = 76, 72 if len(chain) > 2 else 120
    for n, name in enumerate((chain[0].source, *(step.destination for step in chain))):
        x = MARGIN + n * (box + arrow)
        yield _box(x, y, box, 32)
        yield _text(x + box / 2, y + 20, name, bold=True, middle=True)
        if n < len(chain):
            value = chain[n].value
            yield (
                f'<path d="M{x + box} {y + 22}h{arrow - 2}" stroke="#555" marker-end="url(#tip)"/>'
            )
            yield _text(x + box + arrow / 2, y + 13, value, size=10, middle=True)


def _box(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" '
        'fill="#eef3fa" stroke="#7a93b5"/>'
    )


def _text(
    x: float, y: float, text: str, *, bold: bool = False, middle: bool = False, size: int = BOX_TEXT
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{weight}{anchor}>{escape(text)}</text>'


if __name__ == "__main__":
    print(picture())
