"""Hosts for schedulers: what is excluded, and what an administrator may drain."""

from __future__ import annotations

import shlex
import subprocess

from planted_verdicts import CRASH, GROUP, SLOW, nodes, planted

from waywiser.analysis.cluster.host_lines import drain_lines, excluded_hosts, good_hosts
from waywiser.analysis.cluster.verdict_values import ClusterVerdict, NodeVerdict


def test_bad_nodes_are_excluded_as_one_list() -> None:
    bad = {"n01": "slow", "n02": "failed", "n03": "stuck", "n05": "not reached", "n06": "excluded"}
    found = planted(nodes(8, {**bad, "n07": "not decided"}))  # type: ignore[dict-item]
    assert excluded_hosts(found) == "n[01-03,05-06]"
    assert list(good_hosts(found)) == ["n00", "n04", "n07"]
    assert excluded_hosts(planted(nodes(4))) == ""


def test_good_hosts_are_sorted_by_number() -> None:
    found = ClusterVerdict(nodes=tuple(NodeVerdict(f"n{n}", "ok") for n in (10, 9, 1)))
    assert list(good_hosts(found)) == ["n1", "n9", "n10"]


def test_a_drained_node_has_its_evidence_as_the_reason() -> None:
    slow = {"n03": "12 % slow to every node, sending, on rail 2 (mlx5_2)"}
    found = planted(nodes(8, {"n03": "slow", "n05": "failed"}, **slow, n05="a crash"), SLOW, CRASH)
    lines = list(drain_lines(found))
    assert lines[0] == (
        "scontrol update NodeName=n03 State=DRAIN Reason='waywiser: 12 % slow to every node, "
        "sending, on rail 2 (mlx5_2): 1.12 x the usual time (1.10-1.14 with 95 %), 8 tests'"
    )
    assert lines[1].startswith("scontrol update NodeName=n05 State=DRAIN Reason='waywiser: a crash")


def test_nodes_that_share_something_slow_are_only_a_comment() -> None:
    group = dict.fromkeys(GROUP.nodes, "slow")
    found = planted(nodes(32, {**group, "n01": "not reached"}), GROUP)  # type: ignore[arg-type]
    assert list(drain_lines(found)) == [
        "# not drained: n01: not reached: nothing was measured",
        "# not drained: n[16-31]: they share something slow; look at their switch first",
    ]


def test_no_name_and_no_reason_can_run_a_command() -> None:
    evil = ClusterVerdict(
        nodes=(
            NodeVerdict("n1", "slow", 'it\'s $(reboot) `reboot` "x" \\ \n; reboot\x1b[2J é'),
            NodeVerdict("n2;reboot", "slow", "slow"),
            NodeVerdict("n3\nreboot", "slow", "slow"),
        )
    )
    first, *others = drain_lines(evil)
    assert shlex.split(first)[:4] == ["scontrol", "update", "NodeName=n1", "State=DRAIN"]
    assert len(shlex.split(first)) == 5
    said = subprocess.run(
        [
            "bash",
            "-c",
            f"scontrol() {{ printf '%s\\n' \"$@\"; }}; reboot() {{ echo RUN; }}; {first}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said[:3] == ["update", "NodeName=n1", "State=DRAIN"]
    assert len(said) == 4
    assert all(line.startswith("# ") and "\n" not in line for line in others)
    assert excluded_hosts(evil) == "n1"
