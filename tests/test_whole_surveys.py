"""Whole surveys in processes of their own: the command line, real workers, and the fake GPU."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from own_lock import commands, finish
from waywiser.curves.sizes import parse_sizes
from waywiser.profile import Profile
from waywiser.words.records import Visit

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"

Run = Callable[..., "subprocess.Popen[str]"]

TO_EACH = ("--only", "pinned@numa:0 -> device@gpu:? by copy-engine")
FROM_EACH = ("--only", "device@gpu:? -> pinned@numa:0 by copy-engine")
BIDIRECTIONAL = ("--only", "pinned@numa:0 <-> device@gpu:? by copy-engine")


@pytest.fixture
def run(fake_native_environment: dict[str, str], tmp_path: Path) -> Iterator[Run]:
    """Starts ``waywiser`` over the fake GPU in ``tmp_path``."""
    with commands(tmp_path, fake_native_environment) as start:

        def over(*arguments: str, fake: str = "latency=1;event=1") -> subprocess.Popen[str]:
            return start(*arguments, WAYWISER_FAKE=fake)

        yield over


def survey(*more: str) -> tuple[str, ...]:
    return ("survey", "--preset", "quick", "--sizes", "4KiB,64KiB", "-o", "a.wwp", *more)


def visits(file: Path) -> list[Visit]:
    with Profile.open(file) as profile:
        return list(profile.visits())


def test_a_survey_of_two_gpus_is_measured_stored_and_shown(run: Run, tmp_path: Path) -> None:
    code, out, err = finish(run(*survey(*TO_EACH, *FROM_EACH, *BIDIRECTIONAL)))
    assert code == 0, err
    assert "quick: 12 series in 12 visits" in err and "profile: a.wwp" in err
    assert "pinned@numa:0 -> device@gpu:1 by copy-engine" in out and "64 KiB" in out
    found = visits(tmp_path / "a.wwp")
    assert len(found) == 12
    assert all(len(visit.samples) >= 6 and visit.failure is None for visit in found)
    assert {visit.mode for visit in found} == {"device"}
    pairs = [visit for visit in found if len(visit.workload.transfers) == 2]
    assert len(pairs) == 4 and all(len(visit.samples.transfers[0]) == 2 for visit in pairs)
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert [gpu.name for gpu in profile.machine.gpus] == ["Fake GPU", "Fake GPU"]
        assert profile.runs[0].ended


def test_the_empty_interval_of_each_gpu_is_a_series(run: Run, tmp_path: Path) -> None:
    code, _, err = finish(run(*survey("--only", "empty-interval")))
    assert code == 0, err
    found = sorted(str(visit.workload) for visit in visits(tmp_path / "a.wwp"))
    assert found == ["empty-interval@gpu:0", "empty-interval@gpu:1"]


def test_peer_access_off_is_measured_by_another_worker(run: Run, tmp_path: Path) -> None:
    only = "device@gpu:0 -> device@gpu:1 by copy-engine*"
    arguments = ("survey", "--sizes", "64KiB", "-o", "a.wwp", "--only", only)
    code, _, err = finish(run(*arguments))
    assert code == 0, err
    workers: dict[bool, set[int]] = {True: set(), False: set()}
    for visit in visits(tmp_path / "a.wwp"):
        off = visit.workload.transfers[0].parameters.get("peer") == "off"
        workers[off].add(visit.worker)
    assert workers[True] and workers[False] and not workers[True] & workers[False]


def test_a_worker_that_crashes_costs_one_visit(run: Run, tmp_path: Path) -> None:
    fake = f"latency=1;event=1;crash=copy@9;only_bytes=65536;once={tmp_path / 'struck'}"
    code, out, err = finish(run(*survey(*TO_EACH), fake=fake))
    assert code == 0, err
    failures = [visit.failure for visit in visits(tmp_path / "a.wwp") if visit.failure]
    assert [failure.kind for failure in failures] == ["crash"]
    assert failures[0].reason in " ".join(out.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_survey_is_stored_and_resumed(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "a.wwp"
    process = run(*survey("--only", "copy-engine", "--sizes", "8:64KiB"))
    wait_for(lambda: file.exists() and len(visits(file)) >= 3)
    process.send_signal(number)
    code, _, err = finish(process)
    assert code == 130
    assert "go on with: waywiser survey --resume -o a.wwp" in err and "Traceback" not in err
    before = visits(file)
    assert not workers_of(process.pid)
    process = run("survey", "--resume", "-o", "a.wwp")
    wait_for(lambda: len(visits(file)) > len(before))
    process.kill()  # nothing said, nothing cleaned up
    finish(process)
    wait_for(lambda: not workers_of(process.pid))
    kept = visits(file)
    assert kept[: len(before)] == before
    assert len({(v.workload.identity, v.block) for v in kept}) == len(kept)


@pytest.mark.slow
def test_kills_at_any_time_lose_nothing_that_was_finished(run: Run, tmp_path: Path) -> None:
    file, dice = tmp_path / "a.wwp", random.Random(20)
    process = run(*survey(*TO_EACH, *BIDIRECTIONAL, "--sizes", "8:64KiB"))
    wait_for(file.exists)
    finished: list[Visit] = []
    lost = 0  # workers in a row: a survey gives up when several do not even get ready
    for _ in range(8):
        time.sleep(dice.uniform(0.1, 0.6))
        workers = workers_of(process.pid)
        if workers and lost < 3 and dice.random() < 0.5:
            os.kill(dice.choice(workers), signal.SIGKILL)
            lost += 1
            continue
        lost = 0
        process.kill()
        finish(process)
        wait_for(lambda gone=process.pid: not workers_of(gone))
        kept = visits(file)
        assert kept[: len(finished)] == finished
        finished = kept
        process = run("survey", "--resume", "-o", "a.wwp")
    code, _, err = finish(process)
    assert code == 0, err
    kept = visits(file)
    assert kept[: len(finished)] == finished
    keys = {(v.workload.identity, v.block) for v in kept}
    assert len(keys) == len(kept) == 4 * len(parse_sizes("8:64KiB"))
    assert {v.failure.kind for v in kept if v.failure} <= {"crash"}


def test_every_size_is_there_after_a_resume(run: Run, tmp_path: Path) -> None:
    process = run(*survey("--only", f"{H2D[:-1]}?"))
    code, _, err = finish(process)
    assert code == 0, err
    before = visits(tmp_path / "a.wwp")
    code, out, err = finish(run("survey", "--resume", "-o", "a.wwp"))
    assert code == 0, err
    assert visits(tmp_path / "a.wwp") == before and H2D in out


def test_a_gpu_that_cannot_be_used_leaves_the_host_to_be_measured(run: Run, tmp_path: Path) -> None:
    fake = "unavailable=the driver is too old"
    code, out, err = finish(
        run(*survey("--only", "pageable@numa:0 -> pageable@numa:0 by *"), fake=fake)
    )
    assert code == 0, err
    assert "the driver is too old" in err and "the driver is too old" in out
    assert {v.workload.transfers[0].path.executor for v in visits(tmp_path / "a.wwp")} == {"cpu"}


def wait_for(condition: Callable[[], bool], seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def workers_of(supervisor: int) -> list[int]:
    """Processes that say they work for the supervisor."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(supervisor).encode() in words and b"waywiser.measure.probe.worker" in words:
                found.append(int(entry.name))
    return found
