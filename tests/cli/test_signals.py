"""Every verb ends by a signal as by Ctrl-C, from its start to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import signal, sys, time
from waywiser import cli
def wait(*_, **__):
    print("waits", flush=True)
    {waits}
    return 0
sys.modules["waywiser.cli.call"] = type(sys)("call")
sys.modules["waywiser.cli.call"].call = wait
cli.main(["predict", "a.wwp"])
"""
"""The command with a verb that waits."""

SWALLOWS = """
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        raise ImportError("a library makes this of it") from None
"""


def started(waits: str, tmp_path: Path, ignored: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", ignored + PROGRAM.format(waits=waits)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    return process


@pytest.mark.parametrize("waits", ["time.sleep(600)", SWALLOWS])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU])
def test_a_verb_ends_with_130(number: signal.Signals, waits: str, tmp_path: Path) -> None:
    process = started(waits, tmp_path)
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "waywiser: interrupted\n")


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    ignored = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    waits = "signal.raise_signal(signal.SIGHUP)"
    process = started(waits, tmp_path, ignored)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")


INTERRUPTED_IMPORT = """
import sys
def interrupt(frame, *_):
    if frame.f_code.co_filename.endswith("datetime.py"):
        sys.settrace(None)
        raise KeyboardInterrupt
sys.settrace(interrupt)
try:
    import waywiser.words.records
except KeyboardInterrupt:
    print("interrupted")
sys.settrace(None)
import msgspec, waywiser.words.records as records
print(msgspec.json.Decoder(tuple[records.GpuState, ...]).decode("[]"))
"""


def test_a_signal_while_modules_load_is_not_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n()\n"), done.stderr


DROPPED = """
import os, signal, time, weakref
from waywiser.cli.signals import end_by_signals

class Ends:
    def __del__(self):
        self.interrupt()
    def interrupt(self, _=None):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            time.sleep(0)

end_by_signals()
try:
    {how}
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "how",
    ["Ends()", "kept = set(); o = Ends; o = type('O', (), {})(); i = Ends.interrupt; "
     "r = weakref.ref(o, lambda ref: i(None)); del o"],
    ids=["where an object ends", "in a callback"],
)  # fmt: skip
def test_a_signal_that_python_drops_comes_again(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DROPPED.format(how=how)], capture_output=True, text=True, timeout=50
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
