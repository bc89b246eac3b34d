from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import profiles
from waywiser.cli.show import print_profile
from waywiser.cli.text_table import TextColumn, fitting, print_table
from waywiser.curves.overview import overview
from waywiser.profile import Profile

COLUMNS = ("size", "time", "samples", "")
ROWS = [("8 B", "1.5 µs", "20×2", "ab"), ("1 GiB", "20 ms", "6×2", "")]
SPARED = ("samples", "time")


def kept(width: int, **bounds: tuple[int, int]) -> list[str]:
    found = fitting(COLUMNS, ROWS, width, spared=SPARED, bounds=bounds)
    return [COLUMNS[n] for n in found]


def test_what_fits_stays() -> None:
    assert kept(26) == ["size", "time", "samples", ""]  # 5 + 6 + 7 + 2 and three gaps of 2
    assert kept(25) == ["size", "time", ""]


def test_columns_go_in_the_order_named_and_others_never() -> None:
    assert kept(17) == ["size", "time", ""]
    assert kept(16) == ["size", ""]
    assert kept(1) == ["size", ""]


def test_columns_count_for_no_less_and_no_more_than_their_bounds() -> None:
    assert kept(26, size=(6, 99)) == ["size", "time", ""]
    assert kept(25, size=(0, 4)) == ["size", "time", "samples", ""]


def marks(profile: Profile, width: int) -> list[str]:
    """The letters at the ends of rows, which stand alone behind blanks."""
    output = StringIO()
    console = Console(width=width, file=output, highlight=False)
    print_profile(profile, overview(profile), console, everything=True)
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
    output = StringIO()
    console = Console(width=width, file=output, highlight=False)
    columns = [TextColumn("name", left=True, folds=True), TextColumn("more", left=True, folds=True)]
    print_table(console, columns, rows)
    head, *lines = output.getvalue().split("\n")
    assert head.split() == ["name", "more"]
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    letters = sorted("".join("".join(row) for row in rows).replace(" ", ""))
    assert sorted("".join(lines).replace(" ", "")) == letters


def test_numbers_end_below_each_other_and_words_begin_so() -> None:
    output = StringIO()
    columns = [TextColumn("what", left=True, least=6), TextColumn("µs")]
    print_table(Console(width=40, file=output), columns, [("a", "1.5"), ("bcd", "10")])
    assert output.getvalue() == "what     µs\na       1.5\nbcd      10\n"
