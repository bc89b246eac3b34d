from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import profiles
from waywiser.curves.overview import overview
from waywiser.profile import Profile
from waywiser.render.parts import Sheet, SheetCell, SheetColumn, Sheets, numbers
from waywiser.render.terminal import print_parts
from waywiser.render.views.profile import profile_parts

ROWS = [("8 B", "1.5 µs", "20×2", "ab"), ("1 GiB", "20 ms", "6×2", "")]


def printed(sheet: Sheet | Sheets, width: int) -> str:
    output = StringIO()
    print_parts(Console(width=width, file=output), [sheet])
    return output.getvalue()


def kept(width: int, **first: Any) -> list[str]:
    columns = (
        SheetColumn("size", **first),
        SheetColumn("time", number=True, spared=2),
        SheetColumn("samples", number=True, spared=1),
        "",
    )
    return printed(Sheet.of("", columns, ROWS), width).splitlines()[0].split()


def test_what_fits_stays() -> None:
    assert kept(26) == ["size", "time", "samples"]  # 5 + 6 + 7 + 2 and three gaps of 2
    assert kept(25) == ["size", "time"]


def test_columns_go_in_the_order_named_and_others_never() -> None:
    assert kept(17) == ["size", "time"]
    assert kept(16) == ["size"]
    assert kept(1) == ["size"]


def test_columns_count_for_no_less_and_no_more_than_their_bounds() -> None:
    assert kept(26, least=6) == ["size", "time"]
    assert kept(25, folds=True, most=4) == ["size", "time", "samples"]


def test_a_column_becomes_brief_before_it_is_left_out() -> None:
    columns = (
        SheetColumn("path"),
        SheetColumn("size", spared=2),
        SheetColumn("normal for", short="normal", spared=1, shortened=3),
    )
    cells = "H2D", "64 MiB", SheetCell("PCIe 9 x4: 1–2", brief="1–2")
    sheet = Sheet.of("", columns, [cells])
    for width, lines in (
        (40, ["path  size    normal for", "H2D   64 MiB  PCIe 9 x4: 1–2"]),
        (25, ["path  size    normal", "H2D   64 MiB  1–2"]),
        (15, ["path  normal", "H2D   1–2"]),
        (10, ["path", "H2D"]),
    ):
        assert printed(sheet, width).splitlines() == lines


def test_a_brief_text_stands_for_others_before_a_column_folds() -> None:
    columns = (SheetColumn("path", folds=True, most=8), SheetColumn("", brief="!"))
    sheet = Sheet.of("", columns, [("abcdefgh", "xyz"), ("a", "x"), ("b", "")])
    assert printed(sheet, 13) == "path\nabcdefgh  xyz\na         x\nb\n"
    assert printed(sheet, 12) == "path\nabcdefgh  !\na         x\nb\n"


def test_a_matrix_without_room_goes_on_in_a_further_table() -> None:
    columns = ("from, to", *numbers("gpu:0", "gpu:1", "gpu:2"))
    sheet = Sheet.of("", columns, [("gpu:0", "1", "2", "3")], is_matrix=True)
    assert printed(sheet, 29) == ("from, to  gpu:0  gpu:1  gpu:2\ngpu:0         1      2      3\n")
    assert printed(sheet, 28) == (
        "from, to  gpu:0  gpu:1\ngpu:0         1      2\nfrom, to  gpu:2\ngpu:0         3\n"
    )


def test_rows_are_paragraphs_where_the_table_has_no_room() -> None:
    sheet = Sheet.of("", ("verdict", "path", *numbers("now"), "at"), [("bad", "a", "5", "here")],
                     least=30)  # fmt: skip
    assert printed(sheet, 30) == "verdict  path  now  at\nbad      a       5  here\n"
    assert printed(sheet, 29) == "bad a\n    now 5; here\n"


def test_joint_tables_have_columns_of_one_width_and_none_that_is_empty() -> None:
    first = Sheet.of("", ("long name", *numbers("a", "b", "c")), [("x", "1", "", "")])
    second = Sheet.of("", ("y", *numbers("a", "b", "c")), [("x", "10", "7", "")])
    assert printed(Sheets((first, second)), 40) == (
        "long name   a\nx           1\n\ny           a  b\nx          10  7\n"
    )


def marks(profile: Profile, width: int) -> list[str]:
    """The letters at the ends of rows, which stand alone behind blanks."""
    output = StringIO()
    console = Console(width=width, file=output, highlight=False)
    print_parts(console, profile_parts(profile, overview(profile), everything=True))
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    rows = [line for line in lines if re.match(r" *(2 × )? *[\d.]+ [KMG]?i?B ", line)]
    ends = [re.search(r"  ([a-g]{1,7})$", row) for row in rows]
    return [letters[1] if letters else "" for letters in ends]


@pytest.mark.parametrize("width", [50, 60, 72, 80])
def test_quality_flags_are_reported_in_every_terminal(tmp_path: Path, width: int) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        assert any(marks(profile, 160))
        assert marks(profile, width) == marks(profile, 160)


WORDS = st.text("ab µ-", min_size=0, max_size=40).map(str.strip)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=5), st.integers(20, 60))
def test_a_table_folds_into_the_terminal_and_loses_no_word(
    rows: list[tuple[str, str]], width: int
) -> None:
    columns = (SheetColumn("name", folds=True), SheetColumn("more", folds=True))
    head, *lines = printed(Sheet.of("", columns, rows), width).split("\n")
    assert head.split() == ["name", "more"]
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    letters = sorted("".join("".join(row) for row in rows).replace(" ", ""))
    assert sorted("".join(lines).replace(" ", "")) == letters


def test_numbers_end_below_each_other_and_words_begin_so() -> None:
    columns = (SheetColumn("what", least=6), *numbers("µs"))
    sheet = Sheet.of("", columns, [("a", "1.5"), ("bcd", "10")])
    assert printed(sheet, 40) == "what     µs\na       1.5\nbcd      10\n"
