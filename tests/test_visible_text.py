"""Text of another user's file steers no terminal, and hides no message."""

from __future__ import annotations

import pytest

from waywiser.words.visible import LONGEST_QUOTE, visible, with_short_quotes

LONG = "x" * (LONGEST_QUOTE + 1)
SHORT = "x" * 100 + "…" + "x" * 100


def test_what_steers_is_gone_and_what_is_read_stays() -> None:
    assert visible("a\x1b[31m red\r\x07\x9b2J") == "a[31m red2J"
    assert visible("a\u202egpj.exe\u2069") == "agpj.exe"
    assert visible("± µs: 5 – 6\tGB/s\n") == "± µs: 5 – 6\tGB/s\n"


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
