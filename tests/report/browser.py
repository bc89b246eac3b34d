"""Chromium, as the system has it or as set-up fetched it, for tests that look at pages."""

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
        environment = _environment(folder) if found.is_relative_to(FETCHED) else dict(os.environ)
        browser = playwright.chromium.launch(
            executable_path=found, args=list(FLAGS), env={**environment}
        )
        try:
            yield browser
        finally:
            browser.close()


def _environment(folder: Path) -> dict[str, str]:
    """With the libraries and the font that were fetched beside it."""
    libraries = list((FETCHED / "usr" / "lib").glob("*-linux-gnu*"))
    libraries += [path for each in libraries for path in each.glob("pulseaudio")]
    fonts = folder / "fonts.conf"
    known = f"<dir>{FETCHED / 'usr' / 'share' / 'fonts'}</dir><cachedir>{folder}</cachedir>"
    head = '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
    fonts.write_text(f"{head}<fontconfig>{known}</fontconfig>")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "FONTCONFIG_FILE": str(fonts),
    }
