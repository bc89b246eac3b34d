"""Where figures put what they show."""

from __future__ import annotations

import math
import xml.etree.ElementTree as xml

import pytest

from analysis.subjects import curve, postal, subject
from waywiser.analysis.shown import curves
from waywiser.report.figures.axes import Axis, of_rates, of_sizes
from waywiser.report.figures.curves import Drawn, _within, curves_picture
from waywiser.report.figures.drawing import Drawing, Shape
from waywiser.report.figures.markers import MARKERS
from waywiser.report.figures.render import pdf_file, svg_file
from waywiser.report.figures.theme import INK, SERIES
from waywiser.report.parts import Picture

SVG = "{http://www.w3.org/2000/svg}"
COPY = "pinned@numa:0 -> device@gpu:0 by copy-engine"


def test_equal_factors_are_equally_far_apart() -> None:
    axis = of_rates(200.0, 30.0, 0.5, 50.0)
    assert axis.start > axis.at(0.5) > axis.at(50.0) > axis.end
    assert axis.at(0.5) - axis.at(5.0) == pytest.approx(axis.at(5.0) - axis.at(50.0))


@pytest.mark.parametrize("sizes", [(8, 2**30), (4096,), (3000, 5000)])
def test_labelled_sizes_lie_within_their_axis(sizes: tuple[int, ...]) -> None:
    axis = of_sizes(48.0, 448.0, sizes)
    assert axis.ticks
    assert all(48 < axis.at(value) < 448 for value in (*sizes, *(v for v, _ in axis.ticks)))


def test_a_line_is_cut_off_where_it_leaves_the_axes() -> None:
    y = Axis(200.0, 100.0, 0.0, 1.0, ())
    assert _within([(0.0, 150.0), (10.0, 50.0)], y) == [(0.0, 150.0), (5.0, 100.0), (10.0, 100.0)]
    below = _within([(0.0, 150.0), (10.0, 1e6)], y)
    assert below[1][1] == below[2][1] == 200.0 and 0 < below[1][0] < 0.01
    inside = [(0.0, 110.0), (10.0, 190.0)]
    assert _within(inside, y) == inside


@pytest.mark.parametrize("outline", MARKERS)
def test_markers_surround_their_point_and_are_closed(outline: tuple) -> None:
    assert outline[0][0] == "M" and outline[-1][0] == "Z"
    points = [point for _, each in outline for point in each]
    for axis in (0, 1):
        values = [point[axis] for point in points]
        assert min(values) < 0 < max(values)
    assert 0.45 < max(math.hypot(*point) for point in points) < 0.75


def a_picture() -> Picture:
    (shown,) = curves(subject(curve(COPY, postal(2e-6, 5e10))).overview.series)
    return curves_picture("a", "A & B", [Drawn("<one>", tuple(shown.measured), 0)], "bandwidth")


def test_a_curve_has_a_point_for_each_size_at_its_rate() -> None:
    picture = a_picture()
    assert picture.data is not None
    drawn = picture.draw()
    markers = [m for m in drawn.marks if isinstance(m, Shape) and m.fill == SERIES[0]][1]
    moves = [points[0] for command, points in markers.steps if command == "M"]
    assert len(moves) == len(picture.data.rows)
    assert moves == sorted(moves)
    rates = [float(row.cells[1].text) for row in picture.data.rows]
    for (_, y), rate in zip(moves, rates, strict=True):
        higher = [at for (_, at), more in zip(moves, rates, strict=True) if more > 1.1 * rate]
        assert all(at < y for at in higher)


def test_a_file_is_xml_with_the_labels_as_text() -> None:
    root = xml.fromstring(svg_file(a_picture()))
    assert root.findtext(f"{SVG}title") == "A & B: bandwidth over size"
    assert "<one>" in [each.text for each in root.iter(f"{SVG}text")]


def test_a_pdf_has_the_size_of_the_figure_and_keeps_signs_as_they_are() -> None:
    def draw() -> Drawing:
        drawing = Drawing(144, 72)
        drawing.line([(0, 0), (144, 72)], INK, 1, dashes=(4, 2))
        drawing.text(72, 36, "$5 and $_", INK, anchor="middle")
        return drawing

    made = pdf_file(Picture("a", "A", "a", draw))
    assert b"/MediaBox [ 0 0 144 72 ]" in made
