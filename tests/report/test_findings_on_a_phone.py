"""Reports of machines with several faults at once, as a phone shows them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from machine.captured import machine as captured
from report import machines
from report.browser import PATIENCE_MILLISECONDS
from waywiser.machine.machine import Machine
from waywiser.render.document import document
from waywiser.render.entry import entry
from waywiser.render.page import page
from waywiser.words import Workload

WIDTHS = (320, 390)
MOST_CHARACTERS = 160
"""The longest title of a finding."""
LONG = "a-node-of-a-cluster-with-a-very-long-name-0123456789.of-a-subdomain.example.org"
IMPORTED = {"imported": [{"tool": "a tool with a long name", "version": "1.2.3"}]}

Slow = Callable[[Workload], float]


def link(gpu: int, factor: float) -> Slow:
    """Everything between the host and a GPU takes longer."""
    return lambda what: factor if {"numa", "gpu"} == _kinds(what) and gpu in _gpus(what) else 1.0


def peers(one: int, other: int, factor: float) -> Slow:
    return lambda what: factor if _gpus(what) == {one, other} else 1.0


def direction(kinds: tuple[str, str], factor: float) -> Slow:
    def slow(what: Workload) -> float:
        found = {tuple(p.kind for p in each.path.places) for each in what.transfers}
        return factor if found == {kinds} else 1.0

    return slow


def size(bytes: int, factor: float) -> Slow:
    """A dip at one size of all copies to the host."""
    to_host = direction(("gpu", "numa"), factor)
    return lambda what: to_host(what) if what.bytes == bytes else 1.0


def _kinds(what: Workload) -> set[str]:
    return {place.kind for place in what.places}


def _gpus(what: Workload) -> set[int]:
    return {place.index for place in what.places if place.kind == "gpu"}


def places(seed: int, gpus: int) -> list[int]:
    """Two GPUs between which the link is slow, and another one."""
    return random.Random(seed).sample(range(gpus), 3)


def planted(seed: int, gpus: int) -> Slow:
    """Five faults of different kinds, at random places."""
    rng = random.Random(seed)
    one, other, third = places(seed, gpus)
    faults = [
        link(one, rng.uniform(1.3, 2.5)),
        peers(one, other, rng.uniform(1.2, 3)),
        link(third, rng.uniform(1.1, 1.3)),
        direction(("numa", "gpu"), rng.uniform(1.1, 1.5)),
        size(2 ** rng.choice([18, 21, 24]), rng.uniform(2, 4)),
    ]

    def slow(what: Workload) -> float:
        factor = 1.0
        for fault in faults:
            factor *= fault(what)
        return factor

    return slow


def machine_of(seed: int) -> Machine:
    found = machines.eight_gpus(LONG) if seed % 2 else captured("two-socket-4gpu")
    return msgspec.structs.replace(found, hostname=LONG)


@pytest.fixture(scope="module", params=range(4))
def planted_page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """Surveys of four and eight GPUs, the last two as results of another tool, and the link that
    is slow."""
    machine = machine_of(request.param)
    slow = planted(request.param, len(machine.gpus))
    subject = machines.subject(machine, request.param, blocks=2, count=8, slow=slow)
    if request.param > 1:
        subject = msgspec.structs.replace(subject, environment=IMPORTED)
    file = tmp_path_factory.mktemp("planted") / "report.html"
    file.write_text(page(document([entry(subject)])))
    one, other = sorted(places(request.param, len(machine.gpus))[:2])
    return file, f"link between gpu:{one} and gpu:{other} is slow"


@pytest.fixture(params=WIDTHS)
def shown(
    request: pytest.FixtureRequest, chromium: Any, planted_page: tuple[Path, str]
) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": request.param, "height": 844})
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    found = context.new_page()
    found.goto(planted_page[0].as_uri())
    yield found
    context.close()


TITLES = r"""() => [...document.querySelectorAll('.remark > .statement')].map(each => {
  const copy = each.cloneNode(true);
  copy.querySelectorAll('.badge').forEach(badge => badge.remove());
  return copy.textContent.replace(/\s+/g, ' ').trim();
})"""
BEYOND = """() => [...document.querySelectorAll('main *, header *, nav *')].filter(each =>
  each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 1 &&
  !each.closest('.scroll, .drawing, pre') && !each.closest('.aloud')
).map(each => each.outerHTML.slice(0, 120))"""
CUT = """() => [...document.querySelectorAll('.remark *')].filter(each =>
  each.checkVisibility() && !each.closest('.scroll, pre, .aloud') &&
  getComputedStyle(each).overflowX === 'hidden' && each.scrollWidth > each.clientWidth + 1
).map(each => each.outerHTML.slice(0, 120))"""


def test_many_findings_fit_a_phone_and_have_short_titles(
    shown: Any, planted_page: tuple[Path, str]
) -> None:
    width = shown.viewport_size["width"]
    titles = shown.evaluate(TITLES)
    assert len(titles) > 3 and any(planted_page[1] in each for each in titles[:2])
    assert [each for each in titles if not 0 < len(each) <= MOST_CHARACTERS] == []
    for opened in (False, True):
        if opened:
            shown.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.evaluate(BEYOND) == []
        assert shown.evaluate(CUT) == []
