"""``trace``: what it prints, what it keeps, and what is wrong with a command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from analysis.trace import recorded_traces as recorded
from kept import RESULTS, unpacked
from waywiser.cli import run
from waywiser.measure.trace import run as traced_run
from waywiser.measure.trace.watch import GpuLinkTraffic, WatchedProgram
from waywiser.profile import Profile
from waywiser.profile.errors import NotWritable
from waywiser.profile.trace_file import read_trace, write_trace
from waywiser.words import WaywiserError

Output = pytest.CaptureFixture[str]
PACKED = RESULTS / "2026-11-24-policy" / "h200-standard.wwp.xz"


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(PACKED, tmp_path_factory.mktemp("trace") / "node.wwp")


@pytest.fixture(scope="module")
def kept(profile: Path) -> Path:
    """A trace of a training on the machine of the profile."""
    with Profile.open(profile) as opened:
        uuid = opened.machine.gpus[0].uuid
    file = profile.with_name("train.wwt")
    write_trace(recorded.training(uuid, profile=str(profile)), file)
    return file


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command that writes what a tracer would have, prints a word and ends with 4."""
    library = tmp_path / "tracer.so"
    library.touch()
    monkeypatch.setattr(traced_run, "LIBRARY", library)
    process = msgspec.json.encode(recorded.training().processes[0]).decode()
    text = (
        "import os; print('own output'); "
        "open(os.environ['WAYWISER_TRACE_FOLDER'] + '/trace-1-1.json', 'w')"
        f".write({process!r}); raise SystemExit(4)"
    )
    return [sys.executable, "-c", text]


def test_the_program_keeps_its_output_and_its_exit_code(program: list[str], capfd: Output) -> None:
    assert run(["trace", *program]) == 4
    out, err = capfd.readouterr()
    assert out == "own output\n"
    assert "train.py:12" in err and "waywiser survey" in err


def test_options_of_the_program_are_its_own(program: list[str], capfd: Output) -> None:
    assert run(["trace", *program, "--json", "--all"]) == 4
    assert capfd.readouterr().err.startswith("python")


def test_what_is_kept_can_be_shown(program: list[str], tmp_path: Path, capfd: Output) -> None:
    file = tmp_path / "a.wwt"
    assert run(["trace", "-o", str(file), "--", *program]) == 4
    assert read_trace(file).exit_code == 4
    capfd.readouterr()
    assert run(["show", str(file)]) == 0
    assert "train.py:12" in capfd.readouterr().out
    assert run(["show", str(file), "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown["schema"] == 1 and shown["saved"] is None


def test_only_a_former_trace_is_replaced(program: list[str], tmp_path: Path, capfd: Output) -> None:
    for name in ("train.py", "node.html"):
        file = tmp_path / name
        file.write_text("kept")
        assert run(["trace", "-o", str(file), "--", *program]) == 2
        out, err = capfd.readouterr()
        assert out == "", "the program has not run"
        assert "not overwritten" in err and file.read_text() == "kept"
    assert run(["trace", "-o", "-", "--", *program]) == 2
    assert "standard output is the program's" in capfd.readouterr().err
    file = tmp_path / "a.wwt"
    for _ in range(2):
        assert run(["trace", "-o", str(file), "--", *program]) == 4
    assert read_trace(file).exit_code == 4
    assert {each.name for each in tmp_path.iterdir()} == {
        *("a.wwt", "node.html", "train.py", "tracer.so")
    }


def test_json_goes_to_standard_error(program: list[str], capfd: Output) -> None:
    assert run(["trace", "--json", *program]) == 4
    out, err = capfd.readouterr()
    assert out == "own output\n" and json.loads(err)["lines"]


def test_lines_say_what_they_could_take(kept: Path, capfd: Output) -> None:
    assert run(["show", str(kept)]) == 0
    out = capfd.readouterr().out
    first = out.splitlines()[0]
    assert first.startswith("train.py: 41.2 s on 1 GPU") and "can be saved" in first
    assert "pin_memory()" in out and "one list" in out and "pin-allocate" in out


def test_a_change_is_compared(program: list[str], kept: Path, capfd: Output) -> None:
    assert run(["trace", "--against", str(kept), *program]) == 4
    err = capfd.readouterr().err
    assert "before and" in err and "as predicted" in err


def test_the_report_has_bars_and_a_time_line(kept: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(["report", str(kept), "-o", str(page)]) == 0
    text = page.read_text()
    assert "Copies of train.py" in text and "The worst second" in text
    assert "Time of copies by line" in text
    for name in ("copies-by-line", "timeline-100"):
        figure = tmp_path / f"{name}.svg"
        assert run(["report", str(kept), "--figure", name, "-o", str(figure)]) == 0
        assert figure.read_text().startswith("<svg") or "<svg" in figure.read_text()
    summary = tmp_path / "page.md"
    assert run(["report", str(kept), "-o", str(summary)]) == 0
    assert "train.py" in summary.read_text()


def test_perfetto_has_the_events_of_the_worst_second(kept: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    assert run(["report", str(kept), "--format", "perfetto", "-o", str(file)]) == 0
    events = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [(event["cat"], event["name"], event["dur"]) for event in events] == [
        ("copy", "H2D train.py:12", 10_000.0), ("kernel", "gemm", 990_000.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), [
    (["trace"], "no program is named"),
    (["trace", "--lines", "some", "true"], "no choice of lines"),
    (["trace", "--pid", "1", "true"], "a command has no effect here: --pid watches"),
    (["trace", "--pid", "1", "-o", "a.wwt"], "-o has no effect here: --pid watches"),
    (["trace", "--pid", str(1 << 29)], "there is no process"),
    (["trace", "--against", "none.wwt", "true"], "there is no such file"),
    (["trace", "--profile", "none.wwp", "true"], "no such file"),
    (["report", "a.wwp", "--format", "perfetto"], "perfetto is of one trace"),
])  # fmt: skip
def test_what_is_wrong_is_one_line(words: list[str], message: str, capfd: Output) -> None:
    assert run(words) == 2
    out, err = capfd.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


def test_a_trace_has_a_report_of_its_own(kept: Path, profile: Path, capfd: Output) -> None:
    assert run(["report", str(kept), str(profile)]) == 2
    assert "name it alone" in capfd.readouterr().err


def test_a_missing_command_has_the_code_of_a_shell(program: list[str], capfd: Output) -> None:
    assert run(["trace", "no-such-command-anywhere"]) == 127
    assert "command not found" in capfd.readouterr().err


def test_the_exit_code_is_the_programs_whatever_becomes_of_its_records(
    program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    def fail(*args: object) -> None:
        raise NotWritable("no space is left", where="a.wwt")

    monkeypatch.setattr("waywiser.profile.trace_file.write_trace", fail)
    assert run(["trace", "-o", str(tmp_path / "a.wwt"), *program]) == 4
    err = capfd.readouterr().err
    assert "train.py:12" in err and "no space is left" in err


def test_without_a_folder_for_records_the_program_is_not_started(
    program: list[str], monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    def fail(**options: object) -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("tempfile.mkdtemp", fail)
    assert run(["trace", *program]) == 2
    out, err = capfd.readouterr()
    assert out == "" and "TMPDIR" in err and err.count("\n") == 1


def test_a_profile_that_is_gone_is_said(tmp_path: Path, capfd: Output) -> None:
    file = tmp_path / "a.wwt"
    write_trace(recorded.training(profile=str(tmp_path / "gone.wwp")), file)
    assert run(["show", str(file)]) == 0
    out, err = capfd.readouterr()
    assert "gone.wwp" in err and "train.py:12" in out
    assert run(["report", str(file), "-o", str(tmp_path / "a.html")]) == 0


def test_words_that_are_no_utf8_are_kept_as_they_can_be(program: list[str], tmp_path: Path) -> None:
    file = tmp_path / "a.wwt"
    assert run(["trace", "-o", str(file), *program, "caf\udce9"]) == 4
    assert read_trace(file).command[-1] == "caf\\xe9"


def test_a_device_stays_one(program: list[str]) -> None:
    assert run(["trace", "-o", "/dev/null", *program]) == 4
    assert Path("/dev/null").is_char_device()


def test_a_kept_trace_is_shown_beside_a_profile_that_is_named(
    profile: Path, tmp_path: Path, capfd: Output
) -> None:
    """It was traced without one, on another machine than that on which it is read."""
    with Profile.open(profile) as opened:
        uuid = opened.machine.gpus[0].uuid
    file = tmp_path / "alone.wwt"
    write_trace(recorded.training(uuid), file)
    assert run(["show", str(file)]) == 0
    assert "can be saved" not in capfd.readouterr().out
    assert run(["show", str(file), "--profile", str(profile)]) == 0
    out = capfd.readouterr().out
    assert "can be saved" in out and str(profile) in out
    page = tmp_path / "alone.html"
    assert run(["report", str(file), "--profile", str(profile), "-o", str(page)]) == 0
    assert "Copies can take less time" in page.read_text()
    assert run(["report", str(file), "--profile", str(tmp_path / "none.wwp"), "-o", str(page)]) == 2
    assert "none.wwp" in capfd.readouterr().err


def test_options_of_traces_and_of_profiles_have_an_effect(
    profile: Path, kept: Path, tmp_path: Path, capfd: Output
) -> None:
    page = str(tmp_path / "a.html")
    for arguments in (
        ["show", str(profile), "--profile", str(profile)],
        ["report", str(profile), "--profile", str(profile), "-o", page],
        ["show", str(kept), "--only", "h2d"],
    ):
        assert run(arguments) == 2
        assert "has no effect here" in capfd.readouterr().err


def test_a_trace_is_kept_though_it_cannot_be_analysed(
    program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise WaywiserError("no advice")

    monkeypatch.setattr("waywiser.notebook.trace_call.trace_advice", fails)
    file = tmp_path / "kept.wwt"
    assert run(["trace", "-o", str(file), *program]) == 4
    assert "no advice" in capfd.readouterr().err
    assert read_trace(file).processes


def test_a_profile_of_other_gpus_says_nothing_of_a_running_program(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    with Profile.open(profile) as opened:
        machine = opened.machine
    for uuid, is_used in ((machine.gpus[0].uuid, True), ("GPU-other", False)):
        gpu = msgspec.structs.replace(machine.gpus[0], uuid=uuid)
        live = msgspec.structs.replace(machine, gpus=(gpu,))
        traffic = GpuLinkTraffic(0, 0, 30e9, 3e9, None, None)
        watched = WatchedProgram(1, "train", 1.0, (traffic,), {}, {})
        monkeypatch.setattr("waywiser.measure.scope.live_machine", lambda live=live: live)
        monkeypatch.setattr("waywiser.measure.trace.watch.watch", lambda *_, it=watched: it)
        assert run(["trace", "--pid", "1", "--profile", str(profile), "--json"]) == 0
        found = json.loads(capfd.readouterr().out)
        assert (found["gpus"][0]["h2d"] is not None) == is_used
        assert any("other GPUs" in note for note in found["notes"]) != is_used


def test_a_trace_is_named_where_a_profile_is_expected(kept: Path, capfd: Output) -> None:
    assert run(["check", str(kept)]) == 2
    assert "is a trace, and no profile (waywiser show, or report, has it)" in capfd.readouterr().err
