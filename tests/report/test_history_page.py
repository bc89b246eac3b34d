"""The page of a history in a browser: the worst paths are on the first screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.history.planted_nights import H2D, drift, paths, planted, step
from report.browser import TABLES
from waywiser.analysis.history.history import history_of
from waywiser.render.history import history_document
from waywiser.render.page import page

NODES = 12

ROWS = """() => [...document.querySelectorAll('#changes tbody tr')].slice(0, 3).map(
    row => [row.innerText, row.getBoundingClientRect().bottom])"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nodes: a step, one of all paths, a drift, a suspected loss."""
    every = [path for _, path, _, _ in paths()]
    changes = {2: step(20, 0.8), 5: step(25, 0.9, every), 7: drift(-0.012), 9: step(39, 0.7)}
    surveys = [
        each
        for n in range(NODES)
        for each in planted(f"n{n}", 40, n, change=changes.get(n, lambda path, night: 1.0))
    ]
    file = tmp_path_factory.mktemp("history") / "history.html"
    file.write_text(page(history_document(history_of(surveys))))
    return file


@pytest.mark.parametrize("size", [(1400, 900), (390, 844)], ids=["desk", "phone"])
def test_the_worst_three_are_on_the_first_screen(
    made: Path, chromium: Any, size: tuple[int, int]
) -> None:
    width, height = size
    view = chromium.new_page(viewport={"width": width, "height": height})
    view.goto(made.as_uri())
    rows = view.evaluate(ROWS)
    assert "n2" in rows[0][0] and H2D in rows[0][0].replace("\n", " ")
    assert rows[2][1] <= height
    wide = view.evaluate("document.documentElement.scrollWidth")
    tables = view.evaluate(TABLES)
    view.close()
    assert wide <= width
    assert width > 400 or max(each["over"] for each in tables) <= 1


def test_each_line_of_a_change_leads_to_its_chart(made: Path, chromium: Any) -> None:
    view = chromium.new_page(viewport={"width": 1400, "height": 900})
    view.goto(made.as_uri())
    links = view.evaluate("[...document.querySelectorAll('#changes a')].map(a => a.hash)")
    there = view.evaluate("[...document.querySelectorAll('figure')].map(f => '#' + f.id)")
    view.close()
    assert links and set(links) == set(there)
