"""Limits that ranks of MPI would meet."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from machine.fake_system import system_of
from waywiser.machine import rank_limits as module
from waywiser.machine.rank_limits import rank_limits, shared_memory_limit
from waywiser.measure.ranks.launch_start import require_room
from waywiser.measure.ranks.met_limit import met_limit
from waywiser.measure.ranks.mpi_library import Mpicc, MpiError, MpiLibrary

MIB = 1 << 20


def status(free: int, *, flags: int = 0, files: int = 1000) -> os.statvfs_result:
    blocks = 64 * MIB // 4096
    return os.statvfs_result(
        (4096, 4096, blocks, free // 4096, free // 4096, 1000, files, files, flags, 255)
    )


@pytest.mark.parametrize(
    ("ranks", "found", "said"),
    [
        (2, status(64 * MIB), None),
        (2, status(MIB), "has 1 MiB free, and the shared memory of 2 ranks of MPI takes 3 MiB"),
        (40, status(32 * MIB), "has 32 MiB free, and the shared memory of 40 ranks of MPI takes"),
        (2, status(64 * MIB, flags=os.ST_RDONLY), "cannot be written to"),
        (2, status(64 * MIB, files=1), "has room for 1 file more"),
    ],
)
def test_shared_memory_that_is_too_small_is_found(
    ranks: int, found: os.statvfs_result, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: found)
    limit = shared_memory_limit(ranks, "/tmp")
    if said is None:
        assert limit is None
    else:
        assert limit is not None and said in limit.what and limit.remedy


@pytest.mark.parametrize("own", ["sys/fs/cgroup/pids/docker/1", "sys/fs/cgroup/job"])
def test_a_limit_of_processes_is_found_on_the_way_up(own: str, tmp_path: Path) -> None:
    path = own.removeprefix("sys/fs/cgroup").removeprefix("/pids")
    group = f"3:pids:{path}" if "/pids/" in own else f"0::{path}"
    above = str(Path(own).parent)
    files = {
        "proc/self/cgroup": group,
        f"{own}/pids.max": "max",
        f"{own}/pids.current": "5",
        f"{above}/pids.max": "20",
        f"{above}/pids.current": "12",
    }
    system = system_of(tmp_path, files)
    (limit,) = rank_limits(4, system, needs_shared_memory=False)
    assert "8 more may be started (limit 20)" in limit.what and limit.evidence.endswith("pids.max")
    assert "--pids-limit" in limit.remedy and "ulimit -u" in limit.remedy
    assert not list(rank_limits(1, system, needs_shared_memory=False))


def test_the_limit_of_a_user_counts_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (20, 20))
    monkeypatch.setattr(module, "_tasks_of_user", lambda: 19)
    limits = list(rank_limits(2, needs_shared_memory=False))
    assert [limit.evidence for limit in limits] == ["ulimit -u"]


def test_a_launch_names_the_limit_and_open_mpi_needs_no_shared_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: status(MIB))

    def library(text: str) -> MpiLibrary:
        return MpiLibrary(Mpicc("/mpicc", "PATH"), "/b.so", text, "", was_cached=True)

    with pytest.raises(MpiError, match=r"^/dev/shm has 1 MiB free.*--shm-size"):
        require_room(library("MPICH Version: 5.0.2"), 2)
    require_room(library("Open MPI v5.0.11"), 2)


@pytest.mark.parametrize(
    ("printed", "remedy"),
    [
        ("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Bus error (signal 7)", "--shm-size"),
        ("ucx_init.c 86 MPIDI_UCX_init_worker Shared memory error", "--shm-size"),
        ("RuntimeError: can't start new thread", "--pids-limit"),
        ("fork: Resource temporarily unavailable", "--pids-limit"),
        ("Segmentation fault (signal 11)", ""),
        ("", ""),
    ],
)
def test_what_a_launcher_printed_names_the_limit(printed: str, remedy: str) -> None:
    found = met_limit(printed)
    assert remedy in found if remedy else not found
