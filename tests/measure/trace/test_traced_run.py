"""A program that is traced keeps its exit code, its streams and its signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waywiser.measure.trace import run
from waywiser.profile.trace_file import TraceError


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in place of the tracer: no driver loads it here."""
    file = tmp_path / "libtracer.so"
    file.touch()
    monkeypatch.setattr(run, "LIBRARY", file)
    return file


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_exit_codes_are_those_of_the_program() -> None:
    assert run.traced(python("pass")).exit_code == 0
    assert run.traced(python("raise SystemExit(7)")).exit_code == 7
    killed = run.traced(python("import os; os.kill(os.getpid(), 9)"))
    assert killed.exit_code == 128 + 9


def test_a_program_without_a_gpu_has_no_process_and_no_folder_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    found = run.traced(python("pass"))
    assert found.processes == () and found.unreadable == ()
    assert found.command[0] == sys.executable and found.seconds > 0
    assert not list(tmp_path.glob("waywiser-trace-*"))


def test_a_command_that_is_not_there_ends_as_in_a_shell(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="command not found") as missing:
        run.traced(["no-such-command-anywhere"])
    assert missing.value.exit_code == 127
    plain = tmp_path / "plain"
    plain.write_text("x")
    with pytest.raises(TraceError) as not_started:
        run.traced([str(plain)])
    assert not_started.value.exit_code == 126


def test_the_environment_loads_the_tracer_and_then_what_was_to_be_loaded(
    library: Path, tmp_path: Path
) -> None:
    found = run.trace_environment({"A": "1", run.INJECTION: "/opt/profiler.so"}, tmp_path)
    assert found[run.INJECTION] == str(library) and found["A"] == "1"
    assert found[run.NEXT_INJECTION] == "/opt/profiler.so"
    assert found[run.FOLDER] == str(tmp_path)
    again = run.trace_environment(found, tmp_path)
    assert again[run.NEXT_INJECTION] == "/opt/profiler.so", "a trace within a trace"
    assert run.NEXT_INJECTION not in run.trace_environment({}, tmp_path)


def test_files_that_processes_wrote_are_read(tmp_path: Path) -> None:
    write = (
        "import os; f = os.environ['WAYWISER_TRACE_FOLDER']; "
        "open(f + '/trace-1-1.json', 'w').write('{\"format\": \"waywiser-trace-process\", "
        '"version": 1, "process": {"pid": 1, "start_ns": 0, "last_ns": 5}}\')'
    )
    found = run.traced(python(write))
    assert [process.process.pid for process in found.processes] == [1]


def test_a_missing_tracer_is_said_before_the_program_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "LIBRARY", tmp_path / "none.so")
    done = tmp_path / "done"
    with pytest.raises(TraceError, match="not built"):
        run.traced(python(f"open({str(done)!r}, 'w')"))
    assert not done.exists()


def test_a_library_of_cupti_that_is_not_there_is_said() -> None:
    with pytest.raises(TraceError, match="no such library"):
        run.traced(["true"], cupti="/no/libcupti.so")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_end_the_program_and_not_the_trace(number: signal.Signals, tmp_path: Path) -> None:
    """The trace waits for the program, which ends as it likes."""
    ready, library = tmp_path / "ready", tmp_path / "lib.so"
    library.touch()
    program = (
        f"import signal, sys, time\nsignal.signal({number.value}, lambda *a: sys.exit(5))\n"
        f"open({str(ready)!r}, 'w')\nwhile True: time.sleep(0.01)"
    )
    outer = (
        "import sys; from pathlib import Path; from waywiser.measure.trace import run; "
        f"run.LIBRARY = Path({str(library)!r}); "
        f"print(run.traced([sys.executable, '-c', {program!r}]).exit_code)"
    )
    with subprocess.Popen(python(outer), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                          text=True) as process:  # fmt: skip
        while not ready.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        out, _ = process.communicate()
    assert out.strip() == "5"


def test_a_patched_program_imports_its_own_sitecustomize_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.own_site = True\n")
    environment = run.trace_environment(
        {**os.environ, "PYTHONPATH": str(tmp_path)}, tmp_path, patched=True
    )
    shown = subprocess.run(
        [sys.executable, "-c", "print(own_site, 'torch' in __import__('sys').modules)"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.split() == ["True", "False"] and shown.stderr == ""


def test_a_torch_that_cannot_be_patched_leaves_the_program_as_it_is(tmp_path: Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("answer = 42\n")
    environment = run.trace_environment(
        {**os.environ, "PYTHONPATH": str(tmp_path)}, tmp_path, patched=True
    )
    shown = subprocess.run(
        [sys.executable, "-c", "import torch, torch; print(torch.answer)"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == "42"
    assert shown.stderr.count("\n") == 1 and "are not patched" in shown.stderr
