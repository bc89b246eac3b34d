"""Workers of NCCL on several nodes, over the fake GPU and the fake NCCL."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nccl_nodes import PATIENCE_SECONDS, Nodes, an_order, use_fakes
from waywiser.measure.probe.protocol import OTHER_MEMBER
from waywiser.measure.probe.worker_process import WorkerProcess
from waywiser.measure.ranks.nccl_group import NcclGroup
from waywiser.words.records import Failure

GPUS = 2

IN_TRANSFER = "least=65536"
"""Has the fake count large operations only, and not those by which ranks agree on what is next."""

FOLLOWING = {OTHER_MEMBER, "interrupted"}
"""Kinds of failures of ranks that another one has let down."""

ABORTED_SECONDS = 4.0
"""The longest wait of a message that never comes."""

MakeNodes = Callable[..., Nodes]


@pytest.fixture
def make_nodes(
    fake_native_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeNodes]:
    """Makes nodes; each argument is what the fake NCCL of one does."""
    use_fakes(fake_native_environment, GPUS, monkeypatch)
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    with ExitStack() as owner:
        yield lambda *faults: Nodes.start(GPUS, faults, monkeypatch, owner)


PAIR = (
    "device@rank:0 -> device@rank:2 by nccl[test=bw] of 256KiB; "
    "device@rank:1 -> device@rank:3 by nccl[test=bw] of 256KiB"
)
BACK = (
    "device@rank:2 -> device@rank:0 by nccl[test=bw] of 256KiB; "
    "device@rank:3 -> device@rank:1 by nccl[test=bw] of 256KiB"
)
ALL = "device@rank:0-3"


def processes(group: NcclGroup) -> list[int]:
    """The numbers of the workers' processes, in the order of the GPUs."""
    workers = (member.process for member in group.members)
    return [each.pid for each in workers if isinstance(each, WorkerProcess)]


def connect(nodes: Nodes, seconds: float = PATIENCE_SECONDS) -> None:
    answers = nodes.connect(seconds)
    assert all(isinstance(each, float) for each in answers), answers


def test_each_rail_of_a_pair_has_its_own_time_in_each_direction(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", f"send=0.05;{IN_TRANSFER}")
    connect(nodes)
    for workload in (PAIR, BACK):
        leading, other = nodes.measure(workload)
        assert (leading.failure, other.failure) == (None, None)
        assert leading.mode == "host" and len(leading.samples) > 0
        assert all(len(row) == 2 for row in leading.samples.transfers)
        assert len(other.samples) == 0
        fastest = min(min(row) for row in leading.samples.transfers)
    assert fastest >= 2**18 / 0.05e9, "the second node sends at 50 MB/s"


def test_collectives_are_among_all_and_checked(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", "")
    connect(nodes)
    for collective in ("allreduce", "alltoall"):
        workload = f"{ALL} -> {ALL} by nccl[collective={collective}] of 64KiB"
        leading, other = nodes.measure(workload)
        assert (leading.failure, other.failure) == (None, None)
        assert len(leading.samples.lanes[0][0]) == 4


def test_workers_stay_when_they_connect_again(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", "")
    before = [processes(group) for group in nodes.groups]
    for _ in range(2):
        connect(nodes)
        assert nodes.measure(PAIR)[0].failure is None
    assert [processes(group) for group in nodes.groups] == before
    for group in nodes.groups:
        for pid in processes(group):
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            assert b"NCCL_NVLS_ENABLE=0" in environment


def test_ranks_that_left_are_not_connected_and_can_connect_again(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", "")
    connect(nodes)
    nodes.leave()
    assert [group.usable for group in nodes.groups] == [True, True]
    failures = [visit.failure for visit in nodes.measure(PAIR)]
    assert {each.kind for each in failures if each} == {"not-supported"}
    connect(nodes)
    assert nodes.measure(PAIR)[0].failure is None


def test_no_order_is_measured_before_ranks_are_connected(make_nodes: MakeNodes) -> None:
    (visit,) = make_nodes("").measure("device@rank:0 -> device@rank:1 by nccl of 4KiB")
    assert visit.failure is not None and visit.failure.kind == "not-supported"


@pytest.mark.parametrize(("fault", "kind"), [("miss=1", "timeout"), ("error=1", "crash")])
def test_what_fails_in_one_test_can_be_in_the_next(
    make_nodes: MakeNodes, fault: str, kind: str
) -> None:
    nodes = make_nodes("", f"{fault};{IN_TRANSFER}")
    connect(nodes, ABORTED_SECONDS)
    failures = [visit.failure for visit in nodes.measure(PAIR)]
    assert all(failures), "both nodes"
    assert kind in [each.kind for each in failures if each]
    assert any("NCCL, " in each.reason for each in failures if each), failures
    for _ in range(GPUS):  # one may have been released before its first message
        assert not any(group.lost for group in nodes.groups)
        connect(nodes, ABORTED_SECONDS)
        last = nodes.measure(PAIR)[0].failure
    assert last is None


def test_wrong_bytes_are_of_the_node_that_received_them(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", f"flip=1;{IN_TRANSFER}")
    connect(nodes)
    sender, receiver = (visit.failure for visit in nodes.measure(PAIR))
    assert receiver is not None and receiver.kind == "wrong-bytes"
    assert "1 of 262144 bytes are wrong at the destination device@rank:" in receiver.reason
    assert sender is not None and sender.kind in FOLLOWING
    assert not any(group.lost for group in nodes.groups)


def test_a_node_that_does_not_join_is_waited_for_no_longer_than_asked(
    make_nodes: MakeNodes,
) -> None:
    nodes = make_nodes("", "absent=1")
    failures = nodes.connect(ABORTED_SECONDS)
    assert all(isinstance(each, Failure) and each.kind == "timeout" for each in failures), failures
    assert "joining of ranks" in str(failures[0])


def test_a_crash_loses_its_node_and_no_other(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", f"crash=2;{IN_TRANSFER}")
    connect(nodes, ABORTED_SECONDS)
    well, crashed = (visit.failure for visit in nodes.measure(PAIR))
    assert crashed is not None and crashed.kind == "crash"
    assert [group.lost for group in nodes.groups] == [False, True]
    assert well is not None and well.kind in {"timeout", *FOLLOWING}


def test_a_test_is_aborted_from_outside(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", f"miss=1;{IN_TRANSFER}")
    connect(nodes)
    timers = [threading.Timer(1.0, group.abort) for group in nodes.groups]
    for timer in timers:
        timer.start()
    failures = [visit.failure for visit in nodes.measure(PAIR)]
    assert {each.kind for each in failures if each} <= FOLLOWING
    assert not any(group.lost for group in nodes.groups)
    for timer in timers:
        timer.join()  # the first abort releases both nodes, and a later one would end the joining
    connect(nodes)


def test_a_stopped_worker_is_named(make_nodes: MakeNodes) -> None:
    nodes = make_nodes("", "")
    connect(nodes, ABORTED_SECONDS)
    stopped = processes(nodes.groups[1])[1]
    os.kill(stopped, signal.SIGSTOP)
    order = an_order(PAIR, timeout_seconds=2 * ABORTED_SECONDS)
    failures = [visit.failure for visit in nodes.at_once(lambda _, g: g.measure(order)[0])]
    assert nodes.groups[1].lost and failures[1] is not None
    assert "the worker of gpu:1" in failures[1].reason and failures[1].kind == "timeout"
    assert nodes.groups[1].blamed is not None and nodes.groups[1].blamed.rank == 1
    assert not nodes.groups[0].lost
