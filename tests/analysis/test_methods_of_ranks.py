"""What advice, questions and policies say of the methods between surveyed ranks."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from profiles import ENVIRONMENT, machine, samples, visit, workload
from waywiser.cli import run
from waywiser.curves.methods import place_groups
from waywiser.curves.subject import Subject
from waywiser.machine.machine import PlacedRank
from waywiser.profile import Profile, WritableProfile

RANKS = (PlacedRank(0, (0,), 0, 0), PlacedRank(1, (1,), 0, 1))
TIMES = {
    "device@rank:0 -> device@rank:1 by mpi": (2e-5, 0.5e9),
    "device@rank:0 -> device@rank:1 by mpi[window=16]": (1e-6, 0.6e9),
    "device@rank:0 -> device@rank:1 by mpi[test=bw]": (1e-6, 0.7e9),
    "device@rank:0 -> device@rank:1 by mpi-staged": (6e-5, 3e9),
    "device@rank:0 -> device@rank:1 by mpi-staged[chunk=2097152]": (6.1e-5, 4e9),
    "pinned@rank:0 -> pinned@rank:1 by mpi": (1e-6, 6e9),
}
"""Latency and bandwidth: copying first is faster from 24 kB on."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("ranks") / "a.wwp", RANKS)


def written(path: Path, ranks: tuple[PlacedRank, ...]) -> Path:
    here = msgspec.structs.replace(machine(), ranks=ranks, messages="MPICH 5.0.2")
    rng = random.Random(3)
    with WritableProfile.create(path, here, ENVIRONMENT) as profile:
        for text, (latency, rate) in TIMES.items():
            for size in (2**n for n in range(6, 27, 2)):
                for block in range(3):
                    taken = samples(rng, latency + size / rate, 6, transfers=0)
                    profile.commit_visit(visit(workload(text, size), block, taken, mode="host"))
    return path


def test_methods_are_compared_by_memory_and_by_what_was_measured(file: Path) -> None:
    with Profile.open(file) as profile:
        groups = {group.text: group for group in place_groups(Subject.of(profile))}
    assert set(groups) == {
        "rank:0 -> rank:1, GPU to GPU",
        "rank:0 -> rank:1, GPU to GPU [window=16]",
        "rank:0 -> rank:1, GPU to GPU [test=bw]",
        "rank:0 -> rank:1, host to host",
    }
    assert len(groups["rank:0 -> rank:1, GPU to GPU"].first.curves) == 3


@pytest.mark.parametrize(("size", "best"), [("1KiB", "mpi"), ("64MiB", "mpi-staged[chunk=2MiB]")])
def test_advice_names_the_faster_method(
    file: Path, size: str, best: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--from", "device@rank:0", "--to", "device@rank:1", "--bytes", size]
    assert run(["advise", str(file), *words]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == best
    assert "window" not in out and "test=bw" not in out
    assert "messages between two ranks of this machine were measured" in out
    assert "the transfer library sends no messages" in out


def test_a_report_has_the_methods_and_their_crossover(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(file), "--format", "md", "--all", "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert "Which of mpi and mpi-staged is faster depends on the size" in out
    assert "| device -> device | below" in out.split("Which method when")[1]


def test_there_is_no_policy_for_the_true_reason(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["advise", str(file)]) == 2
    err = capsys.readouterr().err
    assert "messages between ranks were measured, which the transfer library does not send" in err
    assert err.count("\n") == 1


def test_ranks_that_share_cpus_decide_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowded = tuple(msgspec.structs.replace(rank, cpus=(0,)) for rank in RANKS)
    path = written(tmp_path / "a.wwp", crowded)
    with Profile.open(path) as profile:
        assert Subject.of(profile).decidable.curves == ()
    words = ["--from", "device@rank:0", "--to", "device@rank:1", "--bytes", "1MiB"]
    assert run(["advise", str(path), *words]) == 2
    err = capsys.readouterr().err
    assert "2 ranks share 1 CPUs: what such ranks measure has no verdict" in err
    assert run(["report", str(path), "--format", "md", "--all", "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert "depends on the size" not in out and " method measured " not in out
    assert "The fastest method" not in out
    assert "crowded" in out
