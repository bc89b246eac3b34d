"""Writes the list of all results, README.md, from the titles of their pages.

    python docs/results/contents.py

A test checks that the list is current, and that each folder of results has a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE / "README.md"
GROUPS = {
    "Measured on machines with GPUs": "*/README.md",
    "Models": "models/*.md",
    "Pages about several results": "*.md",
}
"""The pages of each heading, from the newest."""

HEAD = """\
# Results

<!-- Made by `python docs/results/contents.py`; a test checks it. -->

Each page names its machine, its software and its commands. A profile (`*.wwp.xz`) has all samples:
`xz -dk FILE.wwp.xz`, then `waywiser show FILE.wwp`. What the literature measures is looked up in
these profiles, row by row, in [the catalogue](../catalogue.md); papers are measured again, figure
by figure, in [papers](../papers/README.md).
"""


def document() -> str:
    """The whole list, as Markdown."""
    return HEAD + "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    for title, pattern in GROUPS.items():
        yield from ("", f"## {title}", "", "| page | profiles |", "|---|---|")
        for page in sorted(HERE.glob(pattern), reverse=True):
            if page != LIST:
                yield f"| [{_title(page)}]({page.relative_to(HERE)}) | {_profiles(page) or ''} |"


def _title(page: Path) -> str:
    title = page.read_text().partition("\n")[0].removeprefix("# ")
    day = page.parent.name[:10]
    return f"{title}, {day}" if page.name == LIST.name and day not in title else title


def _profiles(page: Path) -> int:
    """Profiles in the folder of a page."""
    if page.name != LIST.name:
        return 0
    return len([*page.parent.rglob("*.wwp.xz")])


if __name__ == "__main__":
    LIST.write_text(document())
