"""Writes the examples into the pages that walk through them.

    python docs/how-to/examples.py docs/how-to/add-an-executor.md

Between ``<!-- FILE -->`` and ``<!-- end -->`` stands the file, which is put in anew. A test checks
that pages are current.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"(<!-- (examples/\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def current(page: Path) -> str:
    """The page with its examples as they are now."""

    def made(match: re.Match[str]) -> str:
        file = page.parent / match[2]
        return f"{match[1]}```{file.suffix[1:]}\n{file.read_text()}```\n{match[3]}"

    return BLOCK.sub(made, page.read_text())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(current(Path(name)))
