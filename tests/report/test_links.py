"""What leads to which curve, and what is drawn of a machine's links."""

from __future__ import annotations

import msgspec
import pytest

from analysis.subjects import curve, postal, subject
from report import machines
from topology.captured import ALL
from topology.captured import machine as captured
from waywiser.analysis.answer import Answer
from waywiser.report.chapters.links import links
from waywiser.report.document import document
from waywiser.report.entry import Entry, entry
from waywiser.report.figures.matrix import HEAT, Entered, _steps
from waywiser.report.links import Links
from waywiser.report.page import page
from waywiser.report.parts import Document, Pictures, Sheet
from waywiser.report.rates import between_places

CURVE = "pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync]"
PAIR = f"{CURVE}; device@gpu:0 -> pinned@numa:0 by copy-engine as list[piece=4096]"


@pytest.mark.parametrize(
    "text",
    [
        CURVE,
        f"{CURVE} of 1048576",
        f"{CURVE} of 1 MiB",
        PAIR,
        f"{CURVE} of 8; device@gpu:0 -> pinned@numa:0 by copy-engine as list[piece=4096] of 8",
    ],
)
def test_a_series_leads_to_its_curve_at_any_size(text: str) -> None:
    found = Links("a-", frozenset({CURVE, PAIR}))
    expected = PAIR if ";" in text else CURVE
    assert found.to(text) == found.anchor(expected)
    assert found.to(text).startswith("a-curve-")


def test_what_is_not_shown_leads_nowhere() -> None:
    found = Links("", frozenset({CURVE}))
    assert found.to("") == found.to("pinned@numa:1 -> device@gpu:0 by sm of 8") == ""


def made(name: str) -> Entry:
    unanswered: tuple[Answer, ...] = ()
    found = entry(machines.subject(captured(name), blocks=1, count=6))
    return msgspec.structs.replace(found, answers=unanswered)


@pytest.mark.parametrize("name", ALL)
def test_every_machine_has_a_page(name: str) -> None:
    text = page(document([made(name)]))
    assert text.rstrip().endswith("</html>")
    assert ('id="links"' in text) == bool(captured(name).gpus)
    assert ("Host memory alone was measured" in text) == (not captured(name).gpus)


def test_links_are_assessed_by_plain_copies_at_their_largest_size() -> None:
    found = between_places(made("two-socket-4gpu"))
    there = found["numa:0", "gpu:0"]
    assert there.curve.text == "pinned@numa:0 -> device@gpu:0 by copy-engine"
    assert there.most.bytes == machines.SIZES[-1] and there.least.bytes == 8


def test_the_picture_has_a_table_of_all_that_it_shows() -> None:
    (pictures,) = (b for b in links([made("h200-vm-4gpu")]).blocks if isinstance(b, Pictures))
    topology = pictures.pictures[0]
    assert isinstance(topology.data, Sheet)
    result = {row.cells[0].text for row in topology.data.rows}
    assert {"numa:0 → gpu:3", "gpu:3 → numa:0", "gpu:1 → gpu:2"} <= result


def test_sides_that_the_system_hides_are_drawn_as_found(alone: Document) -> None:
    topology = alone.pictures()[0]
    assert "found by measurement" in topology.description


def test_noise_makes_no_pattern_in_a_matrix() -> None:
    def step(values: list[float]) -> list[int]:
        cells = {("a", str(n)): Entered(value, "") for n, value in enumerate(values)}
        return [_steps(cells)(value) for value in values]

    assert set(step([100.0, 100.5, 101.0])) == {0}
    assert step([1.0, 1000.0]) == [0, len(HEAT) - 1]


def test_links_of_a_kind_are_compared_at_a_size_that_all_have() -> None:
    """The first of equal paths is measured further than the rest, and rates grow with the size."""
    peers = [
        curve(f"device@gpu:{one} -> device@gpu:{other} by copy-engine", postal(2e-6, 4e11), sizes)
        for one, other, sizes in ((0, 1, (8, 2**20, 2**26, 2**30)), (1, 0, (8, 2**20, 2**26)))
    ]
    found = between_places(entry(subject(*peers)))
    assert {found[pair].most.bytes for pair in (("gpu:0", "gpu:1"), ("gpu:1", "gpu:0"))} == {2**26}
