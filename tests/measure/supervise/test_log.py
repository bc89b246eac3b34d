"""The end of what a worker printed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waywiser.measure.supervise.process import Log


def logged(*pieces: bytes) -> str:
    log = Log()
    for piece in pieces:
        log.add(piece)
    return log.tail()


def test_the_last_lines_become_one() -> None:
    assert logged(b"a\nb\n\nc\n", b"d\ne") == "b | c | d | e"


def test_nothing_printed_is_nothing_said() -> None:
    assert logged(b"\n \n") == ""


@given(st.lists(st.binary(max_size=20_000), max_size=5))
def test_the_tail_is_short_and_can_be_printed(pieces: list[bytes]) -> None:
    tail = logged(*pieces)
    assert len(tail) <= 401
    assert tail.isprintable()
