"""The README is short, and what it shows of a kept profile is what the tool prints."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

from rich.console import Console

from kept import RESULTS, unpacked
from waywiser.curves.overview import overview
from waywiser.profile import Profile
from waywiser.render.terminal import print_parts
from waywiser.render.views.profile import profile_parts

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
KEPT = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
COMMAND = "$ waywiser show four-h200.wwp\n"

MOST_WORDS = 900
WIDTH = 100
"""Columns of a terminal, and the most of a sample."""


def test_the_sample_of_show_is_current(tmp_path: Path) -> None:
    file = unpacked(KEPT, tmp_path / "four-h200.wwp")
    shown = io.StringIO()
    with Profile.open(file) as profile:
        console = Console(file=shown, width=WIDTH, highlight=False)
        print_parts(console, profile_parts(profile, overview(profile)))
    sample = README.read_text().partition(COMMAND)[2].partition("...\n```")[0]
    assert sample.startswith("headline paths ") and sample.count("\n") > 5
    assert sample in shown.getvalue()


def test_the_readme_is_short_and_has_both_commands_of_set_up() -> None:
    text = README.read_text()
    assert len(text.split()) <= MOST_WORDS
    assert "\nmake survey" in text and "`make test`" in text
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        assert max(map(len, block.splitlines())) <= WIDTH + 10, block


def test_every_guide_is_found_from_the_readme() -> None:
    """But for the one that the help of the command line names."""
    text = README.read_text()
    guides = sorted((ROOT / "docs" / "how-to").glob("*.md"))
    linked = set(re.findall(r"docs/how-to/([\w-]+)\.md", text))
    assert {page.stem for page in guides} - linked <= {"complete-words"}


def test_what_commands_write_in_a_clone_is_not_shown_by_git() -> None:
    written = ("report.html", "check.html", "node-2026.wwp", "nights.history")
    done = subprocess.run(
        ["git", "check-ignore", *written], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == list(written)
