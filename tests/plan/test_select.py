from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.plan.select import NothingMatches, matches, nearest, require_match

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
SYNC = "pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync]"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("pinned", [H2D, D2H, SYNC]),
        ("device pinned", [H2D, D2H, SYNC]),
        ("PINNED@numa:0 -> device", [H2D, SYNC]),
        ("gpu:0 -> pinned", [D2H]),
        ("-> pinned by", [D2H]),
        ("pinned* -> device*", [H2D, SYNC]),
        ("*copy-engine", [H2D, D2H]),
        ("*[api=sync]", [SYNC]),
        ("pinned@numa:? -> *", [H2D, SYNC]),
        ("cpu", []),
    ],
)
def test_words_must_all_occur_and_globs_match_whole(pattern: str, expected: list[str]) -> None:
    assert [text for text in (H2D, D2H, SYNC) if matches(text, [pattern])] == expected


def test_several_patterns_are_any_of_them() -> None:
    assert matches(D2H, ["sync", "device@gpu:0 -> *"])
    assert matches(D2H, [])


def test_a_pattern_that_matches_nothing_says_what_is_near() -> None:
    with pytest.raises(NothingMatches, match="--only 'pined gpu:0'") as error:
        require_match(["pinned", "pined gpu:0"], [H2D, D2H, "pageable@numa:0 by cpu"])
    assert H2D in error.value.remedy


@given(st.text(st.characters(exclude_characters="*?"), min_size=1, max_size=40))
def test_a_text_matches_its_own_words(text: str) -> None:
    assert matches(text, [text])
    assert nearest(text, ["", text]) == [text, ""]


def test_what_is_not_measured_may_be_asked_for_and_is_not_suggested() -> None:
    require_match(["teleport"], [H2D], others=["device -> file by teleport"])
    with pytest.raises(NothingMatches) as caught:
        require_match(["by teleprt"], [H2D], others=["device -> file by teleport"])
    assert caught.value.remedy == f"nearest: {H2D}"
