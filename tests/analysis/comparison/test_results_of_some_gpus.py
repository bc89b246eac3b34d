"""Results of other tools that name fewer GPUs than there are: what they leave out is unknown, and
neither gone nor missing."""

from __future__ import annotations

import random
from functools import cache

import pytest
from msgspec.structs import replace
from tests.analysis.comparison import nodes

from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.subject import Subject


@cache
def surveyed(gpus: int) -> Subject:
    return nodes.node(gpus, gpus=gpus, blocks=2)


def results(gpus: list[int], of: int, *, identified: bool) -> Subject:
    """What another tool says of some of the GPUs of a machine with so many."""
    whole = nodes.node(100 + of, gpus=of, blocks=2)
    named = tuple(
        each if identified else replace(each, uuid="", pci="")
        for each in whole.machine.gpus
        if each.index in gpus
    )
    series = tuple(
        each
        for each in whole.points
        if {p.index for p in each.workload.places if p.kind == "gpu"} <= set(gpus)
    )
    machine = replace(whole.machine, architecture="", numa=(), gpus=named)
    return replace(whole, machine=machine, points=series, links={}, tools=("nvbandwidth 0.8",),
                   request="")  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_gpus_that_results_do_not_name_are_not_said_to_be_gone(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 5)
    named = sorted(rng.sample(range(count), rng.randint(1, count - 1)))
    new = results(named, count, identified=rng.random() < 0.7)
    base = surveyed(count) if rng.random() < 0.6 else replace(new, **_all(count))
    found = compare([base], [new])
    assert not found.missing_gpus and not found.of("missing")
    assert len(found.unnamed_gpus) == count - len(named)
    said = [*found.notes, *(path.why for path in found.paths)]
    assert not any("gone" in text or "missing" in text for text in said)
    assert sum("is not named by the results" in note for note in found.notes) == count - len(named)
    checked = check_up(new, [base])
    assert not any("gpu" in each.text for each in checked.findings)
    assert checked.status != "ok"
    assert any("is not named by the results" in text for text in checked.undecided)


def _all(count: int) -> dict[str, object]:
    whole = results(list(range(count)), count, identified=True)
    return {"machine": whole.machine, "points": whole.points, "created": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("count", range(2, 6))
def test_gpus_that_results_name_are_not_said_to_be_new(count: int) -> None:
    base = results([0], count, identified=True)
    notes = compare([base], [surveyed(count)]).notes
    assert not any("was not there before" in note for note in notes)
    assert sum("was not named before" in note for note in notes) == count - 1


@pytest.mark.parametrize("count", range(2, 6))
def test_a_survey_without_a_gpu_of_the_results_says_that_it_is_gone(count: int) -> None:
    base = results(list(range(count)), count, identified=True)
    found = compare([base], [nodes.without(surveyed(count), "0000:02:00.0")])
    assert [device.place for device in found.missing_gpus] == ["gpu:1"]
