"""The command with a lock of its own, so that surveys of this host, and other runs of these tests,
may go on beside it. What other programs use of the CPUs does not count."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waywiser.machine.nvml import MODULE_VARIABLE

Start = Callable[..., "subprocess.Popen[str]"]

SECONDS = 600
"""Only a command that hangs takes so long, on however busy a machine; those of these tests take a
few."""

SCRIPT = """
import math, os, sys
from waywiser import cli
from waywiser.machine import cpu_load
from waywiser.measure import survey_run
from waywiser.measure.probe.sharing import SurveyLock
survey_run.SurveyLock = lambda: SurveyLock(f"waywiser-test-{os.getppid()}")
cpu_load.BUSY_FRACTION = math.inf
sys.exit(cli.run(sys.argv[1:], exits=True))
"""
"""A program for ``python -c``: the lock is of whoever started it."""


@contextmanager
def commands(folder: Path, environment: Mapping[str, str]) -> Iterator[Start]:
    """Starts ``waywiser`` in the folder, any number of times, with further variables by name.

    Those still there at the end are killed: one that a failed test left behind would hold the lock
    and fail all tests after it.
    """
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *arguments],
            cwd=folder,
            env={**environment, "NO_COLOR": "1", **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    try:
        yield start
    finally:
        for process in begun:
            process.kill()
            process.communicate()


def with_nvml(environment: Mapping[str, str], module: str, *folders: Path) -> dict[str, str]:
    """The environment of a process that asks ``module``, in one of the folders, instead of NVML."""
    paths = [*map(str, folders), environment["PYTHONPATH"]]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths), MODULE_VARIABLE: module}


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, its output and its messages."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err
