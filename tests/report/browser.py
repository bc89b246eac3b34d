"""Chromium, as the system has it or as set-up fetched it, for tests that look at pages: with fonts
of their own, so that the pages look the same whatever fonts are installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FETCHED = ROOT / ".deps" / "chromium"
SYSTEM = ("chromium", "chromium-headless-shell", "google-chrome")

FAMILIES = {
    "sans-serif": "DejaVu Sans",
    "system-ui": "DejaVu Sans",
    "monospace": "DejaVu Sans Mono",
}

MOST_WORDS_ON_FIRST_SCREEN = 132
"""The most words of the first screen of a page."""

VISIBLE_WORDS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (element.checkVisibility() && !element.closest('table, pre, code, svg'))
      words += (walker.currentNode.data.match(/\\S+/g) ?? []).length;
  }
  return words;
}"""
"""Counts the words that are visible, tables, code and figures apart."""

TABLES = """() => {
  document.querySelectorAll('details').forEach(each => { each.open = true; });
  return [...document.querySelectorAll('.scroll')].map(each => ({
    over: each.scrollWidth - each.clientWidth,
    names: [...each.querySelectorAll('td[data-name]')].filter(
      cell => getComputedStyle(cell, '::before').content != 'none').length,
    cells: each.querySelectorAll('td[data-name]').length,
  }));
}"""
"""Returns for each table, with all folds open, by how many pixels it scrolls sideways, how many
cells name their column, and how many may."""

PATIENCE_MILLISECONDS = 180_000
"""Only what hangs takes so long, on however busy a machine."""

FLAGS = (
    "--no-sandbox",  # root in a container has none; the pages are our own
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def executable() -> Path | None:
    """What is fetched before what is installed, so that all see the same."""
    fetched = sorted((FETCHED / "usr" / "lib" / "chromium").glob("chromium-headless-shell"))
    found = [*fetched, *(Path(path) for name in SYSTEM if (path := shutil.which(name)))]
    return found[0] if found else None


@contextmanager
def launched(folder: Path) -> Iterator[Any]:
    """A browser; without one the test is skipped, and fails in CI, where set-up fetches it.

    ``folder`` takes its caches.
    """
    found = executable()
    if found is None:
        why = "no Chromium: run scripts/set-up --browser, or install chromium"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found,
            args=list(FLAGS),
            env=_environment(folder, found),
            timeout=PATIENCE_MILLISECONDS,
        )
        try:
            yield browser
        finally:
            browser.close()


def _environment(folder: Path, found: Path) -> dict[str, str | float | bool]:
    """With the tests' own fonts, and with the libraries that were fetched beside it."""
    environment = {**os.environ, "FONTCONFIG_FILE": str(_fonts(folder))}
    if found.is_relative_to(FETCHED):
        libraries = list((FETCHED / "usr" / "lib").glob("*-linux-gnu*"))
        libraries += [path for each in libraries for path in each.glob("pulseaudio")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))
    return {**environment}


def _fonts(folder: Path) -> Path:
    """A configuration with the fonts in `FAMILIES`, which come with Matplotlib, and no other."""
    import matplotlib

    known = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    fonts = folder / "fonts"
    fonts.mkdir()
    for file in (
        known / "DejaVuSans.ttf",
        known / "DejaVuSerif.ttf",
        *known.glob("DejaVuSans[-M]*.ttf"),
    ):
        (fonts / file.name).symlink_to(file)
    names = "".join(
        f"<alias><family>{name}</family><prefer><family>{family}</family></prefer></alias>"
        for name, family in FAMILIES.items()
    )
    head = '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
    folders = f"<dir>{fonts}</dir><cachedir>{folder}</cachedir>{names}"
    configuration = folder / "fonts.conf"
    configuration.write_text(f"{head}<fontconfig>{folders}</fontconfig>")
    return configuration
