"""The pages about papers on copies say what the kept profiles say, and their commands select it."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from tests.measure.plan.machines import machine

from tree import ROOT
from waywiser.machine.machine import FilePlace
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.ranks.placement import place_ranks

PAPERS = ROOT / "docs" / "papers"
COPIES = ["comm-scope-2019.md", "explicit-transfers-2018.md", "power-nvlink-2018.md"]
PAGES = [*COPIES, "auto-tuning-2013.md", "data-movement-2021.md"]


@pytest.fixture(scope="module")
def papers() -> Iterator[ModuleType]:
    sys.path.insert(0, str(PAPERS))
    try:
        yield importlib.import_module("copy_papers")
    finally:
        sys.path.remove(str(PAPERS))


@pytest.mark.parametrize("name", COPIES)
def test_the_pages_and_their_pictures_are_current(papers: ModuleType, name: str) -> None:
    run = "run: python docs/papers/copy_papers.py"
    assert papers.document(name) == (PAPERS / name).read_text(), run
    for picture, svg in papers.pictures(papers.PAPERS[name].figures):
        assert svg == (PAPERS / picture).read_text(), run


def test_pictures_of_messages_are_current(papers: ModuleType) -> None:
    pages = importlib.import_module("pages")
    assert pages.PICTURES
    for name in pages.PICTURES:
        assert pages.svg(name) == (PAPERS / name).read_text(), "run: python docs/papers/pages.py"


def test_every_page_is_listed_and_every_picture_is_shown() -> None:
    listed = (PAPERS / "README.md").read_text()
    assert all(f"({page})" in listed for page in PAGES)
    assert "(docs/papers/README.md)" in (ROOT / "README.md").read_text()
    shown = "".join((PAPERS / page).read_text() for page in PAGES)
    assert [p.name for p in PAPERS.glob("*.svg") if f"({p.name})" not in shown] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_has_a_command_or_says_what_is_missing(name: str) -> None:
    figures = re.split(r"^## ", (PAPERS / name).read_text(), flags=re.MULTILINE)[1:]
    figures = [each for each in figures if not each.startswith("Profiles")]
    assert len(figures) > 4
    for each in figures:
        assert re.search(r"`waywiser |\*\*Missing:\*\*", each), each.partition("\n")[0]


def test_a_statement_agrees_only_if_the_profile_does(papers: ModuleType) -> None:
    figures = importlib.import_module("copy_figures")
    subject = figures.kept(figures.FOUR)
    h2d, pageable = papers.H2D, papers.PAGEABLE_H2D
    for relation, agrees in (("faster", "yes"), ("equal", "**no**"), ("slower", "**no**")):
        row = figures._row(subject, figures.Statement("s", h2d, relation, pageable))
        assert row.endswith(f"| {agrees} |")
    back = figures._row(subject, figures.Statement("s", pageable, "slower", h2d))
    assert back.endswith("| yes |")


def commands() -> Iterator[tuple[str, list[str]]]:
    """The page and the words of each survey that it has for the reader."""
    for name in PAGES:
        for text in re.findall(r"`([^`]*waywiser survey[^`]*)`", (PAPERS / name).read_text()):
            words = shlex.shlex(text, posix=True, punctuation_chars=";")
            words.whitespace_split = True
            for is_end, command in groupby(words, key=";".__eq__):
                found = list(command)
                if not is_end and found[:2] == ["waywiser", "survey"] and "--only" in found:
                    yield name, found


@pytest.mark.parametrize(("page", "words"), [*commands()])
def test_a_command_selects_paths(page: str, words: list[str]) -> None:
    files = (FilePlace("scratch", "/scratch", scratch=True, bytes=4 << 30, filesystem="ext4"),)
    two = msgspec.structs.replace(machine(gpus=2), files=files)
    if "--ranks" in words:
        ranks = place_ranks(two, int(words[words.index("--ranks") + 1]))
        two = msgspec.structs.replace(two, ranks=ranks)
    preset = "full" if "full" in words else "standard"
    for pattern in (words[n + 1] for n, word in enumerate(words) if word == "--only"):
        assert make_plan(two, Request(preset=preset, only=(pattern,))).points, page


def test_the_pages_name_no_folder_of_a_machine() -> None:
    for page in PAPERS.glob("*.md"):
        assert not re.search(r"/(work|home|root|tmp)/", page.read_text()), page
    assert Path(PAPERS / "README.md").is_file()
