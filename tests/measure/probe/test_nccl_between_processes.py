"""The fake NCCL between processes: each has a rank of a communicator that a test makes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from tree import FAKE_FOLDER

LIBRARY = FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"
RANK = Path(__file__).with_name("nccl_rank.py")

SUCCESS, SYSTEM_ERROR, INVALID_ARGUMENT, REMOTE_ERROR, IN_PROGRESS = 0, 2, 4, 6, 7

A_WHILE = 0.05
"""Seconds in which something that hangs does not end."""

RANKS = range(3)


class RankProcess:
    """A process of `nccl_rank`; a test reads the answers of its calls later."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(RANK), str(LIBRARY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def call(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, *words: object) -> str:
        self.call(*words)
        return self.answer()

    def returns(self, *words: object) -> int:
        return int(self.ask(*words))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


Ranks = list[RankProcess]


@pytest.fixture(scope="module")
def processes(fake_native_environment: dict[str, str]) -> Iterator[Ranks]:
    ranks = [RankProcess(fake_native_environment) for _ in RANKS]
    yield ranks
    for rank in ranks:
        rank.end()


@pytest.fixture
def ranks(processes: Ranks, fake_native_environment: dict[str, str]) -> Iterator[Ranks]:
    """Three processes, of which one that a test kills is replaced. No shared memory may be left,
    with a name or in a process without a communicator."""
    yield processes
    assert not [file for rank in processes for file in open_files(rank) if "fake-nccl" in file]
    for number, rank in enumerate(processes):
        if rank.process.poll() is not None:
            processes[number].end()
            processes[number] = RankProcess(fake_native_environment)


def open_files(rank: RankProcess) -> list[str]:
    """What a process has open; none if it has ended."""
    folder = f"/proc/{rank.process.pid}/fd"
    try:
        return [os.readlink(f"{folder}/{number}") for number in os.listdir(folder)]
    except OSError:
        return []


def joined(ranks: Ranks, blocking: bool = True) -> None:
    """Makes a communicator of these processes."""
    name = ranks[0].ask("id")
    for number, rank in enumerate(ranks):
        rank.call("join", name, len(ranks), number, int(blocking))
    answers = [int(rank.answer()) for rank in ranks]
    assert answers == [SUCCESS if blocking else IN_PROGRESS] * len(ranks)


def every(ranks: Ranks, *words: object) -> list[str]:
    """Makes a call in all ranks, and then returns all answers."""
    for rank in ranks:
        rank.call(*words)
    return [rank.answer() for rank in ranks]


def results(ranks: Ranks) -> list[list[int]]:
    return [array("i", bytes.fromhex(text)).tolist() for text in every(ranks, "result")]


def own(rank: int, count: int) -> list[int]:
    return [1000 * rank + number for number in range(count)]


def sums(count: int) -> list[int]:
    return [sum(each) for each in zip(*(own(rank, count) for rank in RANKS), strict=True)]


@pytest.mark.parametrize("count", [0, 1, 7, 40009])
def test_each_rank_receives_the_right_numbers(ranks: Ranks, count: int) -> None:
    joined(ranks)
    gathered = [number for rank in RANKS for number in own(rank, count)]
    scattered = sums(count * len(RANKS))
    expected = {
        "allreduce": [sums(count)] * 3,
        "allgather": [gathered] * 3,
        "reduce-scatter": [scattered[rank * count : (rank + 1) * count] for rank in RANKS],
        "broadcast": [own(2, count)] * 3,
        "turn": [own((rank - 1) % 3, count) for rank in RANKS],
    }
    for operation, numbers in expected.items():
        assert every(ranks, operation, count) == ["0"] * 3
        assert results(ranks) == numbers, operation
    assert every(ranks, "destroy") == ["0"] * 3


def test_operations_in_another_order_hang_until_each_is_aborted(ranks: Ranks) -> None:
    joined(ranks)
    for rank, first in zip(ranks, ("allreduce", "broadcast", "broadcast"), strict=True):
        assert rank.returns(first, 5) == SUCCESS
    time.sleep(A_WHILE)
    assert every(ranks, "done") == ["0"] * 3
    assert ranks[0].returns("abort") == SUCCESS
    ranks[0].ask("result")
    time.sleep(A_WHILE)
    assert every(ranks[1:], "done") == ["0"] * 2, "no other rank ends by that"
    assert every(ranks[1:], "error") == [str(REMOTE_ERROR)] * 2
    assert every(ranks[1:], "abort") == ["0"] * 2
    every(ranks[1:], "result")


def test_a_communicator_waits_for_all_its_ranks(ranks: Ranks) -> None:
    name = ranks[0].ask("id")
    assert ranks[0].returns("join", name, 3, 0, 0) == IN_PROGRESS
    ranks[1].call("join", name, 3, 1, 1)
    assert ranks[0].returns("error") == IN_PROGRESS
    assert ranks[0].returns("allreduce", 1) == INVALID_ARGUMENT
    assert ranks[2].returns("join", name, 3, 2, 0) == IN_PROGRESS
    assert int(ranks[1].answer()) == SUCCESS
    assert every(ranks, "error") == [str(SUCCESS)] * 3
    assert every(ranks, "allreduce", 7) == [str(IN_PROGRESS), str(SUCCESS), str(IN_PROGRESS)]
    assert results(ranks) == [sums(7)] * 3
    every(ranks, "destroy")


def test_without_one_of_its_ranks_a_communicator_is_aborted(ranks: Ranks) -> None:
    name = ranks[0].ask("id")
    for number in (0, 1):
        assert ranks[number].returns("join", name, 3, number, 0) == IN_PROGRESS
    assert ranks[2].returns("join", name, 3, 1, 0) == SYSTEM_ERROR, "there is that rank"
    time.sleep(A_WHILE)
    assert every(ranks[:2], "error") == [str(IN_PROGRESS)] * 2
    assert ranks[0].returns("abort") == SUCCESS
    assert ranks[1].returns("error") == REMOTE_ERROR
    assert ranks[1].returns("abort") == SUCCESS
    assert ranks[2].returns("join", name, 3, 2, 0) == SYSTEM_ERROR, "it is gone"
    joined(ranks, blocking=False)
    every(ranks, "turn", 3)
    assert results(ranks) == [own((rank - 1) % 3, 3) for rank in RANKS]
    every(ranks, "destroy")


def test_the_others_hang_when_a_rank_is_killed_and_go_on_without_it(ranks: Ranks) -> None:
    joined(ranks, blocking=False)
    assert ranks[1].returns("allreduce", 40009) == IN_PROGRESS
    ranks[1].end()
    others = [ranks[0], ranks[2]]
    assert every(others, "allreduce", 40009) == [str(IN_PROGRESS)] * 2
    time.sleep(A_WHILE)
    assert every(others, "done") == ["0"] * 2
    assert every(others, "error") == [str(SUCCESS)] * 2, "nothing says so"
    assert every(others, "abort") == ["0"] * 2
    every(others, "result")
    joined(others)
    every(others, "broadcast", 9)
    assert results(others) == [own(1, 9)] * 2
    every(others, "destroy")
