"""Text of another user's file steers no terminal, and hides no message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.words.visible_text import (
    LONGEST_QUOTE,
    escaped_json,
    single_line,
    single_line_json,
    visible,
    with_short_quotes,
)

LONG = "x" * (LONGEST_QUOTE + 1)
SHORT = "x" * 100 + "…" + "x" * 100


def test_what_steers_is_gone_and_what_is_read_stays() -> None:
    assert visible("a\x1b[31m red\r\x07\x9b2J") == "a[31m red2J"
    assert visible("a\u202egpj.exe\u2069") == "agpj.exe"
    assert visible("± µs: 5 – 6\tGB/s\n") == "± µs: 5 – 6\tGB/s\n"


def test_a_single_line_has_no_end_in_it() -> None:
    assert single_line("a\x1b[31m\tred\r\nb\u2028c\x85d") == "a[31m red  b c d"
    assert single_line("± µs: 5 – 6 GB/s") == "± µs: 5 – 6 GB/s"


values = st.recursive(
    st.none() | st.integers() | st.text(alphabet=st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def lines(value: Any) -> Any:
    if isinstance(value, str):
        return single_line(value)
    if isinstance(value, list):
        return [lines(each) for each in value]
    if isinstance(value, dict):
        return {lines(key): lines(each) for key, each in value.items()}
    return value


@given(values, st.booleans(), st.sampled_from((None, 2)))
def test_each_text_in_json_is_a_single_line(value: Any, ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    assert json.loads(single_line_json(text)) == lines(value)


@given(values)
def test_json_with_escapes_means_the_same_and_steers_nothing(value: Any) -> None:
    escaped = escaped_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(escaped) == value
    assert visible(escaped) == escaped


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_long_quotation_has_no_middle(quote: str) -> None:
    text = f"--set {quote}{LONG}=3{quote} is not a change (write {quote}a=1GB/s{quote})"
    found = with_short_quotes(text)
    assert found == text.replace(f"{LONG}=3", SHORT[:-2] + "=3")


def test_other_text_is_whole() -> None:
    text = f"the profile's {LONG} of 'a' and the link's {LONG} of 'b'"
    assert with_short_quotes(text) == text
    whole = f"'{LONG[1:]}' is shown"
    assert with_short_quotes(whole) == whole


def test_a_word_that_is_no_path_has_no_middle() -> None:
    path = "/" + "x" * 4095
    assert with_short_quotes(f"{path}: no such file") == f"{path}: no such file"
    assert with_short_quotes(f"gpu:0 by {'x' * 6000} is unknown") == f"gpu:0 by {SHORT} is unknown"
