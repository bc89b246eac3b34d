"""What a GPU lacks that equivalent GPUs have."""

from __future__ import annotations

from tests.analysis.questions.machines import altered, host_links, machine
from tests.analysis.questions.subjects import subject
from tests.profiles import visit

from waywiser.analysis.questions.identical import answer
from waywiser.analysis.questions.missing import findings
from waywiser.machine.machine import NvLink, PcieLink
from waywiser.words.records import Failure, Series, Unsupported

SICK = Failure("sticky", "the GPU does not answer")


def test_what_the_topology_shows_to_be_less_is_reported_without_a_measurement() -> None:
    made = altered(machine(), 2, nvlinks=(NvLink("switch", 16, 26.562),), peers=(0,))
    made = altered(made, 5, pcie=PcieLink(5, 8, 5, 8))
    found = {finding.id: finding for finding in findings(subject(machine=made))}
    assert set(found) == {"missing-lanes", "missing-peers", "narrow-link"}
    assert found["missing-lanes"].statement.startswith("gpu:2 has 16 of 18 NVLink lanes")
    assert found["narrow-link"].statement.startswith("gpu:5 has PCIe x8 instead of x16")
    assert found["narrow-link"].effect == 0.5


def test_a_gpu_without_a_path_that_its_peers_have_is_reported_with_the_reason() -> None:
    series = [
        each
        for each in [*host_links(8), *host_links(8, kind="pageable")]
        if not ("pageable" in str(each.workload) and "gpu:7" in str(each.workload))
    ]
    unsupported = Unsupported(
        "pageable@numa:0 -> device@gpu:7 by copy-engine", "its memory is full"
    )
    seen = subject(series, machine=machine(), unsupported_paths=(unsupported,))
    (finding,) = answer(seen).findings
    assert (finding.id, finding.severity) == ("missing-path", "warning")
    assert finding.devices[0].place == "gpu:7"
    assert "its memory is full" in finding.statement


def test_a_gpu_that_was_not_surveyed_lacks_nothing() -> None:
    assert findings(subject(host_links(6), machine=machine())) == []


def test_of_two_gpus_nobody_knows_which_is_right() -> None:
    made = altered(machine(2), 1, pcie=PcieLink(5, 8, 5, 8))
    assert findings(subject(machine=made)) == []


def test_what_nobody_could_read_is_not_missing() -> None:
    made = altered(machine(), 2, pcie=PcieLink())
    assert findings(subject(machine=made)) == []


def test_what_a_plan_skipped_is_not_missing() -> None:
    series = [
        each
        for each in [*host_links(8), *host_links(8, kind="pageable")]
        if not ("pageable" in str(each.workload) and "gpu:7" in str(each.workload))
    ]
    assert findings(subject(series, machine=machine())) == []


def test_a_path_that_failed_is_missing() -> None:
    failed = [
        Series(each.workload, (visit(each.workload, stop="failed", failure=SICK),))
        if "-> device@gpu:7" in str(each.workload)
        else each
        for each in host_links(8)
    ]
    (finding,) = findings(subject(failed, machine=machine()))
    assert finding.statement.startswith("gpu:7 has no pinned -> GPU by copy-engine")
