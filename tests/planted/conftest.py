"""What the tests of words about planted changes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from verb_output import Said
from waywiser import cli


@pytest.fixture
def said(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a verb prints among the profiles in the ``folder`` of a test, whatever its status."""
    monkeypatch.chdir(folder)

    def output(*words: str) -> str:
        capsys.readouterr()
        cli.run(list(words))
        return capsys.readouterr().out

    return output
