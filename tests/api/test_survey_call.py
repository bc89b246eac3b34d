"""`waywiser.survey`: the options of the command line, progress, where the file is, and Ctrl-C."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import waywiser
from own_lock import SECONDS
from scripted_host import scripted_host
from waywiser import cli
from waywiser.measure.survey_options import SurveyOptions
from waywiser.measure.survey_run import SurveyError
from waywiser.notebook.survey_call import SurveyProgress, options_of
from waywiser.profile import ExistingFile, Profile
from waywiser.words import WaywiserError

H2D = "pinned@numa:0 -> device@gpu:0"
QUICK: dict[str, Any] = {"preset": "quick", "only": H2D, "no_scratch": True}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with scripted_host(monkeypatch):
        yield


def test_the_arguments_are_the_options_of_the_table() -> None:
    """Their defaults too, where the default is a value and not "not given"."""
    arguments = dict(inspect.signature(waywiser.survey).parameters)
    del arguments["progress"]
    table = {each.name: each.default for each in dataclasses.fields(SurveyOptions)}
    assert arguments.keys() == table.keys()
    for name, argument in arguments.items():
        assert argument.default is (table[name] if isinstance(table[name], bool) else None)


def test_values_become_what_the_command_line_takes() -> None:
    given = {
        "only": ["h2d", "d2h"], "sizes": [4096, "1MiB"], "gpus": (0, 2), "memory": 2**30,
        "file": Path("data"), "scratch": Path("here"), "deadline": 9, "seed": 0, "share": True,
        "preset": None, "workload": H2D, "output": Path("a.wwp"), "expect_gpus": 1,
    }  # fmt: skip
    assert options_of(SurveyOptions, given) == SurveyOptions(
        output="a.wwp", only=("h2d", "d2h"), sizes="4096,1MiB", deadline=9, gpus="0,2",
        expect_gpus=1, memory=str(2**30), share=True, seed=0, file=("data",), scratch="here",
        workload=(H2D,),
    )  # fmt: skip
    assert options_of(
        SurveyOptions, {"sizes": 2 ** numpy.arange(3, 5), "seed": numpy.int32(7)}
    ) == SurveyOptions(sizes="8,16", seed=7)
    assert options_of(SurveyOptions, {"only": "h2d", "sizes": 4096, "gpus": 0}) == SurveyOptions(
        only=("h2d",), sizes="4096", gpus="0"
    )


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"only": []}, "only is empty"),
        ({"gpus": ""}, "gpus is empty"),
        ({"only": "pinend"}, "did you mean 'pinned'? nearest: "),
        ({"only": "pinend"}, "only='pinend' matches no series"),
        ({"only": " "}, "only=' ' is empty (write only='h2d')"),
        ({"only": 1.5}, "only=1.5 is not a text"),
        ({"only": 3}, "only=3 is not a text"),
        ({"only": [None]}, "only=None is not a text"),
        ({"output": 3}, "output=3 is not a text"),
        ({"output": "-"}, "a profile cannot be written to standard output"),
        ({"memory": 0}, "memory=0 leaves no memory for buffers"),
        ({"sizes": [4.5]}, "sizes=4.5 is neither a text nor a whole number"),
        ({"share": "yes"}, "share='yes' is neither True nor False"),
        ({"progress": 5}, "progress=5 is no function"),
        ({"sizes": "1MB"}, "1MiB"),
        ({"deadline": "9"}, "deadline='9' is no number of seconds"),
        ({"deadline": 0}, "deadline=0 is not a number of seconds from 1 to 604800"),
        ({"deadline": 1e308}, "is not a number of seconds from 1 to 604800"),
        ({"deadline": float("nan")}, "deadline='nan' is not a number of seconds from 1"),
        ({"seed": -1}, "seed='-1' is not a whole number from 0"),
        ({"expect_gpus": 10**5}, "expect_gpus=100000 is not a whole number from 0 to 1024"),
        ({"expect_gpus": 10**5000}, "expect_gpus is too large a number"),
        ({"sizes": 10**5000}, "sizes is too large a number"),
        ({"deadline": 10**5000}, "deadline='inf' is not a number of seconds from 1"),
        ({"memory": 2**60}, "is more than any machine has"),
        ({"seed": 1.5}, "seed=1.5 is no whole number"),
        ({"preset": "fast"}, "fast"),
        ({"gpus": 7}, "gpus=7: this machine has no gpu:7"),
        ({"memory": "4 apples"}, "memory="),
        ({"expect_gpus": 9}, "9 GPUs are expected"),
        ({"resume": True}, "resume=True needs the profile (name it with output='FILE')"),
        (
            {"scratch": "/tmp", "no_scratch": True},
            "scratch= and no_scratch=True say opposite",
        ),
        ({"output": "/no/such/folder/a.wwp"}, "/no/such/folder/a.wwp: cannot be written"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(WaywiserError) as error:
        waywiser.survey(**wrong)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("host")
def test_a_survey_is_an_opened_profile(tmp_path: Path) -> None:
    steps: list[SurveyProgress] = []
    profile = waywiser.survey(**QUICK, output=tmp_path / "a.wwp", progress=steps.append)
    assert profile.path == str(tmp_path / "a.wwp")
    assert len(profile.curve(f"{H2D} by copy-engine")) > 1
    with Profile.open(profile.path) as stored:
        assert len(list(stored.visits())) == len(steps) == steps[-1].visits == steps[-1].of_visits
        (run,) = stored.runs
    assert run.command == (
        f"waywiser.survey(only={H2D!r}, preset='quick', no_scratch=True, output={profile.path!r})",
    )
    shares = [step.share for step in steps]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1)
    assert f"{H2D} by copy-engine" in {step.path for step in steps}
    assert str(steps[-1]).startswith(f"100%  {len(steps)} of {len(steps)} visits, 0 s left; last: ")
    with pytest.raises(ExistingFile):
        waywiser.survey(**QUICK, output=tmp_path / "a.wwp")


@pytest.mark.usefixtures("host")
def test_without_an_output_the_profile_is_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "waywiser.notebook.survey_call.default_name", lambda host: Path(f"{host}.wwp")
    )
    folder = tmp_path / "cache" / "waywiser" / "profiles"
    files = [waywiser.survey(**QUICK).path for _ in range(2)]
    assert files == [str(folder / "testhost.wwp"), str(folder / "testhost-2.wwp")]
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SurveyError, match=r"cannot be made: .*name a file: waywiser\.survey\(out"):
        waywiser.survey(**QUICK)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("cache", [None, "", "~/x", "~nobody-of-this-name/x"])
def test_without_a_home_the_error_names_the_remedies(
    cache: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number without an entry in /etc/passwd."""

    def missing(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", missing)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if cache is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
    with pytest.raises(
        SurveyError, match=r"has no home \(name a file: .*XDG_CACHE_HOME="
    ) as caught:
        waywiser.survey(**QUICK)
    assert isinstance(caught.value, waywiser.WaywiserError)


@pytest.mark.usefixtures("host")
def test_an_interruption_keeps_what_was_measured_and_says_how_to_continue(tmp_path: Path) -> None:
    file = str(tmp_path / "a.wwp")

    def stop(progress: SurveyProgress) -> None:
        if progress.visits == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"3 of \d+ visits are stored; waywiser\.open"):
        waywiser.survey(**QUICK, output=file, progress=stop)
    assert len([row for row in waywiser.open(file).series if row.samples]) == 3
    seen: list[int] = []
    whole = waywiser.survey(output=file, resume=True, progress=lambda now: seen.append(now.visits))
    assert seen[0] == 4
    assert not whole.series["not_measured"].count(None) < len(seen)
    with pytest.raises(SurveyError, match="has another only="):
        waywiser.survey(output=file, resume=True, only="d2h")


@pytest.mark.usefixtures("host")
def test_the_plan_of_a_resume_says_what_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.wwp")

    def stop(progress: SurveyProgress) -> None:
        if progress.visits == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waywiser.survey(**QUICK, output=file, progress=stop)
    before = Path(file).read_bytes()
    assert cli.run(["survey", "--resume", "--dry-run", "-o", file]) == 0
    said = capsys.readouterr()
    assert f"{H2D} by copy-engine" in said.out
    assert re.match(r"3 of \d+ visits are stored already, about .* left\n$", said.err)
    assert Path(file).read_bytes() == before


@pytest.mark.usefixtures("host")
def test_an_error_of_the_callback_ends_the_survey_and_keeps_what_was_measured(
    tmp_path: Path,
) -> None:
    file = str(tmp_path / "a.wwp")

    def fail(progress: SurveyProgress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        waywiser.survey(**QUICK, output=file, progress=fail)
    assert sum(row.samples > 0 for row in waywiser.open(file).series) == 1


SCRIPT = """
import json, os, sys
import waywiser
import waywiser.cli.call, waywiser.cli.survey, waywiser.cli.topology
from waywiser.measure.probe.sharing import SurveyLock
run = sys.modules["waywiser.measure.survey_run"]
run.SurveyLock = lambda: SurveyLock(f"waywiser-test-{os.getpid()}")
steps = []
for _ in range(2):
    profile = waywiser.survey(
        only="pinned@numa:0 -> device@gpu:0 by copy-engine", sizes=[4096, 2**20], preset="quick",
        gpus=0, no_scratch=True, progress=steps.append,
    )
machine = waywiser.topology()
print(json.dumps([profile.path, len(steps), profile.curve("H2D")["bytes"],
                  machine.machine.hostname, len(waywiser.topology(profile).gpus)]))
"""


def test_it_measures_in_worker_processes_after_the_command_line_was_imported(
    fake_native_environment: dict[str, str], tmp_path: Path
) -> None:
    """`waywiser.survey` and `waywiser.topology` stay functions, whatever was imported."""
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**fake_native_environment, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    path, steps, sizes, hostname, gpus = json.loads(answer.stdout)
    assert Path(path).parent == tmp_path / "cache" / "waywiser" / "profiles"
    assert steps >= 4 and sizes == [4096, 2**20]
    assert (hostname, gpus) == (os.uname().nodename, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["cache"]
