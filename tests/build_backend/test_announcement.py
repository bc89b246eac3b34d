"""What `pip install .` shows on a terminal before it compiles for minutes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tree import ROOT


@pytest.mark.parametrize(
    ("settings", "shows"),
    [
        ("{}", "C++ and CUDA, by default for the GPUs of this machine"),
        ("{'cmake.define.WAYWISER_CUDA': 'OFF'}", "C++ for the host alone"),
    ],
)
def test_the_terminal_shows_what_is_compiled(settings: str, shows: str) -> None:
    pytest.importorskip("scikit_build_core")
    code = (
        "import os, fcntl, termios; os.setsid(); "
        "terminal = os.open(os.environ['TERMINAL'], os.O_RDWR); "
        "import waywiser_build as b; "
        f"b._core.build_wheel = lambda *_: 'made.whl'; print(b.build_wheel('.', {settings}))"
    )
    controller, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "build_backend"),
            "TERMINAL": os.ttyname(terminal),
        },
        capture_output=True,  # as pip does
        text=True,
        check=True,
    )
    os.close(terminal)
    shown = os.read(controller, 4096).decode()
    os.close(controller)
    assert done.stdout == "made.whl\n"
    assert shown.count("waywiser: compiling") == 1
    assert shows in shown and "pip install -v" in shown


def test_without_a_terminal_nothing_is_shown() -> None:
    pytest.importorskip("scikit_build_core")
    code = (
        "import waywiser_build as b; b._core.build_wheel = lambda *_: 'made.whl'; "
        "print(b.build_wheel('.'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "build_backend")},
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    assert (done.stdout, done.stderr) == ("made.whl\n", "")
