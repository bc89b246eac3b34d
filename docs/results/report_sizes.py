"""Prints how large the reports of profiles are, and makes the pictures of the README anew.

    PYTHONPATH=python:tests python docs/results/report_sizes.py PROFILE...
    PYTHONPATH=python:tests python docs/results/report_sizes.py --pictures

Each profile may be packed by xz or gzip. A line has the height of its page at a width of 1,400 px
and of 390 px, the words that are visible before anything is unfolded, tables and code apart, and
the pages of A4. The browser and its fonts are those of the tests. ``--pictures`` writes report.html
and links.png of four GPUs.
"""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from report import browser

FOUR_GPUS = Path(__file__).parent / "2026-11-20-h200-catalogue" / "four-gpus"
WIDTHS = (1400, 390)
PICTURE_WIDTH = 1290


def report_of(profile: Path, folder: Path) -> Path:
    """The page of a profile."""
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(profile.suffix, bytes)
    file, page = folder / "kept.wwp", folder / "report.html"
    file.write_bytes(unpack(profile.read_bytes()))
    command = [sys.executable, "-m", "waywiser", "report", str(file), "-o", str(page)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return page


def sizes(page: Path, chromium: Any) -> tuple[int, ...]:
    """Heights at `WIDTHS`, words, and pages of A4."""
    found = []
    for width in WIDTHS:
        tab = chromium.new_page(viewport={"width": width, "height": 900})
        tab.goto(page.as_uri())
        found.append(tab.evaluate("document.documentElement.scrollHeight"))
    words = tab.evaluate(browser.VISIBLE_WORDS)
    tab.emulate_media(media="print")
    pages = tab.pdf(format="A4").count(b"/Type /Page\n")
    return (*found, words, pages)


def pictures(chromium: Any, folder: Path) -> None:
    """Writes the report of four GPUs, and the picture of its links."""
    page = report_of(FOUR_GPUS / "standard.wwp.xz", folder)
    (FOUR_GPUS / "report.html").write_bytes(page.read_bytes())
    tab = chromium.new_page(viewport={"width": PICTURE_WIDTH, "height": 900})
    tab.goto(page.as_uri())
    tab.add_style_tag(
        content="nav, details { display: none !important } #links { padding: 1rem }"
        "#links > h2 { margin: 0; padding: 0; border: 0 }"
    )
    tab.locator("#links").screenshot(path=FOUR_GPUS / "links.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, browser.launched(Path(name)) as chromium:
        folder = Path(name)
        if sys.argv[1:] == ["--pictures"]:
            pictures(chromium, folder)
            return
        print(f"| profile | px at {WIDTHS[0]} | px at {WIDTHS[1]} | words | pages |")
        print("|---|---|---|---|---|")
        for profile in map(Path, sys.argv[1:]):
            found = sizes(report_of(profile, folder), chromium)
            print(f"| {profile.name} | {' | '.join(f'{each:,}' for each in found)} |")


if __name__ == "__main__":
    main()
