"""Who copies, from the observation of a fake GPU to what is shown, planned and written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from own_lock import Start, commands, finish
from waywiser.profile import Profile
from waywiser.words import Transfer
from waywiser.words.records import WhileOccupied, WhoCopies

LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"
PEER = "device@gpu:0 -> device@gpu:1 by copy-engine"
BY_MULTIPROCESSORS = "cudaMemcpyAsync, by multiprocessors"
FAKE = "devices=2;latency=1;event=1"


@pytest.fixture
def start(fake_native_environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    with commands(tmp_path, fake_native_environment) as begin:
        yield begin


def survey(start: Start, fake: str, *options: str) -> str:
    """What a survey of two paths prints before it measures."""
    command = ["survey", "--preset", "quick", "--sizes", "64KiB", "-o", "a.wwp", *options]
    for workload in () if "--resume" in options else (LOCAL, PEER):
        command += ["--workload", workload]
    code, _, err = finish(start(*command, WAYWISER_FAKE=f"{FAKE};{fake}"))
    assert code == 0, err
    return err


def seen_in(folder: Path) -> list[WhoCopies]:
    with Profile.open(folder / "a.wwp") as profile:
        return list(profile.machine.traits.who_copies)


def results(found: list[WhoCopies]) -> dict[bool, set[WhileOccupied]]:
    """What was seen of copies within a GPU, and of all others: by whether it is within one."""
    by: dict[bool, set[WhileOccupied]] = {}
    for copy in (copy for each in found for copy in each.copies):
        by.setdefault(len(set(copy.transfer.path.places)) == 1, set()).add(copy.seen.found)
    return by


def run(start: Start, *arguments: str) -> str:
    code, out, err = finish(start(*arguments))
    assert code == 0, err
    return out


def test_copies_that_wait_are_named_by_their_call(start: Start, tmp_path: Path) -> None:
    said = survey(start, "multiprocessors=local,fill")
    assert "occupies all multiprocessors of gpu:0-1, for less than 50 ms at a time" in said
    found = seen_in(tmp_path)
    assert [each.gpu for each in found] == [0, 1]
    by = results(found)
    # A host that is busy leaves single kinds undecided, and never takes one for the other.
    assert "waited" in by[True] and "ended" not in by[True]
    assert "ended" in by[False] and "waited" not in by[False]
    with Profile.open(tmp_path / "a.wwp") as profile:
        decided = profile.machine.traits.while_occupied(Transfer.parse(LOCAL)) == "waited"
        texts = {workload.curve for workload in profile.workloads()}
    assert texts == {LOCAL, PEER}
    if not decided:
        pytest.skip("the host is too busy to decide")
    shown = run(start, "show", "a.wwp")
    assert f"device@gpu:0 -> device@gpu:0 by {BY_MULTIPROCESSORS}" in shown
    assert PEER in shown
    assert "copies by multiprocessors: device -> device within a GPU" in shown
    report = run(start, "report", "a.wwp", "--format", "md", "--all", "-o", "-")
    assert f"device@gpu:0 -> device@gpu:0 by {BY_MULTIPROCESSORS}" in report
    advice = run(start, "advise", "a.wwp", "--from", "device@gpu:0", "--to", "device@gpu:0",
                 "--bytes", "64KiB")  # fmt: skip
    assert advice.startswith(BY_MULTIPROCESSORS)
    assert "It takes from others: multiprocessors." in advice
    policy = run(start, "advise", "a.wwp")
    (row,) = [line for line in policy.splitlines() if BY_MULTIPROCESSORS in line]
    assert row.endswith("multiprocessors")
    run(start, "export", "a.wwp", "--for", "waywiser", "-o", "a.json")
    assert BY_MULTIPROCESSORS in run(start, "advise", "a.json")
    written = json.loads((tmp_path / "a.json").read_text())
    rows = {each["relation"]: each["rows"] for each in written["classes"]}
    assert {row["executor"] for row in rows["same"]} == {"copy-engine"}
    assert all(row["costs"]["multiprocessors"] is None for row in rows["same"])
    points = json.loads(run(start, "show", "a.wwp", "--json"))["series"]
    assert {point["curve"] for point in points} == {LOCAL, PEER}


def test_copies_by_engines_are_shown_as_before(start: Start, tmp_path: Path) -> None:
    survey(start, "latency=1")
    by = results(seen_in(tmp_path))
    assert all("ended" in each and "waited" not in each for each in by.values())
    shown = run(start, "show", "a.wwp")
    assert LOCAL in shown and "by multiprocessors" not in shown
    assert "copies by copy engines: " in shown
    advice = run(start, "advise", "a.wwp", "--from", "device@gpu:0", "--to", "device@gpu:0",
                 "--bytes", "64KiB")  # fmt: skip
    assert advice.startswith("copy-engine") and "It takes from others: nothing known." in advice


def test_a_gpu_without_free_multiprocessors_decides_nothing(start: Start, tmp_path: Path) -> None:
    survey(start, "occupied=0;multiprocessors=local")
    by = results(seen_in(tmp_path))
    assert by == {True: {"undecided"}, False: {"undecided"}}
    shown = run(start, "show", "a.wwp")
    assert LOCAL in shown and BY_MULTIPROCESSORS not in shown
    assert "copies not decided: " in shown


@pytest.mark.parametrize("fault", ["sticky=launch@3", "lost=launch@9", "crash=launch@2"])
def test_a_worker_that_is_lost_costs_no_series(start: Start, tmp_path: Path, fault: str) -> None:
    survey(start, f"{fault};once={tmp_path / 'once'}")
    first, second = seen_in(tmp_path)
    assert first.failure is not None and not first.copies
    assert second.failure is None and second.copies
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert all(visit.failure is None for visit in profile.visits())
    assert "who copies on gpu:0 is not known: " in run(start, "show", "a.wwp")


def test_a_resumed_survey_does_not_look_again(start: Start, tmp_path: Path) -> None:
    survey(start, "latency=1")
    before = seen_in(tmp_path)
    survey(start, "multiprocessors=local", "--resume")
    assert seen_in(tmp_path) == before


@pytest.mark.parametrize("options", [("--gpus", "none"), ("--only", "h2h")])
def test_surveys_of_no_gpu_copy_occupy_nothing(
    start: Start, tmp_path: Path, options: tuple[str, ...]
) -> None:
    command = ("survey", "--dry-run", "--preset", "quick", *options)
    code, out, err = finish(start(*command, WAYWISER_FAKE=FAKE))
    assert code == 0, err
    assert "who copies" not in out + err
