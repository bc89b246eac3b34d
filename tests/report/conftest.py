"""Documents to look at, made once, and the browser to look with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analysis.comparison import nodes
from kept import RESULTS, unpacked
from machine.captured import machine as captured
from report import answered, browser, machines
from waywiser.analysis.comparison.fleet import Fleet, assess_fleet
from waywiser.curves.subject import LoadedLink
from waywiser.model.machine_model import obtained_model
from waywiser.profile import Profile, derived
from waywiser.render.document import document
from waywiser.render.entry import Entry, entry, read
from waywiser.render.fleet import fleet_document
from waywiser.render.page import page
from waywiser.render.parts import Document

HOSTILE = '<script>alert("gotcha")</script>&amp;'


def _entry(hostname: str, seed: int = 1, key: str = "", name: str = "") -> Entry:
    subject = machines.subject(machines.eight_gpus(hostname), seed, blocks=1, count=8)
    made = entry(subject, '{"request":{"preset":"standard"}}', name, key)
    return msgspec.structs.replace(made, answers=answered.answers())


@pytest.fixture(scope="session")
def alone() -> Document:
    """An eight-GPU machine whose name is hostile."""
    return document([_entry(HOSTILE)])


@pytest.fixture(scope="session")
def beside() -> Document:
    """Two of them."""
    return document([_entry("node1", 1, "a-"), _entry("node2", 2, "b-")])


@pytest.fixture(scope="session")
def assessed() -> Fleet:
    """Twelve equal hosts: one has a link at half its width, one a slower GPU, one lacks a GPU."""
    found = [nodes.node(1, f"n{host:02}") for host in range(12)]
    found[3] = nodes.node(1, "n03", slow=nodes.slow_host_link(2, 2.0), links={2: LoadedLink(5, 8)})
    found[7] = nodes.node(1, "n07", slow=nodes.slow_host_link(5, 1.1))
    found[9] = nodes.without(found[9], "0000:04:00.0")
    return assess_fleet(found, unreadable={"/data/<b>.wwp": "is no profile"})


@pytest.fixture(scope="session")
def fleet(assessed: Fleet) -> Document:
    return fleet_document(assessed)


@pytest.fixture(scope="session")
def direct() -> Document:
    """Four GPUs with links from each to each, on two NUMA nodes that the system shows."""
    machine = captured("two-socket-4gpu")
    return document([entry(machines.subject(machine, blocks=1, count=6))])


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """The largest survey that is kept, with its model: a machine with four GPUs."""
    packed = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
    file = unpacked(packed, tmp_path_factory.mktemp("recorded") / "standard.wwp")
    with pytest.MonkeyPatch.context() as cache:
        cache.setattr(derived, "MOST_BYTES", 2**30)
        cache.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with Profile.open(file) as profile:
            obtained_model(profile)
        return document(read([file]))


@pytest.fixture(scope="session")
def pages(
    alone: Document,
    beside: Document,
    direct: Document,
    fleet: Document,
    recorded: Document,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made_of = {
        "alone": alone,
        "beside": beside,
        "direct": direct,
        "fleet": fleet,
        "recorded": recorded,
    }
    for name, made in made_of.items():
        (folder / f"{name}.html").write_text(page(made))
    return {path.stem: path for path in folder.iterdir()}


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.launched(tmp_path_factory.mktemp("chromium")) as found:
        yield found
