"""What verbs print in tests: their result, or their error of one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from waywiser import cli

Output = pytest.CaptureFixture[str]

Said = Callable[..., str]
"""Says what a verb prints, with these words."""


def output(words: list[str], capsys: Output) -> str:
    """What a verb prints that succeeds."""
    capsys.readouterr()
    code = cli.run(words)
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    return printed.out


def error(words: list[str], capsys: Output) -> str:
    """What a verb prints that cannot be done: one line."""
    capsys.readouterr()
    assert cli.run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("waywiser: error: ")
    assert "mistake in waywiser" not in printed.err
    return printed.err
