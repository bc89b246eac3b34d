"""What the pages refer to is there: files, folders and headings of this repository."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sorted(ROOT / name for name in listed.stdout.split("\0") if name)


@cache
def prose(page: Path) -> str:
    return CODE.sub("", page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of the headings, as GitHub makes them; a repeated one has a number."""
    found: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        names.add(f"{slug}-{count}" if count else slug)
    return frozenset(names)


def problem(page: Path, target: str) -> str:
    """Why a link leads nowhere; empty where it does lead somewhere, or out of the repository."""
    if ELSEWHERE.match(target):
        return ""
    name, _, anchor = target.partition("#")
    file = (page.parent / unquote(name)).resolve() if name else page
    if not file.is_relative_to(ROOT):
        return f"{target} leads out of the repository"
    if not file.exists():
        return f"there is no {target}"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{name or page.name} has no heading #{anchor}"
    return ""


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    problems = [result for target in LINK.findall(prose(page)) if (result := problem(page, target))]
    assert problems == []


def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    assert problem(page, "docs/nowhere.md") == "there is no docs/nowhere.md"
    assert "no heading" in problem(page, "docs/methodology.md#nowhere")
    assert "out of the repository" in problem(page, "../elsewhere.md")
    assert problem(page, "https://example.org/") == ""
    assert len(pages()) > 10 and any(LINK.findall(prose(each)) for each in pages())
