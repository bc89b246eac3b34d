"""The command line's manners: quick help, one clear line for every error, output for machines."""

from __future__ import annotations

import errno
import json
import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import waywiser
from measure.plan import scripted_native
from measure.plan.machines import machine
from waywiser import cli
from waywiser.cli.signals import ENDING, stopped_by_signals
from waywiser.machine import native
from waywiser.measure import scope
from waywiser.words import WaywiserError

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

HEAVY = (
    "numpy",
    "scipy",
    "rich",
    "matplotlib",
    "jinja2",
    "pynvml",
    "sqlite3",
    "waywiser.measure.survey_run",
)
"""What help must not pay for."""

Output = pytest.CaptureFixture[str]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with one GPU and a registry, so that planning needs nothing of this machine."""
    monkeypatch.setenv(native.MODULE_VARIABLE, scripted_native.__name__)
    native.load.cache_clear()
    monkeypatch.setattr(scope, "live_machine", lambda *_: machine(gpus=1))
    monkeypatch.setattr(scope, "_unavailable_reason", lambda: "")
    yield
    native.load.cache_clear()


def one_line(output: Output) -> str:
    """What was said on standard error, which must be one line, with nothing on standard output."""
    said = output.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize(
    ("arguments", "says"), [(["--help"], "survey"), (["survey", "--help"], "--dry-run")]
)
def test_help_imports_nothing_heavy(arguments: list[str], says: str) -> None:
    script = (
        f"import sys; from waywiser import cli; cli.run({arguments!r});"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    assert says in done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.usefixtures("scripted")
def test_a_file_that_exists_may_be_a_survey_to_go_on_with(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "a.wwp"
    file.write_text("precious")
    assert cli.run(["survey", "-o", str(file)]) == 2
    remedy = "go on with the survey in it by --resume, or name another file with -o"
    assert f"a.wwp: the file exists and is not overwritten ({remedy})" in one_line(capsys)
    assert file.read_text() == "precious"


def test_the_version_is_reported(capsys: Output) -> None:
    assert cli.run(["--version"]) == 0
    version, build, driver = capsys.readouterr().out.splitlines()
    assert version == f"waywiser {waywiser.__version__}"
    library = native.load()
    assert build == f"build: {native.build_text(library)}"
    assert library.runtime_version in build
    assert driver.startswith("driver: ")


def test_no_arguments_help(capsys: Output) -> None:
    assert cli.run([]) == 0
    assert "Usage: waywiser" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["measure"], "no such command 'measure'"),
        (["survey", "--quick"], "no such option: --quick"),
        (["survey", "--seed", "x"], "--seed 'x' is not a whole number from 0 to 9007199254740991"),
        (["show"], "missing argument 'FILE' (see 'waywiser show --help')"),
        (["survey", "--preset", "fast"], "use one of check, quick, standard, full"),
        (["survey", "--sizes", "8:4"], "--sizes '8:4'"),
        (["survey", "--memory", "much"], "'much' is not a size"),
        (["survey", "--only", "teleport"], "matches no series"),
        (["survey", "--only", "P2P"], "there is no P2P path here: it needs 2 GPUs, available: 1"),
        (["report", "a.wwp", "-o", "a.md", "--format", "html"], "its name says md"),
        (["survey", "--gpus", "7"], "this machine has no gpu:7"),
        (["survey", "--gpus", ""], "an empty value in --gpus (is a variable"),
        (["survey", "--gpus="], "an empty value in --gpus (is a variable"),
        (["survey", ""], "an empty argument after 'survey' (is a variable"),
        ([""], "an empty argument (is a variable"),
        (["help", "show", "extra"], "too many arguments: extra"),
        (
            ["survey", "--deadline", "nan"],
            "--deadline 'nan' is not a number of seconds from 1",
        ),
        (["survey", "--deadline", "0.5"], "--deadline 0.5 is not a number of seconds from 1"),
        (["survey", "-o", "-"], "a profile cannot be written to standard output (name a file"),
        (["survey", "-o", "x.csv"], "x.csv: a profile is not csv (name it x.wwp; "),
        (["show", "-"], "error: a profile cannot be read from standard input (name a file)"),
        (
            ["survey", "--gpus", "none", "--memory", "0", "--only", "by cpu"],
            "--memory 0 leaves no memory for buffers (write --memory 4GiB)",
        ),
        (["survey", "--dry-run", "--gpus", "none", "--sizes", "1TiB"], "--memory allows 4 GiB"),
        (["survey", "--sizes", "9" * 5000], "is not a size"),
        (["survey", "--memory", "9999999TiB"], "is more than any machine has"),
        (["survey", "-o", "."], ".: is a directory (name a file in it)"),
        (["survey", "-o", "none/x.wwp"], "cannot be written: No such file or directory"),
        (["survey", "--dry-run", "-o", "none/x.wwp"], "cannot be written: No such file or"),
        (["survey", "--resume"], "name it with -o FILE"),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_what_is_wrong_is_one_line_and_two(
    arguments: list[str], says: str, capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 2
    line = one_line(capsys)
    assert line.startswith("waywiser: error: ") and says in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["survey", "--expect-gpus", "8"], "8 GPUs are expected and 1 can be measured"),
        (["survey", "--expect-gpus", "8", "--gpus", "none"], "skipped by --gpus none"),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_missing_gpus_are_a_finding(
    arguments: list[str], says: str, capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A missing GPU is no wrong command: the scripts of each night fail the node."""
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 1
    line = one_line(capsys)
    assert line.startswith("waywiser: error: ") and says in line
    assert not list(tmp_path.iterdir())


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("waywiser.cli.printing.plain_console", fail)


def test_what_nobody_foresaw_asks_for_a_report(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, ZeroDivisionError("division\nby zero"))
    assert cli.run(["survey", "--list"]) == 2
    assert "please report it: ZeroDivisionError: division by zero" in one_line(capsys)
    monkeypatch.setenv("WAYWISER_DEBUG", "1")
    assert cli.run(["survey", "--list"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_full_disk_is_no_mistake(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    assert cli.run(["survey", "--list"]) == 2
    assert one_line(capsys) == (
        "waywiser: error: the output: cannot be written: No space left on device\n"
    )


def waywiser_in_shell(words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a shell makes of ``$W`` and the words."""
    return subprocess.run(
        ["sh", "-c", f"$W {words}"],
        env={**ENVIRONMENT, "W": f"{sys.executable} -m waywiser", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_what_cannot_be_written_is_one_line_and_two() -> None:
    done = waywiser_in_shell("survey --help > /dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot be written: No space left" in done.stderr
    assert waywiser_in_shell("survey --bad 2> /dev/full").returncode == 2


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams_harm_nothing(closed: str) -> None:
    done = waywiser_in_shell(f"survey --help {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--dry-run" in done.stdout


@pytest.mark.parametrize("words", ["survey --help", "--version", "--cmake-dir", "--pkg-config-dir"])
def test_a_closed_standard_output_cannot_be_written(words: str) -> None:
    done = waywiser_in_shell(f"{words} >&-")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    done = waywiser_in_shell(f"{words} <&- >&- 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_encoding_without_a_character_gets_a_plainer_one(stream: str) -> None:
    code = (
        "import sys; from waywiser.cli import streams; streams.prepare(); "
        f"print('±2 µs ☂', file=sys.{stream})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, getattr(done, stream)) == (0, b"~2 us ?\n")


def test_an_error_brings_its_own_exit_code(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    error = WaywiserError("odd", where="here", remedy="even it")
    error.exit_code = 3
    fail_with(monkeypatch, error)
    assert cli.run(["survey", "--list"]) == 3
    assert one_line(capsys) == "waywiser: error: here: odd (even it)\n"


def test_ctrl_c_is_no_traceback(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, KeyboardInterrupt())
    assert cli.run(["survey", "--list"]) == 130
    assert one_line(capsys) == "waywiser: interrupted\n"


def test_ctrl_c_before_a_verb_begins_is_no_traceback(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    set_to: dict[int, object] = {}
    monkeypatch.setattr("waywiser.cli.streams.prepare", fail)
    monkeypatch.setattr(signal, "signal", set_to.__setitem__)
    with pytest.raises(SystemExit) as ended:
        cli.main(["survey", "--list"])
    assert ended.value.code == 130
    assert {number: set_to[number] for number in ENDING} == dict.fromkeys(ENDING, signal.SIG_IGN)
    assert one_line(capsys) == "waywiser: interrupted\n"


def test_ctrl_c_while_the_command_is_imported_is_no_traceback() -> None:
    code = (
        "import runpy, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'waywiser.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('waywiser', run_name='__main__')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "waywiser: interrupted\n")


def test_ctrl_c_within_exec_ends_with_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import signal\n"
        "from waywiser import cli\n"
        "def run(*_, **__):\n"
        "    try:\n"
        "        exec('signal.raise_signal(signal.SIGINT)')\n"
        "    except KeyboardInterrupt:\n"
        "        return cli.INTERRUPTED\n"
        "cli.run = run\n"
        "cli.main([])"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],  # only a module is ended by the signal
        env=ENVIRONMENT,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_only_the_first_signal_stops_a_survey() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stored = False
    try:
        with pytest.raises(KeyboardInterrupt), stopped_by_signals():
            signal.raise_signal(signal.SIGHUP)  # ignored, as under nohup
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)
                stored = True
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, former)
    assert stored


def test_help_is_a_command_too(capsys: Output) -> None:
    assert cli.run(["help", "help"]) == 0
    assert "Usage: waywiser" in capsys.readouterr().out
    for words in (["help"], ["help", "survey"]):
        assert cli.run(words) == 0
        helped = capsys.readouterr().out
        assert cli.run([*words[1:], "--help"]) == 0
        assert capsys.readouterr().out == helped


@pytest.mark.parametrize(
    "arguments", [["survey", "--help"], ["survey", "--list"], ["survey", "--list", "--json"]]
)
def test_a_reader_that_leaves_is_no_error(arguments: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "waywiser", *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout and child.stderr
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


@pytest.mark.usefixtures("scripted")
def test_list_shows_everything_with_its_source(capsys: Output) -> None:
    assert cli.run(["survey", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [executor["name"] for executor in listed["executors"]] == ["copy-engine", "cpu"]
    assert [memory["name"] for memory in listed["memories"]] == ["device", "pageable", "pinned"]
    assert all(entry["source"] for entry in listed["executors"] + listed["memories"])
    assert cli.run(["survey", "--list"]) == 0
    text = capsys.readouterr().out
    for word in ("cpu", "threads: the threads (1, 2, 4", "pages: the pages", "source: somebody"):
        assert word in text


@pytest.mark.usefixtures("scripted")
def test_a_dry_run_says_how_many_how_much_and_how_long(capsys: Output) -> None:
    arguments = ["survey", "--dry-run", "--only", "pinned@numa:0 -> device@gpu:0 by copy-engin?"]
    assert cli.run(arguments) == 0
    text = capsys.readouterr().out
    # 12 visits are of sizes at which the rate is expected to have saturated.
    assert (
        "standard: 28 series in 100 to 112 visits by 4 processes, up to 2 GiB of memory, about "
        in text
    )
    assert "deadline after 1 min 58 s: all is expected to fit; if time runs out, these " in text
    assert "pinned@numa:0 -> device@gpu:0 by copy-engine: 28 sizes, 8 B to 1 GiB" in text
    assert cli.run([*arguments, "--json", "--memory", "1GiB", "--seed", "5"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["request"]["seed"] == 5
    assert plan["estimate"]["series"] == len(plan["series"]) == 27
    assert plan["estimate"]["buffer_bytes"] == 2**30
    assert plan["unsupported_paths"] == [
        {
            "path": "pinned@numa:0 -> device@gpu:0 by copy-engine of 1 GiB",
            "reason": "1 GiB needs 2 GiB of buffers, --memory allows 1 GiB",
        }
    ]


@pytest.mark.usefixtures("scripted")
def test_a_dry_run_with_a_deadline_says_what_has_no_time(capsys: Output) -> None:
    arguments = ["survey", "--dry-run", "--deadline", "10"]
    assert cli.run(arguments) == 0
    text = capsys.readouterr().out
    assert "deadline after 10 s: no time is expected for " in text
    assert " sizes that one process measures" in text
    assert cli.run([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["deadline_seconds"] == said["request"]["deadline_seconds"] == 10
    assert 5 < said["outlook"]["seconds"] <= 10 and said["outlook"]["left_out"]["rest"] > 0
    assert {series["processes"] for series in said["series"]} == {1, 4}


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("wrong", ["nan", "inf", "0", "-5", "soon"])
def test_a_deadline_that_is_no_time_is_an_error(capsys: Output, wrong: str) -> None:
    assert cli.run(["survey", "--dry-run", "--deadline", wrong]) == 2
    assert "--deadline" in capsys.readouterr().err


@pytest.mark.usefixtures("scripted")
def test_a_dry_run_counts_what_needs_a_gpu_in_one_line(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "live_machine", lambda *_: machine())
    assert cli.run(["survey", "--dry-run", "--preset", "quick"]) == 0
    text = capsys.readouterr().out
    assert text.count("\nnot measured: ") == 2
    assert re.search(
        r"\nnot measured: \d+ paths( and \d+ operations?)? that need a GPU: no driver is loaded; "
        r"install one; --dry-run --json lists them\n",
        text,
    )
    assert "device@gpu:0" not in text


def test_the_reference_is_current() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "cli.py"))["document"]()
    assert (ROOT / "docs" / "cli.md").read_text() == made, "run: python docs/cli.py > docs/cli.md"
