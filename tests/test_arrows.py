"""Paths have the arrows that users type, in all texts of the program and of the documentation."""

from __future__ import annotations

import pytest

from tree import ROOT

ARROWS = "→←↔"

OTHERS = {
    "python/waywiser/cli/streams.py": "what terminals that cannot show a sign get",
    "python/waywiser/render/figures/text_width.py": "widths of letters",
    "python/waywiser/render/templates/page.css": "a hint that points",
}


@pytest.mark.parametrize("folder", ["python/waywiser", "docs", "."])
def test_directions_are_written_as_users_type_them(folder: str) -> None:
    each = (ROOT / folder).glob("*" if folder == "." else "**/*")
    files = [file for file in each if file.suffix in (".py", ".md", ".css", ".j2")]
    assert files
    names = {str(file.relative_to(ROOT)) for file in files if _has_arrow(file.read_text())}
    assert names <= set(OTHERS)


def _has_arrow(text: str) -> bool:
    return bool(set(ARROWS) & set(text))
