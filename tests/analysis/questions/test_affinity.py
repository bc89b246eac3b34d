"""Local and remote memory, as the system reports it."""

from __future__ import annotations

import pytest
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import SIZES, curve, postal, subject

from waywiser.analysis.questions.affinity import answer
from waywiser.curves.answer import Answer
from waywiser.words.records import Series

FEW = SIZES[::2]


def answered(rate: float = 1.0, latency: float = 1.0, *, gpus: int = 4) -> Answer:
    """A machine with two nodes: remote memory has so much of the rate, and so much of the
    latency."""
    found: list[list[Series]] = []
    for gpu in range(gpus):
        for node in range(2):
            far = node != gpu * 2 // gpus
            truth = postal(5e-6 * (latency if far else 1), 50e9 * (rate if far else 1))
            host, device = f"pinned@numa:{node}", f"device@gpu:{gpu}"
            found.append(curve(f"{host} -> {device} by copy-engine", truth, FEW))
    return answer(subject(*found, machine=machine(gpus, 2)))


def test_where_the_node_does_not_matter_nothing_is_found() -> None:
    found = answered()
    assert found.findings == ()
    assert [cell.mark for cell in found.tables[0].rows[0].cells] == ["", "no", "no", "no", ""]
    assert "does not change the bandwidth" in found.summary


def test_a_remote_node_that_is_slower_is_reported_with_how_much() -> None:
    found = answered(rate=1 / 1.08)
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("remote-memory", "info")
    assert finding.effect == pytest.approx(1 - 1 / 1.08, abs=0.01)
    assert "all 4 pairs" in finding.text
    assert [device.place for device in finding.devices] == [f"gpu:{gpu}" for gpu in range(4)]
    assert "numactl" in finding.remedy
    row = found.tables[0].rows[0]
    assert (row.cells[1].mark, row.cells[3].mark) == ("yes", "no")
    assert row.cells[1].text.startswith("−")


def test_effects_of_opposite_sign_are_reported_for_each_pair() -> None:
    found = []
    for gpu in range(4):
        for node in range(2):
            far = node != gpu // 2
            rate = 50e9 * ({0: 0.8, 1: 0.8, 2: 1.25, 3: 1.25}[gpu] if far else 1)
            path = f"pinned@numa:{node} -> device@gpu:{gpu} by copy-engine"
            found.append(curve(path, postal(5e-6, rate), FEW))
    result = answer(subject(*found, machine=machine(4, 2)))
    (finding,) = [each for each in result.findings if each.id.startswith(("aff", "far-m", "far-i"))]
    assert finding.id == "affinity-differs"
    assert "gpu:0 −20 %" in finding.text and "gpu:3 +25 %" in finding.text
    assert "4 of 4 pairs differ" in finding.text
    assert result.tables[0].rows[0].cells[1].mark == "yes"


def test_small_copies_are_distinguished() -> None:
    (finding,) = answered(latency=1.1).findings
    assert finding.id == "remote-latency"


def test_a_remote_node_that_is_faster_is_odd() -> None:
    (finding,) = answered(rate=1.2).findings
    assert (finding.id, finding.severity) == ("local-memory-slower", "warning")
    assert finding.effect == pytest.approx(1 - 1 / 1.2, abs=0.01)
    assert "numa_node" in finding.remedy


def test_copies_within_a_node_are_related_with_copies_to_another() -> None:
    texts = {
        1: "pageable@numa:0 -> pageable@numa:0 by cpu",
        2: "pageable@numa:0 -> pageable@numa:1 by cpu",
    }
    found = answer(
        subject(
            *(curve(text, postal(1e-6, 10e9 / times), FEW) for times, text in texts.items()),
            machine=machine(2, 2),
        )
    )
    assert found.findings[0].id == "remote-memory"
    assert found.tables[0].rows[0].cells[0].text == "pageable -> pageable by cpu"


def test_of_one_node_nothing_can_be_reported() -> None:
    text = "pinned@numa:0 -> device@gpu:0 by copy-engine"
    found = answer(subject(curve(text, postal(1e-6, 1e10), FEW)))
    assert (found.findings, found.tables) == ((), ())
    assert "Not applicable: the system shows 1 NUMA node" in found.summary
