"""The nightly verdict: what fails a node, and what is only said."""

from __future__ import annotations

import msgspec
import nodes

from waywiser.analysis.checkup import Checkup, check_up
from waywiser.analysis.node import Link, Node
from waywiser.profile import RunHealth
from waywiser.records import GpuHealth, Health
from waywiser.topology.machine import Machine


def checked(node: Node, base: Node | None = None) -> Checkup:
    return check_up(node, [base or nodes.node(1)])


def with_health(node: Node, *counters: dict[str, int], xids: tuple[int, ...] = ()) -> Node:
    """Readings at the start and at the end of its run, of gpu:0."""
    readings = [
        Health("t", (GpuHealth(0, node.machine.gpus[0].uuid, each, {}, xids if n else ()),))
        for n, each in enumerate(counters)
    ]
    return msgspec.structs.replace(node, health=(RunHealth(1, readings[0], readings[1]),))


def test_a_healthy_node_is_ok_in_one_line() -> None:
    found = checked(nodes.node(2))
    assert found.status == "ok"
    assert not found.findings
    assert str(found) == "OK node0: 82 same"


def test_a_slower_link_fails_it() -> None:
    found = checked(nodes.node(2, slow=nodes.slow_host_link(4, 1.05)))
    assert found.status == "failed"
    assert any(f"{nodes.h2d(4)} is 4." in finding for finding in found.findings)
    assert str(found).startswith("FAILED node0: ")


def test_a_gpu_that_is_gone_fails_it_and_is_told_once() -> None:
    whole = nodes.node(1)
    found = checked(nodes.without(whole, "0000:04:00.0"), whole)
    assert found.status == "failed"
    told = [finding for finding in found.findings if "gpu:3" in finding]
    assert told == ["gpu:3 (0000:04:00.0, GPU-node0-3) is gone"]


def test_another_gpu_in_its_place_is_said_and_fails_nothing() -> None:
    node = nodes.node(2)
    gpus = tuple(
        msgspec.structs.replace(gpu, uuid="GPU-new") if gpu.index == 3 else gpu
        for gpu in node.machine.gpus
    )
    machine: Machine = msgspec.structs.replace(node.machine, gpus=gpus)
    found = checked(msgspec.structs.replace(node, machine=machine))
    assert found.status == "ok"
    assert any("GPU-new" in note for note in found.notes)


def test_a_link_that_became_narrower_fails_it_and_one_that_always_was_does_not() -> None:
    narrow = {2: Link(5, 8)}
    found = checked(nodes.node(2, links=narrow))
    assert found.findings == (
        "gpu:2 (0000:03:00.0, GPU-node0-2) ran at PCIe 5 x8 of 5 x16 under load",
    )
    assert checked(nodes.node(2, links=narrow), nodes.node(1, links=narrow)).status == "ok"


def test_grave_errors_fail_it_and_others_are_said() -> None:
    minor = with_health(nodes.node(2), {"PCIe replays": 0}, {"PCIe replays": 2})
    found = checked(minor)
    assert found.status == "ok"
    assert "gpu:0 PCIe replays +2" in found.notes
    grave = with_health(nodes.node(2), {"ECC uncorrected": 0}, {"ECC uncorrected": 1})
    assert checked(grave).findings == ("gpu:0 ECC uncorrected +1",)
    told = with_health(nodes.node(2), {}, {}, xids=(79,))
    assert checked(told).findings == ("gpu:0 XID 79",)


def test_what_was_counted_since_the_baseline_is_told() -> None:
    name = "rows remapped after uncorrected errors"
    base = with_health(nodes.node(1), {name: 0, "PCIe replays": 5}, {name: 0, "PCIe replays": 5})
    node = with_health(nodes.node(2), {name: 2, "PCIe replays": 6}, {name: 2, "PCIe replays": 6})
    found = checked(node, base)
    assert found.findings == (f"gpu:0 {name} +2 since the baseline",)
    assert "gpu:0 PCIe replays +1 since the baseline" in found.notes
    assert not checked(base, node).findings  # a counter that was set back


def test_a_path_that_was_asked_for_and_is_not_there_fails_it() -> None:
    node = nodes.node(2)
    less = msgspec.structs.replace(
        node, series=tuple(d for d in node.series if d.curve != nodes.h2d(2))
    )
    assert checked(less).findings == (
        f"{nodes.h2d(2)} is missing: the new survey has not measured it",
    )
    other = msgspec.structs.replace(less, asked="standard")
    assert checked(other).status == "ok"


def test_where_nothing_can_be_told_it_is_inconclusive() -> None:
    nothing = msgspec.structs.replace(nodes.node(2), series=(), asked="something else")
    assert checked(nothing).status == "inconclusive"


def test_a_baseline_of_another_host_is_said() -> None:
    found = checked(nodes.node(2, "node9"))
    assert "another host: node0 before, node9 now" in found.notes
    assert not any("another device" in note for note in found.notes)


def test_errors_are_counted_since_the_latest_baseline_in_whatever_order() -> None:
    name = "PCIe replays"
    dates = ("2026-11-01T03:00:00.000+00:00", "2026-11-02T03:00:00.000+00:00")
    base = [
        with_health(nodes.node(n, created=date), {name: 5 * n}, {name: 5 * n})
        for n, date in enumerate(dates, 1)
    ]
    node = with_health(nodes.node(3), {name: 11}, {name: 11})
    for both in (base, base[::-1]):
        assert f"gpu:0 {name} +1 since the baseline" in check_up(node, both).notes


def test_a_survey_is_no_baseline_of_itself() -> None:
    survey = nodes.node(1, blocks=2)
    found = check_up(survey, [msgspec.structs.replace(survey, file="backup.wwp")])
    assert found.status == "inconclusive"
    assert any("is the same survey as backup.wwp" in note for note in found.notes)
    assert check_up(survey, [survey, nodes.node(2, blocks=2)]).status == "ok"


def test_an_unfinished_survey_is_inconclusive_and_fails_for_nothing_that_it_lacks() -> None:
    whole = nodes.node(2)
    begun = msgspec.structs.replace(whole, series=whole.series[:9], unfinished=True)
    found = checked(begun)
    assert (found.status, found.findings) == ("inconclusive", ())
    assert checked(msgspec.structs.replace(begun, unfinished=False)).status == "failed"


def test_paths_that_nobody_asked_for_are_not_called_missing() -> None:
    whole = nodes.node(2)
    less = msgspec.structs.replace(whole, series=whole.series[:9], asked="quick")
    found = checked(less)
    count = len(whole.series) - 9
    assert found.not_asked == count
    assert str(found) == f"OK node0: 9 same, {count} not asked for"
