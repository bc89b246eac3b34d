"""Titles: short whatever they are about, and nothing is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.curves.answer import Finding
from waywiser.render.parts import Remark
from waywiser.words.sizes_in_text import with_sizes
from waywiser.words.titles import LEAST_TITLE, LONGEST_TITLE, divided, listed

PLACES = st.builds("{}:{}".format, st.sampled_from(["numa", "gpu", "rank"]), st.integers(0, 9999))
SETTINGS = st.sampled_from(["", "[api=sync]", "[api=sync,peer=off,submit=1]", "[piece=28672]"])
TRANSFERS = st.builds(
    "pinned@{} -> device@{} by copy-engine{} of {}".format, PLACES, PLACES, SETTINGS,
    st.sampled_from([8, 65536, 1048576, 2**33]),
)  # fmt: skip
NAMES = st.one_of(
    st.lists(TRANSFERS, min_size=1, max_size=60).map("; ".join),
    st.lists(PLACES, min_size=1, max_size=60).map(", ".join),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=400),
)
SAID = st.sampled_from(["takes 14% longer than its peers (on 9 of 9 equal paths)",
                        "has 46 % (40–52) less bandwidth", "failed: out of memory"])  # fmt: skip
STATEMENTS = st.lists(st.builds("{} {}".format, NAMES, SAID), min_size=1, max_size=8).flatmap(
    lambda parts: st.sampled_from([". ", "; ", ", ", ": "]).map(lambda by: by.join(parts))
)


@given(STATEMENTS)
@settings(max_examples=150, deadline=None)
def test_no_title_is_longer_than_its_limit_and_nothing_is_lost(text: str) -> None:
    title, rest = divided(text)
    assert 0 < len(title) <= LONGEST_TITLE and len(with_sizes(title)) <= LONGEST_TITLE
    if not rest:
        assert title == text
    elif rest == text:
        left = iter(text)
        assert all(letter in left for letter in title.replace(" … ", ""))
    else:
        assert len(title) >= LEAST_TITLE
        assert re.fullmatch(r"\. |; |: |, | ", text.removeprefix(title).removesuffix(rest))


@given(STATEMENTS)
@settings(max_examples=50, deadline=None)
def test_whatever_holds_a_title_keeps_it_short(text: str) -> None:
    finding, remark = Finding("x", "info", text), Remark("info", text)
    assert (finding.title, finding.below) == divided(text)
    assert (remark.statement, remark.detail) == divided(text)
    assert Remark.of(finding) == remark


@pytest.mark.parametrize("transfers", [2, 5, 40])
def test_a_title_about_many_transfers_still_says_what_is_so(transfers: int) -> None:
    """A set without a name is called by all of its transfers: none of these is a sentence."""
    names = [f"device@gpu:{n} -> pinned@numa:0 by copy-engine of 4194304" for n in range(transfers)]
    text = f"{'; '.join(names)} takes 14% longer at 4 MiB than the sizes around suggest"
    title, rest = divided(text)
    assert title.startswith("device@gpu:0 -> ") and title.endswith("than the sizes around suggest")
    assert "takes 14% longer" in title
    assert rest in ("", text)


def test_a_title_ends_with_a_clause_and_outside_of_brackets() -> None:
    listed = "; ".join(f"gpu:{n} (managed; 4 to 64 KiB) 1.4 times" for n in range(9))
    title, rest = divided(f"page faults are slower than prefetches: {listed}. All 9 do so.")
    assert title.startswith("page faults are slower than prefetches: gpu:0 (managed;")
    assert title.count("(") == title.count(")") and rest.endswith("All 9 do so.")


def test_the_detail_stands_below_the_rest_of_a_long_statement() -> None:
    long = Finding("x", "info", f"{'a' * 100}: {'b' * 100}", detail="more")
    assert (long.title, long.below) == ("a" * 100, f"{'b' * 100}; more")
    assert long.text == f"{'a' * 100}: {'b' * 100}; more"


def test_a_title_has_the_figure_of_its_statement_if_there_is_room() -> None:
    said = "the path from gpu:0 to gpu:1 is slow: GPU -> GPU by copy-engine (peer off, submitted)"
    rest = f"than {', '.join(f'gpu:{n}' for n in range(40))}"
    title, _ = divided(f"{said} has 8.0 % (7.1–8.8) less bandwidth {rest}")
    assert "has 8.0 % (7.1–8.8) less bandwidth" in title


def test_a_list_that_is_too_long_for_a_title_says_how_many_more_there_are() -> None:
    parts = [f"strategy-{n} at {n} KiB to {n + 1} MiB" for n in range(8)]
    assert listed("the fastest", parts[:2]) == (f"the fastest: {parts[0]}; {parts[1]}", "")
    title, whole = listed("the fastest", parts)
    assert title.endswith("; and 4 more")
    assert len(title) <= LONGEST_TITLE
    assert whole.endswith(parts[-1])
