"""What a command costs: CPU seconds, wall time and memory, of all of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CPUS = 2
"""CPUs of a command, the first ones that this process may use."""

DECIDED = 0, 1, 3
"""What a check ends with if it is done."""

WAIT_SECONDS, LOOK_SECONDS = 0.01, 0.2
"""How often it is seen whether a command has ended, and what memory it takes."""

ROOT = Path(__file__).resolve().parents[1]


class CommandCost(NamedTuple):
    cpu_seconds: float
    wall_seconds: float
    most_mib: float
    """The largest sum over processes, with the share of each in what they share."""
    exit_code: int
    output: str


def command_cost(
    command: Sequence[str | Path], codes: Sequence[int] = (0,), python: Path = ROOT / "python"
) -> CommandCost:
    """Runs a command on `CPUS` CPUs, with the packages of this folder. Raises `RuntimeError` if it
    ends with another code."""
    path = os.pathsep.join(filter(None, (str(python), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    every = os.sched_getaffinity(0)
    began, most, looked = time.monotonic(), 0, 0.0
    with tempfile.TemporaryFile("w+") as output:
        os.sched_setaffinity(0, sorted(every)[:CPUS])  # a child inherits it
        try:
            process = subprocess.Popen(list(map(str, command)), env=environment, stdout=output)
        finally:
            os.sched_setaffinity(0, every)
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - looked > LOOK_SECONDS:
                most, looked = max(most, _memory(process.pid)), time.monotonic()
            time.sleep(WAIT_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        output.seek(0)
        text = output.read()
    if process.returncode not in codes:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return CommandCost(cpu, wall, most / 2**20, process.returncode, text)


def _memory(pid: int) -> int:
    """Proportional bytes of a process and all below it."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += _memory(int(child))
    except OSError:
        pass
    return total


def waywiser_command(*words: str | Path) -> list[str]:
    """The command line of this Waywiser."""
    return [sys.executable, "-m", "waywiser", *map(str, words)]
