"""What is tried with each kind of memory, and what a failure of MPI amounts to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from measure.plan.machines import machine
from mpi_wheels import mpicc_of
from waywiser.machine import native
from waywiser.measure.ranks import tries
from waywiser.measure.ranks.attempt import difference
from waywiser.measure.ranks.mpi_library import Mpicc, MpiError, MpiLibrary, find_library
from waywiser.measure.ranks.tries import Try, memories, try_all, try_one
from waywiser.words import Memory, Place


@pytest.fixture
def fake_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_native_environment: dict[str, str]
) -> None:
    """Ranks use the fake GPU. This process must not: a process has one native library."""
    for name in ("PYTHONPATH", native.MODULE_VARIABLE):
        monkeypatch.setenv(name, fake_native_environment[name])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def of_two_gpus() -> tuple[Memory, ...]:
    return tuple(Memory("device", Place.parse(f"gpu:{index}"), {}) for index in range(2))


@pytest.mark.usefixtures("fake_ranks")
@pytest.mark.slow
def test_the_right_bytes_of_gpus_are_right() -> None:
    """A survey tries MPICH, and what crashes (`tests.test_rank_surveys`)."""
    library = find_library(mpicc_of("openmpi"))
    found = try_one(library, machine(gpus=2), "alltoallv", of_two_gpus())
    assert (found.operation, found.memory) == ("alltoallv", "device@gpu:0")
    assert found.right is True, found.reason
    assert found.reason == ""


CRASHES_EARLY = """
import os, signal, sys, time
from waywiser.measure.ranks import attempt

sends = attempt.Tried.send

def send(self, messenger):
    problem = sends(self, messenger)
    time.sleep(0.5 * messenger.rank)
    return problem

def alltoallv(self, messenger):
    if messenger.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)

attempt.OPERATIONS.update(send=send, alltoallv=alltoallv)
sys.exit(attempt.main())
"""
"""Rank 0 crashes in the second operation while rank 1 has not answered the first one."""


@pytest.mark.usefixtures("fake_ranks")
@pytest.mark.slow
def test_a_crash_does_not_cost_the_answer_to_the_operation_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "rank.py"
    script.write_text(CRASHES_EARLY)
    monkeypatch.setattr(tries, "_COMMAND", (sys.executable, str(script)))
    library = find_library(mpicc_of("mpich"))
    operations = ("send", "alltoallv")
    found = tries.try_in_turn(library, machine(gpus=2), operations, of_two_gpus())
    assert [(each.operation, each.right) for each in found] == [
        ("send", True), ("alltoallv", False)
    ]  # fmt: skip


def test_each_kind_of_memory_is_tried_in_each_way_to_allocate_it() -> None:
    found = {str(of_ranks[0]) for of_ranks in memories(machine(gpus=2))}
    assert {"pageable@numa:0", "pinned@numa:0", "device@gpu:0", "device[from=pool]@gpu:0"} <= found
    assert not any("file:" in memory for memory in found)
    second = {str(of_ranks[1]) for of_ranks in memories(machine(gpus=2))}
    assert "device@gpu:1" in second
    assert "device@gpu:0" in {str(of_ranks[1]) for of_ranks in memories(machine(gpus=1))}


def test_only_the_first_try_shows_whether_ranks_start(monkeypatch: pytest.MonkeyPatch) -> None:
    library = MpiLibrary(Mpicc("/mpicc", "PATH"), "/b.so", "x 1.0", "", was_cached=True)
    ends = [False, True]

    def scripted(_: object, __: object, operation: str, of_ranks: Any, ___: str) -> Try:
        if ends.pop(0) if ends else False:
            raise MpiError("rank 0 ended, in the start of MPI")
        return Try(operation, str(of_ranks[0]), True)

    monkeypatch.setattr(tries, "try_one", scripted)
    found = [each.right for each in try_all(library, machine())]
    assert found == [True, False]
    ends.append(True)
    with pytest.raises(MpiError):
        next(try_all(library, machine()))


def test_memory_of_the_host_is_tried_first() -> None:
    assert str(memories(machine(gpus=1))[0][0]) == "pageable@numa:0"


def test_without_a_gpu_only_memory_of_the_host_is_tried() -> None:
    assert {str(of_ranks[0]) for of_ranks in memories(machine())} == {"pageable@numa:0"}


def test_wrong_bytes_are_counted() -> None:
    assert difference(b"abc", b"abc") == ""
    assert difference(b"abd", b"abc") == "1 of 3 bytes are wrong"
    assert difference(b"\0\0\0", b"abc") == "3 of 3 bytes are wrong, all zero"
