"""Where figures put what they show."""

from __future__ import annotations

import io
import math
import sys
import xml.etree.ElementTree as xml
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from analysis.questions.subjects import Seconds, curve, postal, subject
from waywiser.curves.curve import Point
from waywiser.render.figures.axes import Axis, gb_per_s_label, size_axis, value_axis
from waywiser.render.figures.bars import Bar, bars_picture
from waywiser.render.figures.curves import (
    BAND,
    LABEL_ROOM,
    LEFT,
    MOST_NAME,
    NAME_SIZE,
    RIGHT,
    Drawn,
    Quantity,
    UsedRange,
    _within,
    curves_picture,
    has_quantity,
)
from waywiser.render.figures.drawing import Drawing, Shape, Text
from waywiser.render.figures.drawn_point import DrawnPoint
from waywiser.render.figures.render import (
    MARGIN,
    PIXELS_PER_INCH,
    POINTS_PER_INCH,
    TITLE_ROOM,
    NoMatplotlib,
    pdf_file,
    png_file,
    svg_file,
)
from waywiser.render.figures.styles import MARKERS, colour_of
from waywiser.render.figures.text_width import text_width
from waywiser.render.figures.theme import INK, SERIES
from waywiser.render.parts import Picture
from waywiser.words import format_bytes

SVG = "{http://www.w3.org/2000/svg}"
COPY = "pinned@numa:0 -> device@gpu:0 by copy-engine"


def test_equal_factors_are_equally_far_apart() -> None:
    axis = value_axis(200.0, 30.0, 0.5, 50.0, gb_per_s_label)
    assert axis.start > axis.at(0.5) > axis.at(50.0) > axis.end
    assert axis.at(0.5) - axis.at(5.0) == pytest.approx(axis.at(5.0) - axis.at(50.0))


@pytest.mark.parametrize("sizes", [(8, 2**30), (4096,), (3000, 5000)])
def test_labelled_sizes_lie_within_their_axis(sizes: tuple[int, ...]) -> None:
    axis = size_axis(48.0, 448.0, sizes)
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
    (shown,) = subject(curve(COPY, postal(2e-6, 5e10))).curves
    return curves_picture("a", "A & B", [Drawn.of("<one>", shown.measured, 0)], "bandwidth")


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


def test_a_png_has_the_figure_with_a_margin_and_its_title_in_sharp_pixels() -> None:
    from matplotlib.image import imread

    picture = a_picture()
    drawn = picture.draw().with_text_below()
    pixels = imread(io.BytesIO(png_file(picture)), format="png")
    scale = PIXELS_PER_INCH / POINTS_PER_INCH
    assert pixels.shape[1] == int((drawn.width + 2 * MARGIN) * scale)
    assert pixels.shape[0] == int((drawn.height + 2 * MARGIN + TITLE_ROOM) * scale)
    margin, below = int(MARGIN * scale), int((MARGIN + TITLE_ROOM) * scale)
    assert pixels[margin:below, margin:-margin].min() < 0.5  # the title
    for edge in (pixels[: margin - 2], pixels[-margin:], pixels[:, : margin - 2]):
        assert edge.min() == 1.0


@pytest.mark.parametrize("made", [pdf_file, png_file])
def test_without_matplotlib_the_error_says_what_is_missing(
    made: Callable[[Picture], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoMatplotlib, match="matplotlib") as raised:
        made(a_picture())
    assert "\n" not in str(raised.value)
    assert "<svg" in svg_file(a_picture())


SIZES = tuple(2**n for n in range(3, 28, 4))


def measured(seconds: Seconds, sizes: Sequence[int] = SIZES) -> list[Point]:
    (shown,) = subject(curve(COPY, seconds, sizes, noise=0, between=0)).curves
    return shown.measured


def drawn(label: str, seconds: Seconds, style: int = 0, sizes: Sequence[int] = SIZES) -> Drawn:
    return Drawn.of(label, measured(seconds, sizes), style)


def texts(picture: Picture) -> list[Text]:
    """All that a file of the figure says."""
    return [mark for mark in picture.draw().with_text_below().marks if isinstance(mark, Text)]


def picture_of(*several: Drawn, what: Quantity = "bandwidth") -> Picture:
    return curves_picture("a", "A", several, what)


def test_names_are_at_the_ends_of_lines_if_there_is_room() -> None:
    picture = picture_of(*(drawn(f"curve {n}", postal(1e-6, 1e9 * 4**n), n) for n in range(4)))
    names = [text for text in texts(picture) if text.text.startswith("curve")]
    assert [text.text for text in sorted(names, key=lambda text: text.y)] == [
        *("curve 3", "curve 2", "curve 1", "curve 0")
    ]
    assert len({text.x for text in names}) == 1
    width = picture.draw().width
    assert all(text.x + text_width(text.text, text.size) <= width for text in names)
    heights = sorted(text.y for text in names)
    assert all(low + NAME_SIZE <= high for low, high in pairwise(heights))


def test_names_too_long_for_that_are_below_the_axes() -> None:
    label = "n" * 40
    assert text_width(label, NAME_SIZE) > MOST_NAME
    picture = picture_of(drawn(label, postal(1e-6, 1e9)), drawn("short", postal(1e-6, 8e9), 1))
    axis = max(text.y for text in texts(picture) if text.text.endswith("iB"))
    named = [text for text in texts(picture) if text.text in (label, "short")]
    assert len(named) == 2 and all(text.y > axis for text in named)


@pytest.mark.parametrize("label", ["short", "n" * 40])
def test_the_axes_are_equally_wide_with_and_without_names_beside_them(label: str) -> None:
    found = picture_of(drawn(label, postal(1e-6, 1e9))).draw()
    assert found.axes_width == RIGHT + LABEL_ROOM
    assert (found.names_from is None) == (found.width == found.axes_width) == (label != "short")
    assert [key.name for key in found.keys] == [label]
    names = found.marks[found.names_from :] if found.names_from is not None else []
    axes = [mark for mark in found.marks if mark not in names]
    assert all(mark.x <= found.axes_width for mark in axes if isinstance(mark, Text))
    assert any(isinstance(mark, Text) and mark.text == label for mark in names) == bool(names)


def strokes(picture: Picture, style: int) -> list[Shape]:
    found = [mark for mark in picture.draw().marks if isinstance(mark, Shape)]
    return [each for each in found if each.stroke == SERIES[style] and each.opacity == 1]


def test_lines_join_neighbouring_sizes_of_a_sweep_alone() -> None:
    far = (2**15, 2**20, 2**24, 2**28)
    part = (2**16, 2**17, 2**18, 2**23, 2**26, 2**27)
    found = picture_of(
        drawn("a", postal(1e-6, 1e9), sizes=far), drawn("b", postal(1e-6, 1e10), 1, part)
    )
    assert not strokes(found, 0)
    ends = sorted(len(line.steps) for line in strokes(found, 1))
    assert ends == [2, 3]
    assert any(
        isinstance(mark, Shape) and mark.fill == SERIES[0] and mark.opacity == 1
        for mark in found.draw().marks
    )


def test_curves_that_nobody_can_distinguish_are_drawn_once_and_both_named() -> None:
    sizes = tuple(2**n for n in range(14, 28))
    one, other = postal(1e-6, 1e9), postal(1e-6, 1.004e9)
    picture = picture_of(drawn("a", one, sizes=sizes), drawn("b", other, 1, sizes))
    assert strokes(picture, 0) and not strokes(picture, 1)
    written = [text.text for text in texts(picture)]
    assert {"a", "b", "="} <= set(written)
    assert "differs by at most 0.4 %" in " ".join(written)


def test_a_part_of_a_curve_that_is_hidden_is_named_with_its_sizes() -> None:
    def bends(size: int) -> float:
        return 2 * (1e-6 + size / 1e9) if size < 2**20 else 1e-6 + size / 1e9

    sizes = tuple(2**n for n in range(14, 29))
    picture = picture_of(drawn("a", postal(1e-6, 1e9), sizes=sizes), drawn("b", bends, 1, sizes))
    assert strokes(picture, 0) and strokes(picture, 1)
    assert "a hides b from 1 MiB to 256 MiB." in [text.text for text in texts(picture)]
    apart = picture_of(drawn("a", postal(1e-6, 1e9)), drawn("b", postal(1e-6, 2e9), 1))
    assert not any("hides" in text.text or text.text == "=" for text in texts(apart))


def test_latency_is_drawn_of_small_sizes_and_bandwidth_of_large_ones() -> None:
    small, large = (8, 64, 4096), (2**24, 2**26, 2**28)
    of_small = [drawn("a", postal(1e-6, 1e9), sizes=small)]
    of_large = [drawn("a", postal(1e-6, 1e9), sizes=large)]
    assert has_quantity(of_small, "latency") and not has_quantity(of_small, "bandwidth")
    assert has_quantity(of_large, "bandwidth") and not has_quantity(of_large, "latency")
    both = picture_of(drawn("a", postal(1e-6, 1e9), sizes=small + large), what="latency")
    assert both.data is not None
    assert [row.cells[0].text for row in both.data.rows] == ["8 B", "64 B", "4 KiB"]


def test_a_band_shows_which_curve_to_use() -> None:
    curves = [drawn("plain", postal(5e-6, 1e10), 0), drawn("staged", postal(2e-5, 5e10), 1)]
    used = (UsedRange(SIZES[0], SIZES[3], 0), UsedRange(SIZES[4], SIZES[-1], 1))
    picture = curves_picture("a", "A", curves, "bandwidth", used=used)
    bands = [m for m in picture.draw().marks if isinstance(m, Shape) and m.width == BAND]
    assert [band.stroke for band in bands] == [colour_of(0), colour_of(1)]
    ends = [(band.steps[0][1][0][0], band.steps[1][1][0][0]) for band in bands]
    assert ends[0][0] == LEFT and ends[0][1] == ends[1][0] < ends[1][1]
    assert picture.data is not None and picture.data.names[-1] == "use"
    assert [row.cells[-1].text for row in picture.data.rows] == ["plain"] * 4 + ["staged"] * 3
    without = curves_picture("a", "A", curves, "bandwidth").draw()
    assert not any(isinstance(m, Shape) and m.width == BAND for m in without.marks)


def test_bars_are_as_long_as_their_bandwidth() -> None:
    lines = [measured(postal(1e-6, rate))[-1] for rate in (4e10, 2e10)]
    bars = [Bar(f"set {n}", "method", DrawnPoint.of(line), n) for n, line in enumerate(lines)]
    picture = bars_picture("a", "A", bars, "2 of 5")
    assert picture.draw().notes[-1] == "2 of 5"
    boxes = [mark for mark in picture.draw().marks if isinstance(mark, Shape) and mark.fill]
    lengths = [abs(each.steps[1][1][0][0] - each.steps[0][1][0][0]) for each in boxes]
    rates = [line.estimate.rate.value for line in lines if line.estimate and line.estimate.rate]
    assert lengths[0] / lengths[1] == pytest.approx(rates[0] / rates[1])
    written = [text.text for text in texts(picture)]
    assert {"2 of 5", "set 1", "method"} <= set(written)
    assert picture.title == f"A: bandwidth at {format_bytes(lines[1].bytes)}"
    assert picture.data is not None
    for bar, row in zip(bars, picture.data.rows, strict=True):
        share = f"{bar.point.of_bound:.0%}" if bar.point.of_bound else ""
        assert row.cells[-1].text == share
        assert any(f"{row.cells[3].text} GB/s" in text for text in written)
