"""Paths have the arrows that users type, in all texts of the program and of the documentation."""

from __future__ import annotations

import pytest

from tree import ROOT, tracked

ARROWS = "→←↔"

OTHERS = {
    "python/waywiser/cli/streams.py": "what terminals that cannot show a sign get",
    "python/waywiser/report/figures/text_width.py": "widths of letters",
    "python/waywiser/report/templates/page.css": "a hint that points",
}


@pytest.mark.parametrize("folder", ["python", "docs", "README.md"])
def test_directions_are_written_as_users_type_them(folder: str) -> None:
    files = [
        file
        for file in tracked()
        if str(file).startswith(folder)
        and file.suffix in (".py", ".md", ".css", ".j2")
        and str(file) not in OTHERS
    ]
    assert files
    found = [str(file) for file in files if set(ARROWS) & set((ROOT / file).read_text())]
    assert found == []
