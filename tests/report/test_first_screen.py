"""What the first screen of a page says: the status, the headline numbers, what to do."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from kept import RESULTS, unpacked
from report.browser import MOST_WORDS_ON_FIRST_SCREEN
from waywiser.render.assessment import MOST_ADVICE
from waywiser.render.document import document
from waywiser.render.entry import read
from waywiser.render.page import page
from waywiser.render.parts import Document, Remark, Remarks, Sheet, Tile


class Shown(HTMLParser):
    """The text of a page up to its second section that is shown before anything is opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(text[: re.search(r"<section[^>]*id=.headlines", text).start()])  # type: ignore[union-attr]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "link"):
            return
        kind = dict(attrs).get("class") or ""
        inside = any(tag == "details" for tag, _ in self._open)
        hidden = tag in ("head", "svg") or kind in ("skip", "narrow", "aloud")
        self._open.append(
            (tag, hidden or (inside and tag != "summary" and not self._in("summary")))
        )

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "link"):
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not any(hidden for _, hidden in self._open):
            self.words += data.split()

    def _in(self, tag: str) -> bool:
        return any(each == tag for each, _ in self._open)


KEPT = ("2026-11-20-h200/one-gpu/quick", "2026-11-22-check-two-gpus/check-1")


@pytest.fixture(params=[*KEPT, "recorded", "alone", "direct"])
def shown(request: pytest.FixtureRequest, tmp_path: Path) -> Document:
    if "/" not in request.param:
        found: Document = request.getfixturevalue(request.param)
        return found
    file = unpacked(RESULTS / f"{request.param}.wwp.xz", tmp_path / "kept.wwp")
    return document(read([file]))


def test_it_has_few_words_and_the_numbers(shown: Document) -> None:
    words = Shown(page(shown)).words
    assert 40 < len(words) <= MOST_WORDS_ON_FIRST_SCREEN
    text = " ".join(words)
    assert 1 < len(shown.tiles) <= 6
    assert all(f"{each.name} {each.bandwidth} GB/s" in text for each in shown.tiles)


def test_each_number_has_the_interval_of_the_headline_table(shown: Document) -> None:
    (section,) = (each for each in shown.sections if each.anchor == "headlines")
    (sheet,) = section.blocks
    assert isinstance(sheet, Sheet)
    cells = [row.cells[sheet.names.index("GB/s")] for row in sheet.rows]
    table = {(cell.text, cell.note) for cell in cells}
    assert all((tile.bandwidth, tile.sure) in table for tile in shown.tiles)
    assert all(re.fullmatch(r"±<?[\d.]+ %|\d+ proc\.|", tile.sure) for tile in shown.tiles)
    text = " ".join(Shown(page(shown)).words)
    for tile in shown.tiles:
        assert not tile.sure or tile.sure in text
    assert ("±: half of the 95 % interval." in text) == any(
        "±" in tile.sure for tile in shown.tiles
    )


def test_it_states_no_finding_that_every_machine_of_the_class_has(shown: Document) -> None:
    found = shown.first_remarks()
    remarks = found.remarks if found is not None else ()
    assert len(remarks) <= MOST_ADVICE
    text = page(shown)
    for truism in ("move at least", "plan each", "plan with", "Nothing needs attention", "to know"):
        assert truism not in text, truism


@pytest.mark.parametrize(
    ("words", "remedy", "shown"),
    [(4, 4, ["few", "do"]), (4, 300, ["few"]), (12, 4, ["7 findings"])],
)
def test_a_finding_has_the_room_that_is_left(
    recorded: Document, words: int, remedy: int, shown: list[str]
) -> None:
    grave = Remark("error", "a few words " * words, remedy="do it " * remedy)
    sections = [
        msgspec.structs.replace(each, blocks=(Remarks((grave,), of=7),))
        if each.anchor == "findings"
        else each
        for each in recorded.sections
    ]
    found = Shown(page(msgspec.structs.replace(recorded, sections=tuple(sections)))).words
    assert len(found) <= MOST_WORDS_ON_FIRST_SCREEN
    text = " ".join(found)
    assert [each for each in ("few", "do", "7 findings") if f" {each} " in f"{text} "] == shown


def test_a_number_below_what_is_normal_is_marked(recorded: Document) -> None:
    low = Tile("H2D", "12.3", "±0.4 %", 0.2, "3.1 µs", "2 of 4 below normal", "warning", "x")
    text = page(msgspec.structs.replace(recorded, tiles=(low,)))
    (tile,) = re.findall(r'<li class="tile warning">.*?</li>', text, re.DOTALL)
    for part in (
        "12.3",
        "±0.4 %",
        "20% of the bound",
        "3.1 µs",
        "2 of 4 below normal",
        "width: 20.0%",
    ):
        assert part in tile
