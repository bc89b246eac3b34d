"""Texts of one wording are one line with a count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waywiser.words.same_wording import LEAST_ALIKE, by_wording


def test_many_texts_that_differ_in_one_word_are_one_line() -> None:
    texts = [f"host{n}: the clock of the host is {n % 2} s late" for n in range(0, 182, 2)]
    (found,) = by_wording([*texts])
    assert found == ("host0 and 90 others: the clock of the host is 0 s late", texts)


def test_other_texts_and_few_alike_are_lines_of_their_own() -> None:
    texts = ["a: b c", "x: b c", "b c", "something else", "a: b d e"]
    assert [line for line, _ in by_wording(texts)] == texts


def test_two_wordings_are_two_lines_in_their_order() -> None:
    texts = [f"gpu:{n} is {what}" for n in range(4) for what in ("slow now", "not known")]
    assert [line for line, _ in by_wording(texts)] == [
        "gpu:0 and 3 others is slow now", "gpu:0 and 3 others is not known"
    ]  # fmt: skip


@given(st.lists(st.text("ab 1", max_size=6), max_size=12))
def test_each_text_is_in_one_line(texts: list[str]) -> None:
    found = by_wording(texts)
    assert sorted(e for _, members in found for e in members) == sorted(set(texts))
    assert all(len(members) == 1 or len(members) >= LEAST_ALIKE for _, members in found)
