from __future__ import annotations

import gc

import pytest

from waywiser.cli.collecting import collecting_if_lasting


@pytest.mark.parametrize(
    ("arguments", "collects"),
    [(["survey", "--preset", "full"], True), (["report", "survey"], False), ([], False)],
)
def test_only_what_lasts_collects_garbage(arguments: list[str], collects: bool) -> None:
    with collecting_if_lasting(arguments):
        assert gc.isenabled() is collects
    assert gc.isenabled()


def test_it_is_as_it_was_when_a_command_fails() -> None:
    with pytest.raises(ValueError, match="odd"), collecting_if_lasting(["report"]):
        raise ValueError("odd")
    assert gc.isenabled()
