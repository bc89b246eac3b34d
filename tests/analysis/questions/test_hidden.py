"""Sides that the system does not show."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import curve, postal, subject

import sides as synthetic
from waywiser.analysis.questions.affinity import answer
from waywiser.analysis.questions.hidden import costs
from waywiser.curves.subject import Subject
from waywiser.words.records import Locality, Series, Visit

NEAR, FAR = (5.8e-6,) * 4 + (6.4e-6,) * 4, (6.4e-6,) * 4 + (5.8e-6,) * 4
"""Latencies from a block on the side of GPUs 0 to 3, and from one on the other, by GPU."""


def placed(series: Sequence[Series], *, cost: float) -> list[Series]:
    """Blocks of even numbers lie on the side of GPUs 0 to 3, others on the other; far ones take
    ``cost`` times as long."""
    return [Series(each.workload, tuple(_placed(v, cost) for v in each.visits)) for each in series]


def _placed(visit: Visit, cost: float) -> Visit:
    side = visit.block % 2
    gpu = next(
        place.index
        for transfer in visit.workload.transfers
        for place in (transfer.path.source.place, transfer.path.destination.place)
        if place.kind == "gpu"
    )
    times = cost if (gpu >= 4) != side else 1.0
    span = tuple(seconds * times for seconds in visit.samples.span)
    buffers = tuple(
        msgspec.structs.replace(each, gpu_seconds=FAR if side else NEAR)
        if each.memory.startswith("pinned")
        else each
        for each in visit.buffers
    )
    samples = msgspec.structs.replace(visit.samples, span=span)
    return msgspec.structs.replace(visit, samples=samples, buffers=buffers)


def two_sided(cost: float, localities: Sequence[Locality], nodes: int = 1) -> Subject:
    series: list[Series] = []
    for gpu in range(8):
        text = f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine"
        series += curve(text, postal(5e-6, 50e9), (8, 64, 2**26), blocks=2)
    return subject(placed(series, cost=cost), machine=machine(8, nodes), localities=localities)


def test_two_hidden_sockets_are_found_with_their_evidence() -> None:
    found = answer(two_sided(1.1, synthetic.records(5)))
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("hidden-sockets", "warning")
    assert "GPUs 0-3 and GPUs 4-7" in finding.statement
    assert finding.effect == pytest.approx(0.1, abs=0.02)
    assert [device.place for device in finding.devices] == [f"gpu:{gpu}" for gpu in range(8)]
    latencies = [exhibit.value for exhibit in finding.exhibits[:2]]
    assert latencies == pytest.approx([5.8e-6, 6.4e-6], rel=0.05)
    assert "GPUs 0-3" in found.summary


def test_what_it_costs_to_be_far_is_reported_by_kind_and_size() -> None:
    small, large = costs(two_sided(1.1, synthetic.records(5)))
    assert (small.regime, large.regime) == ("latency", "bandwidth")
    assert (small.local, small.remote) == (2, 2), "processes, not their curves"
    assert small.decision.ratio == pytest.approx(1 / 1.1, abs=0.01)
    assert small.decision.interval is not None
    assert small.decision.interval.high < 1 / 1.05
    table = answer(two_sided(1.1, synthetic.records(5))).tables[-1]
    assert [row.cells[2].mark for row in table.rows] == ["yes", "yes"]
    assert table.rows[0].cells[3].text == "2 and 2"


def test_being_far_may_cost_nothing() -> None:
    table = answer(two_sided(1.0, synthetic.records(5))).tables[-1]
    assert [row.cells[2].mark for row in table.rows] == ["no", "no"]


def test_sides_that_the_system_shows_are_not_hidden() -> None:
    assert answer(two_sided(1.0, synthetic.records(5), nodes=2)).findings == ()


def test_sides_that_contradict_the_system_are_reported() -> None:
    seen = two_sided(1.0, synthetic.records(5))
    gpus = tuple(msgspec.structs.replace(gpu, numa=gpu.index % 2) for gpu in seen.machine.gpus)
    other = msgspec.structs.replace(seen.machine, gpus=gpus)
    found = answer(msgspec.structs.replace(seen, machine=other))
    assert [finding.id for finding in found.findings] == ["affinity-contradicted"]


def test_one_socket_shows_no_sides() -> None:
    found = answer(two_sided(1.0, synthetic.records(5, sockets=1)))
    assert found.findings == ()
    assert "no hidden NUMA node was found" in found.summary


def test_peers_are_compared_from_memory_that_is_as_near() -> None:
    """Without this a block that is far from half of the GPUs would make them look slow."""
    from waywiser.analysis.questions.identical import answer as identical

    assert identical(two_sided(1.1, synthetic.records(5))).findings == ()


def test_nodes_within_the_measured_sides_do_not_contradict_them() -> None:
    """Sockets that show themselves as two nodes each."""
    seen = two_sided(1.0, synthetic.records(5), nodes=4)
    assert answer(seen).findings == ()
