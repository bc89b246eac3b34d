"""What is closed at the end of a ``with``."""

from __future__ import annotations

import pytest

from waywiser.words.closeable import Closeable


class Door(Closeable):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_end_of_a_with_closes_and_hides_no_error() -> None:
    with Door() as door:
        assert door.closed == 0
    assert door.closed == 1
    with pytest.raises(ValueError, match="inside"), door:
        raise ValueError("inside")
    assert door.closed == 2
