"""Text of a stranger's file steers no terminal."""

from __future__ import annotations

from waywiser.visible import visible


def test_what_steers_is_gone_and_what_is_read_stays() -> None:
    assert visible("a\x1b[31m red\r\x07\x9b2J") == "a[31m red2J"
    assert visible("a\u202egpj.exe\u2069") == "agpj.exe"
    assert visible("± µs: 5 – 6\tGB/s\n") == "± µs: 5 – 6\tGB/s\n"
