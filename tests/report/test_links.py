"""What leads to which curve, and what is drawn of a machine's links."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

import profiles
from analysis.questions.subjects import curve, postal, subject
from analysis.questions.sustained_sets import ALLREDUCE, PRODUCT, sustained
from machine.captured import ALL
from machine.captured import machine as captured
from report import machines
from waywiser.curves.answer import Answer
from waywiser.profile.quality_flags import REMEDIES
from waywiser.render.chapters.curves import table
from waywiser.render.chapters.links import links
from waywiser.render.document import document
from waywiser.render.entry import Entry, entry
from waywiser.render.figures.drawing import Shape, Text
from waywiser.render.figures.matrix import HEAT, Entered, _steps, matrix_picture
from waywiser.render.figures.text_width import BOLD, text_width
from waywiser.render.figures.theme import HEAT_INK, INK
from waywiser.render.figures.topology import line_width
from waywiser.render.links import Links
from waywiser.render.page import page
from waywiser.render.parts import Document, Pictures, Sheet, Sheets
from waywiser.render.rates import Between
from waywiser.render.rates import between_places as between_places_of
from waywiser.render.views.curve_lines import curve_line_sections

CURVE = "pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync]"
PAIR = f"{CURVE}; device@gpu:0 -> pinned@numa:0 by copy-engine as list[piece=4096]"


def test_sets_with_a_collective_have_times_and_no_empty_table() -> None:
    found = entry(subject(sustained((ALLREDUCE, PRODUCT), (1.1, 1.5))))
    (family,) = {each.family for each in found.curves}
    sheet = table(found, found.curves, family)
    assert sheet.names[0] == "path" and "of the bound" not in sheet.names
    assert sheet.caption.startswith("Times, each with ±.")
    pictures = [each for each in links([found]).blocks if isinstance(each, Pictures)]
    (topology,) = [p for each in pictures for p in each.pictures if "topology" in p.name]
    assert topology.data is None
    (lines,) = curve_line_sections(found.curves, dict.fromkeys(REMEDIES, "?"))
    (sheets,) = lines.blocks
    assert isinstance(sheets, Sheets)
    names = sheets.sheets[0].names
    assert "time" in names and "latency" not in names


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


@cache
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


def between_places(of: Entry) -> dict[tuple[str, str], Between]:
    return between_places_of(of.curves, of.subject.machine.traits)


def test_links_are_assessed_by_plain_copies_at_their_largest_size() -> None:
    found = between_places(made("two-socket-4gpu"))
    there = found["numa:0", "gpu:0"]
    assert there.curve.text == "pinned@numa:0 -> device@gpu:0 by copy-engine"
    assert (
        there.most is not None and there.most.bytes == machines.SIZES[-1] and there.least.bytes == 8
    )


def test_the_picture_has_a_table_of_all_that_it_shows() -> None:
    (pictures,) = (b for b in links([made("h200-vm-4gpu")]).blocks if isinstance(b, Pictures))
    topology = pictures.pictures[0]
    assert isinstance(topology.data, Sheet)
    result = {row.cells[0].text for row in topology.data.rows}
    assert {"numa:0 -> gpu:3", "gpu:3 -> numa:0", "gpu:1 -> gpu:2"} <= result


@pytest.mark.parametrize("name", ["h200-vm-4gpu", "two-socket-4gpu", "dgx-1", "mig"])
def test_each_link_has_its_type_bandwidth_and_share_as_in_the_table(name: str) -> None:
    machine = captured(name)
    (pictures,) = (b for b in links([made(name)]).blocks if isinstance(b, Pictures))
    topology = pictures.pictures[0]
    assert topology.data is not None
    written = {mark.text for mark in topology.draw().marks if isinstance(mark, Text)}
    rows = {row.cells[0].text: [cell.text for cell in row.cells] for row in topology.data.rows}
    for gpu in machine.gpus:
        place = f"gpu:{gpu.index}"
        for word, path in (("H2D", f"numa:0 -> {place}"), ("D2H", f"{place} -> numa:0")):
            _, link, bandwidth, share, *_ = rows[path]
            assert link in written and link.startswith("PCIe")
            assert f"{word} {bandwidth} GB/s{', ' if share else ''}{share}" in written
        assert rows[f"{place} -> {place}"][2] in " ".join(written)
    lanes = {link.lanes for gpu in machine.gpus for link in gpu.nvlinks}
    assert all(any(f"{lane} lane" in text for text in written) for lane in lanes)


def test_a_link_below_its_best_shows_both(direct: Document) -> None:
    topology = direct.pictures()[0]
    written = {mark.text for mark in topology.draw().marks if isinstance(mark, Text)}
    assert "PCIe 1 x8 (max 4 x16)" in written


def test_lines_are_wider_the_more_bandwidth_a_link_has() -> None:
    widths = [line_width(bandwidth) for bandwidth in (1, 12, 55, 400, 900)]
    assert widths == sorted(set(widths))


def test_links_that_were_not_measured_are_dashed_and_said_to_be() -> None:
    machine = captured("two-socket-4gpu")
    there = curve("pinned@numa:0 -> device@gpu:0 by copy-engine", postal(5e-6, 2e10))
    found = entry(subject(there, machine=machine))
    (pictures,) = (b for b in links([found]).blocks if isinstance(b, Pictures))
    drawn = pictures.pictures[0].draw()
    marks = drawn.marks
    dashed = [mark for mark in marks if isinstance(mark, Shape) and mark.dashes]
    pairs = len(machine.gpus) * (len(machine.gpus) - 1) // 2
    assert len(dashed) == len(machine.gpus) - 1 + pairs
    assert any("Dashed: not measured." in note for note in drawn.notes)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 16])
def test_no_text_of_a_topology_leaves_it_or_meets_another(count: int) -> None:
    whole = captured("h200-vm-8gpu")
    gpus = tuple(
        msgspec.structs.replace(whole.gpus[n % 8], index=n, numa=n // 4) for n in range(count)
    )
    nodes = tuple(msgspec.structs.replace(whole.numa[0], index=n) for n in range(-(-count // 4)))
    machine = msgspec.structs.replace(whole, gpus=gpus, numa=nodes)
    found = entry(machines.subject(machine, blocks=1, count=6, sizes=(8, 2**26)))
    (pictures,) = (b for b in links([found]).blocks if isinstance(b, Pictures))
    drawn = pictures.pictures[0].draw()
    boxes = [_box(mark) for mark in drawn.marks if isinstance(mark, Text)]
    assert len(boxes) > 4 * count
    for n, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0 and right <= drawn.width and top >= 0 and bottom <= drawn.height
        for other in boxes[:n]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (boxes[n], other)


def _box(text: Text) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of the letters."""
    width = text_width(text.text, text.size) * (BOLD if text.bold else 1)
    left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * width
    return left, text.y - 0.75 * text.size, left + width, text.y + 0.2 * text.size


def test_matrices_are_titled_in_terms_of_the_field(direct: Document) -> None:
    titles = {picture.name: picture.title for picture in direct.pictures()}
    assert titles["matrix-bandwidth"] == "Bandwidth at 1 GiB, GB/s"
    assert titles["matrix-latency"] == "Latency of 8 B, µs"


def test_a_matrix_says_how_many_threads_copy_within_host_memory() -> None:
    host = "pageable@numa:0 -> pageable@numa:0 by cpu"
    curves = [
        curve(host, postal(1e-7, 12e9), (2**26,)),
        curve(f"{host}[threads=8]", postal(1e-7, 80e9), (2**26,)),
        *(
            curve(f"pinned@numa:0 -> device@gpu:{n} by copy-engine", postal(2e-6, 55e9))
            for n in (0, 1)
        ),
    ]
    found = entry(subject(*curves, machine=captured("h200-vm-4gpu")))
    blocks = (block for block in links([found]).blocks if isinstance(block, Pictures))
    pictures = {picture.title: picture for block in blocks for picture in block.pictures}
    (title,) = (title for title in pictures if title.startswith("Bandwidth"))
    note = pictures[title].data.caption
    assert note == "Within host memory: memcpy in 1 thread, pageable host memory."


def test_sides_that_the_system_hides_are_drawn_as_found(alone: Document) -> None:
    topology = alone.pictures()[0]
    assert "found by measurement" in topology.description


def test_noise_makes_no_pattern_in_a_matrix() -> None:
    def step(values: list[float]) -> list[int]:
        cells = {("a", str(n)): Entered(value, "") for n, value in enumerate(values)}
        return [_steps(cells)(value) for value in values]

    assert set(step([100.0, 100.5, 109.0])) == {0}
    assert step([1.0, 1000.0]) == [0, len(HEAT) - 1]


def test_copies_within_the_host_do_not_set_the_colours_of_links() -> None:
    cells = {
        ("numa:0", "numa:0"): Entered(7e-9, "0.007", is_compared=False),
        ("numa:0", "gpu:0"): Entered(2e-6, "2"),
        ("gpu:0", "gpu:1"): Entered(4e-6, "4"),
    }
    assert [_steps(cells)(value) for value in (2e-6, 4e-6)] == [0, len(HEAT) - 1]
    picture = matrix_picture("a", "A", "µs", ["numa:0", "gpu:0", "gpu:1"], cells)
    assert "Highest 4 from gpu:0 to gpu:1, lowest 2 from numa:0 to gpu:0" in picture.description
    inks = {mark.text: mark.colour for mark in picture.draw().marks if isinstance(mark, Text)}
    assert inks["0.007"] == INK and inks["2"] == HEAT_INK[0]


def test_links_of_a_kind_are_compared_at_a_size_that_all_have() -> None:
    """The first of equal paths is measured further than the rest, and rates grow with the size."""
    peers = [
        curve(f"device@gpu:{one} -> device@gpu:{other} by copy-engine", postal(2e-6, 4e11), sizes)
        for one, other, sizes in ((0, 1, (8, 2**20, 2**26, 2**30)), (1, 0, (8, 2**20, 2**26)))
    ]
    found = between_places(entry(subject(*peers)))
    most = [found[pair].most for pair in (("gpu:0", "gpu:1"), ("gpu:1", "gpu:0"))]
    assert {line.bytes for line in most if line is not None} == {2**26}


PEERS = [f"device@gpu:{a} -> device@gpu:{b} by copy-engine" for a, b in ((0, 1), (1, 0))]


def test_a_link_without_a_large_size_has_a_latency_and_no_bandwidth() -> None:
    """It does not take the large size from the others of its kind."""
    sizes = ((8, 4096, 2**26), (8, 4096))
    found = entry(subject(*(curve(path, postal(2e-6, 4e11), each)
                            for path, each in zip(PEERS, sizes, strict=True))))  # fmt: skip
    measured = between_places(found)
    large, small = measured["gpu:0", "gpu:1"], measured["gpu:1", "gpu:0"]
    assert large.most is not None and large.most.bytes == 2**26
    assert small.most is None and small.rate == 0 and small.least.bytes == 8
    (pictures,) = (block for block in links([found]).blocks if isinstance(block, Pictures))
    topology, bandwidth, latency = pictures.pictures
    assert "at 64 MiB" in topology.title and bandwidth.title == "Bandwidth at 64 MiB, GB/s"
    assert latency.title == "Latency of 8 B, µs"
    assert topology.data is not None
    assert [row.cells[0].text for row in topology.data.rows] == ["gpu:0 -> gpu:1"]


def test_links_of_a_few_bytes_have_no_bandwidth() -> None:
    found = entry(subject(*(curve(path, postal(2e-6, 4e11), (8, 4096)) for path in PEERS)))
    (pictures,) = (block for block in links([found]).blocks if isinstance(block, Pictures))
    assert [picture.title for picture in pictures.pictures[1:]] == ["Latency of 8 B, µs"]
    drawn = pictures.pictures[0].draw()
    written = " ".join(m.text for m in drawn.marks if isinstance(m, Text))
    assert "GB/s" not in written and any("Dashed: not measured." in note for note in drawn.notes)


@pytest.mark.parametrize(("numa", "title"), [(1, "numa:1"), (-1, "numa:0, numa:1")])
def test_gpus_are_drawn_at_their_node_or_at_all_if_it_is_not_known(numa: int, title: str) -> None:
    machine = profiles.machine()
    nodes = tuple(msgspec.structs.replace(machine.numa[0], index=n) for n in range(2))
    gpu = msgspec.structs.replace(machine.gpus[0], numa=numa, nvlinks=(), peers=())
    machine = msgspec.structs.replace(machine, numa=nodes, gpus=(gpu,))
    found = entry(subject(curve(profiles.H2D, postal(5e-6, 5e10)), machine=machine))
    (pictures,) = (block for block in links([found]).blocks if isinstance(block, Pictures))
    written = {m.text for m in pictures.pictures[0].draw().marks if isinstance(m, Text)}
    assert title in written and not {"numa:0, numa:1", "numa:1"} - {title} & written
