from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.plan.headline import GROUPS
from waywiser.plan.select import (
    NothingMatches,
    matches,
    matches_any,
    nearest,
    require_match,
    texts_of,
)
from waywiser.words import Workload

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


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (H2D, "H2D"),
        (D2H, "D2H"),
        ("pageable@numa:0 -> device@gpu:0 by copy-engine", "pageable H2D"),
        ("device@gpu:0 -> device@gpu:0 by copy-engine", "local copy"),
        ("device@gpu:0 -> device@gpu:1 by copy-engine", "P2P"),
        ("pageable@numa:0 -> pageable@numa:0 by cpu", "host copy"),
        (f"{H2D}; {D2H}", "bidirectional"),
        (SYNC, None),
    ],
)
def test_the_name_of_a_group_of_headline_paths_matches_its_paths_alone(
    text: str, group: str | None
) -> None:
    texts = texts_of(Workload.parse(text))
    assert {name for name in GROUPS if matches_any(texts, [name.upper()])} == {group} - {None}
    assert not matches_any(texts, ["host"])


def test_the_name_of_a_set_matches_every_such_set() -> None:
    plain = [f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine" for gpu in range(2)]
    by_sm = [path.replace("copy-engine", "sm") for path in plain]
    for paths in (plain, by_sm):
        assert matches_any(texts_of(Workload.parse("; ".join(paths))), ["host-to-all"])


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
