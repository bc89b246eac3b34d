"""Ranks at the nodes of their GPUs and at other nodes, in one profile."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import SIZES, curve, postal, subject

from waywiser.analysis.questions.affinity import answer
from waywiser.analysis.questions.rank_affinity import by_kind, local_ranks_text
from waywiser.curves.answer import Answer
from waywiser.curves.kinds import kind_of
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine
from waywiser.measure.ranks.placement import place_ranks
from waywiser.words import Transfer

FEW = SIZES[::2]


def with_ranks(where: str = "near,far", ranks: int = 4) -> Machine:
    bare = machine(4, 2)
    return replace(bare, ranks=place_ranks(bare, ranks, 1, where))


def answered(rate: float, made: Machine) -> Answer:
    return answer(surveyed(rate, made))


def surveyed(rate: float, made: Machine) -> Subject:
    """Returns a profile in which remote ranks have this fraction of the bandwidth."""
    found = []
    for first in (0, 2, 4, 6):
        text = f"device@rank:{first} -> device@rank:{first + 1} by mpi"
        far = kind_of(Transfer.parse(f"{text} of 1"), made).nearness == "remote"
        found.append(curve(text, postal(5e-6, 200e9 * (rate if far else 1)), FEW, mode="host"))
    return subject(*found, machine=made)


def test_remote_ranks_are_compared_with_local_ones_of_the_same_gpus() -> None:
    found = answered(0.8, with_ranks())
    (finding,) = found.findings
    assert finding.id == "remote-ranks"
    assert finding.effect == pytest.approx(0.2, abs=0.01)
    assert "have less bandwidth between ranks at another node" in finding.text
    assert "(both pairs)" in finding.text
    (table,) = found.tables
    assert table.title == "Ranks at another node against local ranks"
    assert [cell.text for cell in table.rows[0].cells][:2] == ["device -> device by mpi", "−20 %"]
    assert "Between ranks: yes, for device -> device by mpi." in found.summary


def test_where_the_node_does_not_matter_nothing_is_found() -> None:
    found = answered(1.0, with_ranks())
    assert found.findings == ()
    assert "Between ranks: no by more than 3%, for 1 kind." in found.summary


@pytest.mark.parametrize(
    ("rate", "where", "says"),
    [
        (0.8, "near,far", "were measured to be slower: device -> device by mpi"),
        (1.0, "near,far", "were measured to be no slower by more than 3%, for 1 kind"),
        (0.8, "near", ""),
    ],
)
def test_placements_say_what_local_ranks_gain(rate: float, where: str, says: str) -> None:
    made = with_ranks(where, 4 if "far" in where else 8)
    assert says in local_ranks_text(by_kind(surveyed(rate, made)))
    assert bool(says) == bool(local_ranks_text(by_kind(surveyed(rate, made))))


def test_ranks_of_one_placement_are_compared_with_nothing() -> None:
    found = answered(0.8, with_ranks("near", 8))
    assert found.tables == () and not found.answered


@pytest.mark.parametrize(
    ("where", "text", "nearness"),
    [
        ("near", "device@rank:0 -> device@rank:3 by mpi of 1", "local"),
        ("far", "device@rank:0 -> device@rank:3 by mpi of 1", "remote"),
        ("numa:0", "device@rank:0 -> device@rank:3 by mpi of 1", "remote"),
        ("numa:0", "device@rank:0 -> device@rank:1 by mpi of 1", "local"),
        ("far", "pageable@rank:0 -> pageable@rank:1 by mpi of 1", "local"),
        ("near", "pageable@rank:0 -> pageable@rank:3 by mpi of 1", "remote"),
        ("near", "pageable@rank:0 -> pageable@rank:9 by mpi of 1", ""),
    ],
)
def test_nearness_is_that_of_ranks_to_their_gpus_or_to_each_other(
    where: str, text: str, nearness: str
) -> None:
    assert kind_of(Transfer.parse(text), with_ranks(where)).nearness == nearness


def test_results_of_other_tools_say_nothing_of_it() -> None:
    bare = machine(4, 2)
    assert (
        kind_of(Transfer.parse("device@rank:0 -> device@rank:1 by mpi of 1"), bare).nearness == ""
    )
