"""``waywiser tune`` in processes of its own: real workers, and the fake GPU."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from recorded_grid import recorded_grids

from own_lock import commands, finish
from replaying import command
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.measure.tune.run import TuneNote, tuned_results
from waywiser.measure.tune.search import Ratio
from waywiser.measure.tune.targets import Configurator, find_targets
from waywiser.measure.tune.tuner import REPORTED, ROUNDS, Tuned, Tuner
from waywiser.notebook.tune_call import result_line
from waywiser.profile import Profile
from waywiser.profile.planned import TUNING
from waywiser.stats.order import Interval
from waywiser.words import Transfer
from waywiser.words.records import Visit

STAGED = "pageable@numa:0 -> device@gpu:0 by staged"
LISTS = "device@gpu:0 -> pinned@numa:0 by sm as list[piece=1MiB]"
SMALL = ("--sizes", "1MiB", "--memory", "256MiB")

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run(fake_native_environment: dict[str, str], tmp_path: Path) -> Iterator[Run]:
    """Starts ``waywiser`` over the fake GPU in ``tmp_path``."""
    with commands(tmp_path, fake_native_environment) as start:
        yield lambda *arguments: start(*arguments, WAYWISER_FAKE="devices=1;latency=1;event=1")


def tune(*more: str, paths: str = LISTS) -> tuple[str, ...]:
    return ("tune", "a.wwp", "--only", paths, *SMALL, "--budget", "10min", *more)


def keys(file: Path) -> list[tuple[str, int]]:
    with Profile.open(file) as profile:
        return [(str(visit.workload), visit.block) for visit in profile.visits()]


def test_a_tuning_says_what_it_does_and_what_it_found(run: Run, tmp_path: Path) -> None:
    code, out, err = finish(run(*tune()))
    assert code == 0, err
    assert "1 path, 1 size in all; parameters: blocks; 5 configurations" in err
    assert "at most 10 min 00 s (--budget)" in err and "profile: a.wwp" in err
    assert out.splitlines()[0] == LISTS
    assert ("1 MiB: sm" in out and "of the defaults" in out) or "the defaults: no setting" in out
    assert "of cudaMemcpyAsync" in out
    file = tmp_path / "a.wwp"
    measured = keys(file)
    assert {0, *range(ROUNDS, ROUNDS + REPORTED)} <= {block for _, block in measured}
    (tuned,) = tuned_results(file)
    assert tuned.winner is not None and result_line(tuned) in out

    again, same, _ = finish(run(*tune()))
    assert again == 0 and same == out and keys(file) == measured

    code, shown, err = finish(run("show", "a.wwp", "--all"))
    assert code == 0, err
    assert LISTS in shown
    code, _, err = finish(run("report", "a.wwp", "-o", "a.html"))
    assert code == 0, err
    code, _, err = finish(run("survey", "--resume", "-o", "a.wwp"))
    assert code == 2 and "it has no plan of a survey" in err


def test_a_survey_is_tuned_in_further_blocks(run: Run, tmp_path: Path) -> None:
    path = LISTS.partition(" as ")[0]
    survey = ("survey", "--preset", "quick", "--only", path, "--sizes", "1MiB", "--no-scratch")
    code, _, err = finish(run(*survey, "-o", "a.wwp"))
    assert code == 0, err
    before = keys(tmp_path / "a.wwp")
    last = max(block for _, block in before)
    code, _, err = finish(run(*tune("--grid", "1")))
    assert code == 0, err
    after = keys(tmp_path / "a.wwp")
    assert after[: len(before)] == before
    assert min(block for _, block in after[len(before) :]) == last + 1
    with Profile.open(tmp_path / "a.wwp") as profile:
        assert len(profile.runs) == 2
        assert msgspec.convert(profile.environment[TUNING], TuneNote).first_block == last + 1


def interrupted(run: Run, file: Path) -> tuple[int, str, str]:
    """Stops a tuning into the file after three visits, as Ctrl-C does."""
    process = run(*tune(paths=STAGED))
    while process.poll() is None and not (file.exists() and len(keys(file)) >= 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    return finish(process)


def test_an_interrupted_tuning_goes_on_and_shares_no_block_with_one_between(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "a.wwp"
    code, _, err = interrupted(run, file)
    assert code == 130 and "the same command goes on with the rest" in err
    before = keys(file)
    assert before
    for paths in (LISTS, STAGED):
        code, out, err = finish(run(*tune(paths=paths)))
        assert code == 0, err
    assert "1 MiB: staged" in out
    assert keys(file)[: len(before)] == before and len(set(keys(file))) == len(keys(file))
    staged = {block for workload, block in keys(file) if "by staged" in workload}
    lists = {block for workload, block in keys(file) if "as list" in workload}
    assert staged and lists and not staged & lists


def test_a_budget_that_is_too_short_is_said(run: Run, tmp_path: Path) -> None:
    code, _, err = finish(run("tune", "a.wwp", "--only", STAGED, *SMALL, "--budget", "2s"))
    assert code == 2 and "nothing is left to tune" in err and "write --budget" in err
    assert not (tmp_path / "a.wwp").exists()


def test_an_option_that_differs_from_the_profile_is_an_error(run: Run, tmp_path: Path) -> None:
    code, _, err = finish(run(*tune("--grid", "1")))
    assert code == 0, err
    code, _, err = finish(run(*tune("--scratch", ".")))
    assert code == 2 and "measured with another --scratch" in err
    code, _, err = finish(run(*tune("--grid", "1", "--gpus", "all")))
    assert code == 0, err


def test_what_is_no_profile_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.wwp").write_text("nothing")
    code, _, err = finish(run(*tune()))
    assert code == 2 and "a.wwp" in err and "Traceback" not in err
    assert (tmp_path / "a.wwp").read_text() == "nothing"
    code, _, err = finish(run("tune", ".", *SMALL))
    assert code == 2 and "Traceback" not in err


def test_a_dry_run_measures_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    code, out, err = finish(run(*tune("--dry-run")))
    assert code == 0, err
    assert "blocks 1, 2, 4, 8, 16" in out and "5 configurations" in out
    code, out, err = finish(run(*tune("--dry-run", "--json")))
    assert code == 0, err
    said = json.loads(out)
    assert said["budget_seconds"] == 600 and said["expected_seconds"] < 600
    (target,) = said["targets"]
    assert target["configurations"] == 5 and "copy-engine" in target["plain"]
    assert list(tmp_path.iterdir()) == []


def test_a_recorded_grid_stands_in_for_the_machine(run: Run, tmp_path: Path) -> None:
    code, out, err = finish(run(*tune("--grid", "2")))
    assert code == 0, err
    assert "the grid is complete" in out
    file = tmp_path / "a.wwp"
    recorded = keys(file)
    assert len(recorded) == 2 * (5 + 1)
    with Profile.open(file) as profile:
        machine = profile.machine
        note = msgspec.convert(profile.environment[TUNING], TuneNote)
    (grid,) = recorded_grids(file)
    assert [axis.name for axis in grid.target.axes] == ["blocks"] and len(grid.points) == 5
    configurator = Configurator(machine, note.request.memory_bytes)
    tuner = Tuner(find_targets(machine, note.request).targets, configurator, machine)
    visits: list[Visit] = []

    def take(visit: Visit) -> None:
        visits.append(visit)
        tuner.record(visit)

    options = ProbeOptions(command=command(file))
    run_orders(tuner, machine, options=options, on_visit=take)
    (tuned,) = tuner.results()
    assert tuned.winner is not None and visits
    assert {str(v.workload) for v in visits} <= {text for text, _ in recorded}


def test_a_gain_that_is_not_shown_is_said() -> None:
    default = Transfer.parse(f"{STAGED} of 16777216")
    winner = Transfer.parse(f"{STAGED}[threads=10] of 16777216")
    unclear = Ratio(1.05, Interval(0.98, 1.12))
    line = result_line(Tuned(default, winner, seconds=1e-3, over_default=unclear))
    assert "1.05x [0.98, 1.12] of the defaults (not shown to be faster)" in line


def test_a_line_has_the_winner_and_what_was_gained() -> None:
    default = Transfer.parse(f"{STAGED} of 16777216")
    winner = Transfer.parse(f"{STAGED}[chunk=1048576,threads=10] of 16777216")
    tuned = Tuned(
        default,
        winner,
        seconds=16777216 / 45e9,
        over_default=Ratio(1.12, Interval(1.09, 1.15)),
        over_plain=Ratio(6.1),
        plain="cudaMemcpyAsync",
        measured=20,
        configurations=128,
    )
    assert result_line(tuned) == (
        "16 MiB: staged[chunk=1MiB,threads=10]: 45.0 GB/s, 1.12x [1.09, 1.15] of the defaults, "
        "6.10x [too few processes for an interval] of cudaMemcpyAsync "
        "(20 of 128 configurations measured)"
    )


def test_a_folder_without_space_or_rights_is_named_with_an_option_that_there_is(run: Run) -> None:
    code, _, err = finish(run(*tune("--dry-run", "--scratch", "nowhere/at/all")))
    assert code == 2
    assert "no scratch file can be made there" in err
    assert "--scratch" in err and "--no-scratch" not in err and "Traceback" not in err


def test_paths_that_match_nothing_are_named_as_the_option_is(run: Run) -> None:
    code, _, err = finish(run(*tune("--dry-run", paths="nowhere")))
    assert code == 2
    assert "--only 'nowhere' matches no series" in err
