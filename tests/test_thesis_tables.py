"""The tables of a thesis chapter on explicit transfers, cell by cell, from its own raw data.

C. Pearson, M.S. thesis, 2018: the effect of affinity, anisotropy, and the difference between
identical transfers, on an IBM S822LC and an NVIDIA DGX-1. A cell agrees, or is not determined with
the detectable effect, or disagrees. Each file holds one process, so that equivalent paths show the
noise. The files are not part of this repository; tests are skipped if they are absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from exchange.imports.shared_files import shared
from waywiser.analysis.questions import across
from waywiser.analysis.questions.all_answers import answers
from waywiser.curves.answer import Finding, SheetCell
from waywiser.curves.subject import Subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.words.status import SEVERITY_ORDER

CAPTURES = Path(__file__).parent / "captures"
BY = "by copy-engine"
AFFINITY, ANISOTROPY, IDENTICAL = "Affinity", "Anisotropy", "Differences between equivalent paths"
BOTH = ("local", "remote")

ROWS: dict[tuple[str, str], tuple[str, ...]] = {
    (AFFINITY, "pageable -> GPU"): (f"pageable -> GPU {BY}",),
    (AFFINITY, "pageable <- GPU"): (f"GPU -> pageable {BY}",),
    (AFFINITY, "pinned -> GPU"): (f"pinned -> GPU {BY}",),
    (AFFINITY, "pinned <- GPU"): (f"GPU -> pinned {BY}",),
    **{
        (ANISOTROPY, f"{kind} <-> GPU ({near})"): (f"{kind} <-> GPU {BY} ({near})",)
        for kind in ("pageable", "pinned")
        for near in BOTH
    },
    **{
        (IDENTICAL, f"{kind} -> GPU"): tuple(f"{kind} -> GPU {BY} ({near})" for near in BOTH)
        for kind in ("pageable", "pinned")
    },
    **{
        (IDENTICAL, f"{kind} <- GPU"): tuple(f"GPU -> {kind} {BY} ({near})" for near in BOTH)
        for kind in ("pageable", "pinned")
    },
    (IDENTICAL, "GPU <-> local GPU, peer on"): (
        f"GPU -> GPU {BY} (local)",
        f"GPU -> GPU {BY} (NVLink ×1, local)",
    ),
    # The chapter compares copies that are submitted by the node of the sending GPU.
    (IDENTICAL, "GPU <-> local GPU, peer off"): (
        f"GPU -> GPU {BY} (peer off, local, submitted locally)",
    ),
    (IDENTICAL, "GPU <-> remote GPU, peer off"): (
        f"GPU -> GPU {BY} (peer off, remote, submitted by the source's node)",
    ),
}
"""The rows of the program's tables that a cell of the chapter is about."""

DIFFERENT = {
    "s822lc": {
        (AFFINITY, "pageable <- GPU"),
        (AFFINITY, "pinned -> GPU"),
        (AFFINITY, "pinned <- GPU"),
        *(cell for cell in ROWS if cell[0] == ANISOTROPY),
        (IDENTICAL, "pageable -> GPU"),
        (IDENTICAL, "GPU <-> local GPU, peer off"),
    },
    "dgx-1": {
        *(cell for cell in ROWS if cell[0] == ANISOTROPY),
        (IDENTICAL, "GPU <-> local GPU, peer off"),
    },
}
"""Where the chapter's tables have a tick; all other cells have a cross."""

TOPOLOGY = {
    "s822lc": lambda: shared("hwloc") / "coral-ea-hwloc1.xml",
    "dgx-1": lambda: CAPTURES / "dgx-1.json",
}


class Compared(NamedTuple):
    machine: str
    cell: tuple[str, str]
    verdict: str
    """``agree``, ``not determined``, ``disagree``."""
    found: str


@pytest.fixture(scope="module", params=["s822lc", "dgx-1"])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    name = request.param
    target = tmp_path_factory.mktemp(name) / "imported.wwp"
    import_files([shared(name)], target, machine=name, topology=TOPOLOGY[name]())
    with Profile.open(target) as profile:
        return Subject.of(profile)


def compared(subject: Subject) -> Iterator[Compared]:
    tables = {
        table.title: {row.cells[0].text: row.cells[1] for row in table.rows}
        for table in across.tables([subject])
    }
    for (title, cell), rows in ROWS.items():
        cells = [tables[title][row] for row in rows if row in tables[title]]
        assert cells, (title, rows)
        says = "yes" if (title, cell) in DIFFERENT[subject.name] else "no"
        yield Compared(subject.name, (title, cell), against(says, cells), text(cells))


def against(says: str, cells: list[SheetCell]) -> str:
    """A cross of the chapter is about all rows, a tick about some."""
    marks = {cell.mark for cell in cells}
    if "yes" in marks:
        return "agree" if says == "yes" else "disagree"
    if "unclear" in marks:
        return "not determined"
    return "agree" if says == "no" else "disagree"


def text(cells: list[SheetCell]) -> str:
    return "; ".join(f"{cell.mark} {cell.text} {cell.series}" for cell in cells)


def test_no_cell_disagrees_but_one_that_the_files_contradict(machine: Subject) -> None:
    found = list(compared(machine))
    assert len(found) == len(ROWS) == 15
    wrong = [each for each in found if each.verdict == "disagree"]
    if machine.name == "s822lc":
        assert wrong == []
        return
    (only,) = wrong  # all eight GPUs write 60 % longer to the remote node, up to 512 MiB
    assert only.cell == (AFFINITY, "pageable <- GPU")
    slower = [remote_penalty(machine, gpu) for gpu in range(8)]
    assert min(slower) > 1.4


def remote_penalty(subject: Subject, gpu: int) -> float:
    """For a copy of 64 MiB to pageable memory: time to the remote node over time to the local."""
    seconds = []
    for node in (1 - gpu // 4, gpu // 4):
        curve = subject.curve(f"device@gpu:{gpu} -> pageable@numa:{node} {BY}[api=sync]")
        assert curve is not None
        point = curve.at(2**26)
        assert point is not None
        seconds.append(point.seconds)
    return seconds[0] / seconds[1]


def test_few_cells_are_not_determined_and_they_say_what_could_be_missed(machine: Subject) -> None:
    """Three of the 30 cells of both machines differ."""
    open_ = {each.cell: each.found for each in compared(machine) if each.verdict[0] == "n"}
    expected = {
        "s822lc": {
            (AFFINITY, "pageable -> GPU"),
            (IDENTICAL, "pageable <- GPU"),
            (IDENTICAL, "GPU <-> remote GPU, peer off"),
        },
        "dgx-1": set(),
    }
    assert open_.keys() == expected[machine.name]
    assert all("< " in found for found in open_.values())


ACCUSATIONS = ("slow-link", "uneven-paths", "missing-lanes", "narrow-link", "missing-peers",
               "missing-path", "anisotropic-path", "low-share")  # fmt: skip
"""Findings that, as warnings or errors, name hardware to be looked at."""


def test_the_first_findings_accuse_no_hardware(machine: Subject) -> None:
    """These machines had no defects."""
    findings: list[Finding] = [each for answer in answers(machine) for each in answer.findings]
    findings.sort(key=lambda each: -SEVERITY_ORDER.index(each.severity))
    accused = [f.statement for f in findings if f.id in ACCUSATIONS and f.severity != "info"]
    assert accused == []
    for each in findings[:5]:
        assert not any(word in each.remedy for word in ("slot", "riser", "cable")), each.statement


def test_links_that_only_the_submitting_node_makes_slow_are_not_equivalent(
    machine: Subject,
) -> None:
    """Copies without peer access that another socket submits are slower; no path is blamed for
    it."""
    tables = {table.title: table for table in across.tables([machine])}
    rows = [row.cells[0].text for row in tables[IDENTICAL].rows if "peer off" in row.cells[0].text]
    assert len(rows) == 4
    assert all("submitted" in row for row in rows)
