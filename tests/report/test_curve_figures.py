"""Which curves a report draws, and that a method looks the same in all of its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from analysis.questions.subjects import curve, postal, subject
from report import machines
from waywiser.render.chapters.curves import MOST_COLUMNS, curves, table
from waywiser.render.entry import Entry, entry
from waywiser.render.families import MOST_LINES, method, set_label
from waywiser.render.figures.drawing import HALF_CAPITAL, Shape, Text
from waywiser.render.figures.theme import SERIES, Colour
from waywiser.render.markdown import markdown
from waywiser.render.page import page
from waywiser.render.parts import Document, Picture, Section, Sheet
from waywiser.words import format_bytes
from waywiser.words.records import Series

TO, BACK = "pinned@numa:0 -> device@gpu:0", "device@gpu:0 -> pinned@numa:0"
LARGE = (2**26, 2**28)


def pictures(*series: Sequence[Series]) -> list[Picture]:
    chapter = curves([entry(subject(*series, machine=machines.eight_gpus()))])
    return Document("", (), (chapter,), "").pictures()


def looks(picture: Picture) -> dict[str, set[Colour]]:
    """The colours of the markers beside each name."""
    marks = picture.draw().marks
    found: dict[str, set[Colour]] = {}
    for text in (mark for mark in marks if isinstance(mark, Text)):
        for marker in (mark for mark in marks if isinstance(mark, Shape)):
            if marker.fill in SERIES and marker.opacity == 1 and _is_beside(marker, text):
                assert marker.fill is not None
                found.setdefault(text.text, set()).add(marker.fill)
    return found


def _is_beside(marker: Shape, text: Text) -> bool:
    """Whether it is one marker, just before the text and at its middle."""
    points = [point for _, several in marker.steps for point in several]
    left, right = (bound(x for x, _ in points) for bound in (min, max))
    middle = (min(y for _, y in points) + max(y for _, y in points)) / 2
    level = text.y - HALF_CAPITAL * text.size
    return right - left < 8 and 0 < text.x - right < 30 and abs(level - middle) < 1


@pytest.mark.parametrize("name", ["direct", "recorded"])
def test_a_method_has_one_colour_in_all_figures_and_a_colour_one_method(
    name: str, request: pytest.FixtureRequest
) -> None:
    found: dict[str, set[Colour]] = {}
    for picture in request.getfixturevalue(name).pictures():
        if picture.name.startswith(("bandwidth", "latency")):
            for name, colours in looks(picture).items():
                found.setdefault(name, set()).update(colours)
    assert {"copy-engine, pinned", "copy-engine, pageable", "copy-engine"} <= set(found)
    assert all(len(colours) == 1 for colours in found.values()), found
    assert len(set.union(*found.values())) == len(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{TO} by copy-engine", "copy-engine, pinned"),
        (f"{BACK} by copy-engine", "copy-engine, pinned"),
        (f"{BACK} by sm[blocks=64]", "sm[blocks=64], pinned"),
        ("device@gpu:0 -> device@gpu:1 by sm", "sm"),
        ("managed@numa:0 -> managed@gpu:0 by prefetch", "prefetch, managed"),
        ("pageable@numa:0 -> pinned@numa:0 by cpu", "cpu, pageable -> pinned"),
        ("file@file:scratch -> pageable@numa:0 by direct-io", "direct-io, file/pageable"),
        ("pageable@numa:0 -> file@file:scratch by direct-io", "direct-io, file/pageable"),
        (f"{TO} by copy-engine; {BACK} by copy-engine", "copy-engine, pinned"),
    ],
)
def test_a_method_is_named_without_its_direction(text: str, expected: str) -> None:
    (shown,) = entry(subject(curve(text, postal(5e-6, 5e10), (2**20,)))).curves
    assert method(shown, subject().machine.traits) == expected


def test_a_set_is_named_without_its_kinds_of_memory() -> None:
    texts = [f"device@gpu:{n} -> device@gpu:{(n + 1) % 3} by sm" for n in range(3)]
    (shown,) = entry(subject(curve("; ".join(texts), postal(5e-6, 5e10), (2**20,)))).curves
    assert set_label(shown) == "ring gpu:0-2 -> gpu:0-2"


def test_bars_have_the_colours_of_the_lines(recorded: Document) -> None:
    """Whatever is drawn in a colour is by one method: of links nothing is."""
    lines: dict[Colour, str] = {}
    for picture in recorded.pictures():
        if picture.name.startswith(("bandwidth", "latency")):
            lines |= {colour: name for name, (colour,) in looks(picture).items()}
    bars = [each for each in recorded.pictures() if each.name.startswith("bandwidth-bidirectional")]
    assert len(bars) > 1
    for picture in bars:
        assert picture.data is not None
        of_method = {row.cells[-5].text: row for row in picture.data.rows}
        drawn = [m.fill for m in picture.draw().marks if isinstance(m, Shape) and m.fill in SERIES]
        for colour, bar in zip(drawn, of_method, strict=False):
            assert colour is not None and lines.get(colour, bar) == bar
    links = [each for each in recorded.pictures() if each.name.startswith("topology")]
    for picture in links:
        marks = [mark for mark in picture.draw().marks if isinstance(mark, Shape)]
        assert not any(mark.fill in SERIES or mark.stroke in SERIES for mark in marks)


def sets() -> Iterator[list[Series]]:
    slow, fast = postal(5e-6, 5e10), postal(5e-6, 4e11)
    between = ["device@gpu:0 -> device@gpu:1 by sm", "device@gpu:1 -> device@gpu:0 by sm"]
    yield curve("; ".join(between), fast, LARGE)
    disk = "pageable@numa:0 -> file@file:scratch by direct-io"
    back = "file@file:scratch -> pageable@numa:0 by direct-io"
    yield curve(f"{disk}; {back}", postal(5e-6, 2e9), LARGE)
    yield curve(f"{TO} by copy-engine; {BACK} by copy-engine", slow, LARGE)


def test_transfers_over_pcie_come_first_then_those_between_gpus() -> None:
    found = pictures(*sets())
    places = [picture.title.partition(", ")[2] for picture in found]
    assert [place.partition(": bandwidth")[0] for place in places] == [
        *("numa:0 <-> gpu:0", "gpu:0 <-> gpu:1", "numa:0 <-> file:scratch")
    ]
    (bar,) = found[0].data.rows if found[0].data else ()
    assert [cell.text for cell in bar.cells[:2]] == ["copy-engine, pinned", "2 × 256 MiB"]


def test_different_sets_of_one_figure_are_named() -> None:
    directions = ("pinned@numa:0 -> device@gpu:{}", "device@gpu:{} -> pinned@numa:0")
    texts = ["; ".join(f"{each.format(n)} by sm" for n in (0, 1)) for each in directions]
    (found,) = pictures(
        *(curve(text, postal(5e-6, 5e10 / (n + 1)), LARGE) for n, text in enumerate(texts))
    )
    assert found.data is not None
    assert [row.cells[0].text for row in found.data.rows] == [
        *("host-to-all numa:0 -> gpu:0,1", "all-to-host gpu:0,1 -> numa:0")
    ]
    assert found.title.endswith(", host and GPU: bandwidth at 2 × 256 MiB")


def test_all_bars_of_a_figure_are_of_one_size() -> None:
    """The one that most have, though some have larger ones."""
    directions = ("pinned@numa:0 -> device@gpu:{}", "device@gpu:{} -> pinned@numa:0")
    pairs = ["; ".join(f"{each.format(n)} by sm" for n in (0, 1)) for each in directions]
    four = "; ".join(f"{directions[0].format(n)} by sm" for n in range(4))
    small = "; ".join(f"{directions[1].format(n)} by sm" for n in range(4))
    (found,) = pictures(
        *(curve(text, postal(5e-6, 5e10), LARGE) for text in pairs),
        curve(four, postal(5e-6, 5e10), (2**26,)),
        curve(small, postal(5e-6, 5e10), (2**20,)),
    )
    assert found.title.endswith(": bandwidth at 64 MiB each")
    assert found.data is not None
    assert {row.cells[2].text for row in found.data.rows} == {"2 × 64 MiB", "4 × 64 MiB"}
    assert len(found.data.rows) == 3
    assert any("3 of 4 curves" in note for note in found.draw().notes)


def test_a_figure_has_no_more_curves_than_can_be_distinguished_and_says_how_many() -> None:
    kinds = ("pinned", "write-combined", "pageable", "managed")
    several = [
        curve(f"{one}@numa:0 -> {other}@numa:0 by cpu", postal(1e-6, 1e10 * (n + 4 * m + 1)))
        for n, one in enumerate(kinds)
        for m, other in enumerate(kinds)
        if "managed" not in (one, other)
    ]
    assert (MOST_LINES, len(several)) == (8, 9)
    picture = pictures(*several)[0]
    said = (
        f"{MOST_LINES} of {len(several)} curves (within numa:0) are drawn; "
        "the table below has all of the family."
    )
    assert said in picture.draw().notes
    assert picture.data is not None and len(picture.data.columns) == 1 + MOST_LINES


def test_a_path_without_default_settings_is_drawn_with_its_fastest() -> None:
    rates = {"api=sync": 2e10, "api=sync,submit=0": 3e10}
    found = pictures(
        curve("managed@numa:0 -> managed@gpu:0 by prefetch", postal(5e-6, 1e10)),
        *(curve(f"{TO} by copy-engine[{s}]", postal(5e-6, r)) for s, r in rates.items()),
    )
    assert found[0].data is not None
    assert set(found[0].data.names[1:]) == {
        *("prefetch, managed", "copy-engine[api=sync,submit=0], pinned")
    }


def test_one_path_at_one_size_is_no_figure() -> None:
    assert pictures(curve(f"{TO} by copy-engine", postal(5e-6, 5e10), (2**26,))) == []


def entries() -> list[Entry]:
    found = [curve(f"{path} by copy-engine", postal(5e-6, 5e10)) for path in (TO, BACK)]
    made = subject(*found, machine=machines.eight_gpus())
    return [entry(made, name=name, key=f"{name}-") for name in ("a", "b")]


def test_machines_beside_each_other_keep_their_colours() -> None:
    found = Document("", (), (curves(entries()),), "").pictures()
    assert len(found) == 2
    for picture in found:
        columns = picture.data.names if picture.data else ()
        assert columns == ("size", "a", "b")
    assert [looks(picture)["a"] for picture in found] == [{SERIES[0]}, {SERIES[0]}]


def test_the_latency_of_transfers_that_start_together_is_that_of_all() -> None:
    pair = curve(f"{TO} by copy-engine; {BACK} by copy-engine", postal(5e-6, 5e10))
    single = curve(f"{TO} by copy-engine", postal(5e-6, 5e10))
    titles = [
        next(
            mark.text
            for mark in each.draw().marks
            if isinstance(mark, Text) and mark.text.startswith("time")
        )
        for each in pictures(single, pair)
        if each.name.startswith("latency")
    ]
    assert titles == ["time per transfer", "time until all transfers are complete"]


def sheet(*sizes: Sequence[int]) -> Sheet:
    """The table of curves with these sizes."""
    paths = [f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine" for gpu in range(len(sizes))]
    found = [curve(path, postal(5e-6, 5e10), of) for path, of in zip(paths, sizes, strict=True)]
    made = entry(subject(*found))
    return table(made, made.curves, "host to device (H2D)")


def columns(*sizes: Sequence[int]) -> list[str]:
    """The sizes that have a column in the table of curves with these sizes."""
    return list(sheet(*sizes).names[1:-1])


def test_columns_of_a_table_of_many_sizes_are_from_the_smallest_to_the_largest() -> None:
    sizes = columns([2**n for n in range(23)])
    assert len(sizes) == MOST_COLUMNS
    assert (sizes[0], sizes[-1]) == ("1 B", "4 MiB")
    assert {"64 KiB", "1 MiB"} & set(sizes)


def test_sizes_that_most_curves_have_are_the_first_columns() -> None:
    sizes = columns([2**n for n in range(23)], [2**n for n in range(9)])
    assert sizes == [*(f"{2**n} B" for n in range(9)), "4 MiB"]
    assert columns((8, 64)) == ["8 B", "64 B"]


def test_every_size_has_a_column_or_stands_below_its_row() -> None:
    found = sheet([2**n for n in range(23)], [8, 64])
    by_name = {row.cells[0].text: row for row in found.rows}
    many, few = (by_name[name] for name in sorted(by_name))
    others = [part.partition(":")[0] for part in many.more.split("; ")]
    assert {*others, *found.names[1:-1]} == {format_bytes(2**n) for n in range(23)}
    assert found.more == "at other sizes" and not few.more
    section = Section("a", "A", (found,))
    text = markdown(Document("t", (), (section,), "m"))
    assert "| of the bound | at other sizes |" in text and f"| {many.more} |" in text
    assert f"at other sizes: {many.more}" in page(Document("t", (), (section,), "m"))
    assert not sheet((8, 64)).more
