"""The links of GPUs in ``show``: a row for each GPU, with the verdict of the report."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rich.console import Console
from tests import profiles
from tests.analysis.questions.machines import LARGE, altered, host_links, machine
from tests.analysis.questions.subjects import subject

from waywiser.analysis.questions.gpu_links import (
    TITLE,
    gpu_link_table,
    gpu_links,
    link_verdict,
    links_text,
)
from waywiser.analysis.questions.identical import answer as identical
from waywiser.analysis.questions.peer_groups import peer_groups
from waywiser.curves.overview import overview
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine, PcieLink
from waywiser.profile import Profile
from waywiser.profile.writable import write_profile
from waywiser.render.terminal import print_parts
from waywiser.render.views.profile import profile_parts


def written(
    path: Path,
    gpus: int,
    slow: Mapping[int, float] = {},
    *,
    of: Machine | None = None,
    sizes: Sequence[int] = LARGE,
) -> Path:
    made = host_links(gpus, slow, sizes=sizes, blocks=4)
    visits = (visit for series in made for visit in series.visits)
    write_profile(path, of or machine(gpus), profiles.ENVIRONMENT, visits, command=("test",))
    return path


def text(file: Path, width: int = 140, only: Sequence[str] = ()) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, highlight=False, force_terminal=True, color_system=None
    )
    with Profile.open(file) as profile:
        print_parts(console, profile_parts(profile, overview(profile, only), only=only))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def rows(file: Path, width: int = 140) -> list[list[str]]:
    """The cells of the table, its columns first, and the line below it."""
    _, head, rest = text(file, width).partition(f"{TITLE}  ")
    lines = (head + rest).split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


def test_of_two_gpus_the_slower_alone_differs(tmp_path: Path) -> None:
    _, healthy, slow, _ = rows(written(tmp_path / "a.wwp", 2, {1: 0.25}))
    assert healthy[-1] == "equivalent"
    assert slow[-1].startswith("slower: H2D −20")


def test_each_gpu_has_a_row_with_the_verdict_of_the_report(tmp_path: Path) -> None:
    file = written(tmp_path / "a.wwp", 4, {3: 0.25}, sizes=(8, *LARGE))
    head, *gpus, legend = rows(file)
    assert head == [
        TITLE, "H2D GB/s", "H2D share", "D2H GB/s", "D2H share", "latency", "verdict",
    ]  # fmt: skip
    assert [row[0] for row in gpus] == ["gpu:0", "gpu:1", "gpu:2", "gpu:3"]
    assert [row[-1] for row in gpus[:3]] == ["equivalent"] * 3
    verdict = gpus[3][-1]
    assert verdict.startswith("slower: H2D −20") and ", D2H −2" in verdict
    assert gpus[3][2] in ("79.9%", "80.0%", "80.1%") and gpus[3][5].endswith(" µs")
    assert legend == [
        "GB/s at 256 MiB; share: of the median of the others; latency: H2D of 8 B; "
        "equivalent: within 3%"
    ]
    with Profile.open(file) as profile:
        subject = Subject.of(profile)
    peers = [each for group in peer_groups(subject) for each in group]
    assert [link_verdict(link) for link in gpu_links(subject.machine, peers).values()] == [
        row[-1] for row in gpus
    ]
    (table,) = gpu_link_table(subject, peers)
    assert [row.cells[1].mark for row in table.rows] == ["no", "no", "no", "yes"]


def test_gpus_that_are_not_equivalent_have_their_share_of_the_bound(tmp_path: Path) -> None:
    other = altered(machine(2), 1, name="Another GPU", pcie=PcieLink(6, 16, 6, 16))
    _, *gpus, legend = rows(written(tmp_path / "a.wwp", 2, of=other))
    assert [[row[0], row[2], row[4], row[5]] for row in gpus] == [
        ["gpu:0", "79% of bound", "79% of bound", "no equivalent GPU"],
        ["gpu:1", "41% of bound", "41% of bound", "no equivalent GPU"],
    ]
    assert legend == ["GB/s at the largest size"]


@pytest.mark.parametrize("gpus", [1, 2])
def test_one_gpu_has_nothing_to_be_compared_with(tmp_path: Path, gpus: int) -> None:
    assert (TITLE in text(written(tmp_path / "a.wwp", gpus))) == (gpus > 1)


def test_a_selection_has_no_such_table(tmp_path: Path) -> None:
    assert TITLE not in text(written(tmp_path / "a.wwp", 2), only=("h2d",))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_fits_a_narrow_terminal(tmp_path: Path, width: int) -> None:
    made = text(written(tmp_path / "a.wwp", 8, {3: 0.25}, sizes=(8, *LARGE)), width)
    assert TITLE in made and max(map(len, made.splitlines())) <= width


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        ({}, "The links of all 4 GPUs to the host are equivalent within 3%"),
        ({3: 0.25}, "The link of gpu:3 to the host is slower than those of the others"),
        (
            {2: 0.25, 3: 0.2},
            "The links of gpu:2, gpu:3 to the host are slower than those of the others",
        ),
    ],
)
def test_the_answer_about_equivalence_begins_with_the_links(
    tmp_path: Path, slow: Mapping[int, float], said: str
) -> None:
    with Profile.open(written(tmp_path / "a.wwp", 4, slow)) as profile:
        answer = identical(Subject.of(profile))
    assert answer.summary.startswith(f"{said}. Of 8 paths in 2 groups, ")


@pytest.mark.parametrize("between", [0.001, 0.02, 0.2])
@pytest.mark.parametrize("blocks", [1, 4])
@pytest.mark.parametrize("gpus", [2, 5])
def test_each_answer_about_links_says_what_could_be_missed(
    gpus: int, blocks: int, between: float
) -> None:
    series = host_links(gpus, {}, sizes=LARGE, blocks=blocks, between=between)
    found = subject(series, machine=machine(gpus))
    peers = [each for group in peer_groups(found) for each in group]
    said = links_text(gpu_links(found.machine, peers))
    limits = r"equivalent within 3%|up to [\d.]+ % less bandwidth could be missed"
    assert re.search(f"{limits}|is not decidable: nothing replicates", said), said


@pytest.mark.parametrize("direction", ["d2h", "h2d"])
@pytest.mark.parametrize("gpus", [2, 4])
def test_links_of_one_direction_are_shown(direction: str, gpus: int, tmp_path: Path) -> None:
    """Files of other tools often have no other."""
    first = "pinned" if direction == "h2d" else "device"
    visits = [
        visit
        for series in host_links(gpus, {}, sizes=LARGE, blocks=4)
        if str(series.workload).startswith(first)
        for visit in series.visits
    ]
    file = tmp_path / "one.wwp"
    write_profile(file, machine(gpus), profiles.ENVIRONMENT, visits, command=("test",))
    shown = text(file)
    other = "D2H" if direction == "h2d" else "H2D"
    assert TITLE in shown and f"{direction.upper()} GB/s" in shown
    assert f"{other} GB/s" not in shown
