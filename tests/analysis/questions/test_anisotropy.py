"""There against back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests import profiles
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import SIZES, Seconds, curve, postal, subject

from waywiser.analysis.questions.anisotropy import answer
from waywiser.machine.traits import ExecutorTraits, Traits
from waywiser.words.records import Series

EVEN = postal(5e-6, 50e9)
SLOW = postal(5e-6, 50e9 / 1.05)
FEW = SIZES[::2]


def bidirectional(
    there: Seconds, back: Seconds, gpu: int = 0, kind: str = "pinned"
) -> list[Series]:
    host, device = f"{kind}@numa:0", f"device@gpu:{gpu}"
    return [
        *curve(f"{host} -> {device} by copy-engine", there, FEW),
        *curve(f"{device} -> {host} by copy-engine", back, FEW),
    ]


def test_a_machine_that_is_even_has_nothing_to_show() -> None:
    found = answer(subject(bidirectional(EVEN, EVEN), bidirectional(EVEN, EVEN, 1)))
    assert (found.findings, found.unanswered) == ((), ())
    (row,) = found.tables[0].rows
    assert [cell.mark for cell in row.cells] == ["", "no", "no", "no", ""]
    assert row.cells[0].text == "pinned <-> GPU by copy-engine"
    assert row.cells[1].series == "pinned@numa:0 -> device@gpu:0 by copy-engine"


def test_what_all_peers_show_is_reported_once_of_their_kind() -> None:
    slow = postal(5e-6, 50e9 / 1.15)
    found = answer(subject(bidirectional(EVEN, slow), bidirectional(EVEN, slow, 1)))
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("anisotropic-kind", "info")
    assert finding.effect == pytest.approx(1 - 1 / 1.15, abs=0.01)
    assert finding.interval is not None
    assert finding.interval.low < 1 - 1 / 1.15 < finding.interval.high
    assert finding.text.startswith("GPU -> pinned by copy-engine has ")
    assert [device.place for device in finding.devices] == ["gpu:0", "gpu:1"]
    assert finding.devices[0].uuid == "GPU-00000000"
    assert finding.text.endswith("pairs)")
    assert [exhibit.unit for exhibit in finding.exhibits] == ["B/s", "B/s", "ratio"]
    assert found.tables[0].rows[0].cells[1].mark == "yes"
    assert "<- −" in found.tables[0].rows[0].cells[1].text


def test_what_changes_nothing_that_a_person_does_is_in_the_table_alone() -> None:
    found = answer(subject(bidirectional(EVEN, SLOW), bidirectional(EVEN, SLOW, 1)))
    assert found.findings == ()
    assert found.tables[0].rows[0].cells[1].mark == "yes"


def test_the_way_there_may_be_the_slower_one() -> None:
    found = answer(subject(bidirectional(postal(5e-6, 50e9 / 1.15), EVEN)))
    assert found.findings[0].text.startswith("pinned -> GPU by copy-engine has ")
    assert "-> −" in found.tables[0].rows[0].cells[1].text


def test_what_all_pairs_show_accuses_no_hardware() -> None:
    slow = postal(5e-6, 50e9 / 1.3)
    for kind in ("pinned", "pageable"):
        (finding,) = answer(subject(bidirectional(EVEN, slow, kind=kind))).findings
        assert (finding.id, finding.severity) == ("anisotropic-kind", "info")
        assert finding.remedy == ""


def test_one_of_several_that_differs_is_named() -> None:
    uneven = [bidirectional(EVEN, SLOW if gpu == 1 else EVEN, gpu) for gpu in range(3)]
    found = answer(subject(*uneven, machine=machine(3)))
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("anisotropic-path", "warning")
    assert [device.place for device in finding.devices] == ["gpu:1"]
    assert "of 3 pairs that should be equivalent 1 differ, 2 do not" in finding.text
    assert "--only" in finding.remedy


def test_small_copies_are_distinguished_from_rates_and_in_one_finding() -> None:
    late = postal(8e-6, 50e9)
    found = answer(subject(bidirectional(EVEN, late), bidirectional(EVEN, late, kind="pageable")))
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("anisotropic-start", "info")
    assert "2 kinds" in finding.text
    assert [cell.mark for cell in found.tables[0].rows[0].cells] == ["", "no", "yes", "yes", ""]


def test_nothing_is_said_of_what_was_measured_one_way() -> None:
    found = answer(subject(curve(profiles.H2D, EVEN, FEW)))
    assert (found.findings, found.tables) == ((), ())
    assert "in both directions" in found.summary


def test_what_is_too_noisy_is_said_to_be() -> None:
    noisy = [
        *curve(profiles.H2D, EVEN, FEW, between=0.2),
        *curve(profiles.D2H, EVEN, FEW, between=0.2),
    ]
    found = answer(subject(noisy))
    assert found.findings == ()
    (reason,) = found.unanswered
    assert reason.startswith("a difference of this size could have been missed: pinned <-> GPU")
    assert found.tables[0].rows[0].cells[1].text.startswith("< ")


def test_a_difference_at_medium_sizes_alone_is_reported() -> None:
    def bump(size: int) -> float:
        return EVEN(size) * (1.2 if 2**17 <= size < 2**21 else 1.0)

    found = answer(subject(bidirectional(EVEN, bump)))
    (finding,) = found.findings
    assert "at 128 KiB to 512 KiB" in finding.text
    assert [cell.mark for cell in found.tables[0].rows[0].cells] == ["", "no", "yes", "no", ""]


def test_what_the_first_of_several_shows_alone_is_said_of_the_kind() -> None:
    """The first of equivalent paths is measured at all sizes, the others at few."""

    def late(size: int) -> float:
        return EVEN(size) * (1.5 if size >= 2**27 else 1.0)

    few = (8, 2**21, 2**26)
    others = [
        series
        for gpu in (1, 2)
        for path in (
            f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine",
            f"device@gpu:{gpu} -> pinned@numa:0 by copy-engine",
        )
        for series in curve(path, EVEN, few)
    ]
    first = [*curve(profiles.H2D, EVEN), *curve(profiles.D2H, late)]
    (finding,) = answer(subject(first, others, machine=machine(3))).findings
    assert finding.id == "anisotropic-kind"
    assert "at 128 MiB to 1 GiB" in finding.text
    slow = [*curve(profiles.H2D, EVEN), *curve(profiles.D2H, SLOW)]
    (finding,) = answer(subject(slow, others, machine=machine(3))).findings
    assert finding.id == "anisotropic-path"
    assert [device.place for device in finding.devices] == ["gpu:0"]


@pytest.mark.parametrize("there", [20e9, 30e9, 44e9, 50e9, 66e9, 90e9, 300e9])
@pytest.mark.parametrize("factor", [0.3, 0.62, 0.85, 1.25, 2.2])
def test_the_arrow_the_number_and_the_sentence_name_the_slower_direction(
    there: float, factor: float
) -> None:
    back = there * factor
    found = answer(subject(bidirectional(postal(5e-6, there), postal(5e-6, back))))
    (row,) = found.tables[0].rows
    lacks = 1 - min(there, back) / max(there, back)
    arrow, _, number = row.cells[1].text.partition(" −")
    assert arrow == ("->" if there < back else "<-")
    assert float(number.split()[0]) == pytest.approx(100 * lacks, abs=2)
    finding = next(each for each in found.findings if each.id == "anisotropic-kind")
    first = "pinned -> GPU" if there < back else "GPU -> pinned"
    assert finding.text.startswith(f"{first} by copy-engine has ")
    assert finding.effect == pytest.approx(lacks, abs=0.02)


@pytest.mark.parametrize("kind", ["pageable", "pinned", "device", "managed"])
@pytest.mark.parametrize("executor", ["mpi", "mpi[test=bw]", "mpi[window=4]", "mpi-staged"])
def test_messages_of_processes_have_no_direction(kind: str, executor: str) -> None:
    """Times of messages are of round trips."""
    for place in ("rank", "gpu" if kind in ("device", "managed") else "numa"):
        ends = [f"{kind}@{place}:{n}" for n in (0, 1)]
        messages = [
            *curve(f"{ends[0]} -> {ends[1]} by {executor}", EVEN, FEW),
            *curve(f"{ends[1]} -> {ends[0]} by {executor}", postal(5e-6, 20e9), FEW),
        ]
        found = answer(subject(messages, machine=machine(2)))
        assert (found.findings, found.tables) == ((), ())


def test_what_kernels_of_nccl_send_has_a_direction() -> None:
    ends = "device@gpu:0", "device@gpu:1"
    sent = [
        *curve(f"{ends[0]} -> {ends[1]} by nccl", EVEN, FEW),
        *curve(f"{ends[1]} -> {ends[0]} by nccl", postal(5e-6, 20e9), FEW),
    ]
    kernels = ExecutorTraits("nccl", "kernels", shares=("links",), route="between ranks")
    surveyed = replace(machine(2), traits=Traits((kernels,)))
    found = answer(subject(sent, machine=surveyed)).findings
    assert "anisotropic-kind" in {each.id for each in found}
