"""Commands that start ranks, killed at random moments: after the next run nothing is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.measure.ranks.watching import descendants, is_running, wait_until

from waywiser.measure.ranks.leftovers import SHARED_MEMORY, name_of, shared_folder

COMMANDS = {
    "doctor": ("doctor", "--mpi", "--try"),
    "survey": (
        *("survey", "--ranks", "2", "--gpus", "none", "--preset", "quick", "--share"),
        *("--sizes", "8:64KiB:4", "--only", "between ranks"),
    ),
}

LAUNCH = name_of("").rpartition("-")[0]
"""What the names of folders of launches begin with."""

DONE = (0, 1)
"""How a command ends that was not killed: the doctor may find something."""

EARLY_SECONDS = 0.03
"""Half of the kills come so soon after the folders of a launch are there."""


class KilledCommands:
    """Runs commands one after the other in a folder for temporary files of their own."""

    def __init__(self, mpicc: str, environment: Mapping[str, str], seed: int) -> None:
        # Sockets of launchers are there: their paths may have 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="waywiser-test-", dir="/tmp"))
        self._environment = {**environment, "TMPDIR": str(self.folder), "NO_COLOR": "1"}
        self._mpicc = mpicc
        self._random = random.Random(seed)
        self._shared: set[str] = set()

    def kill_one(self, name: str, number: signal.Signals, most_seconds: float) -> None:
        """Starts the command and kills it; returns when its processes have ended."""
        profile = self.folder / "killed.wwp"
        output = ("-o", str(profile)) if name == "survey" else ()
        with self._started(*COMMANDS[name], *output) as process:
            if self._random.random() < 0.5:
                wait_until(lambda: bool(self._launches()) or process.poll() is not None)
                moment = self._random.uniform(0.0, EARLY_SECONDS)
            else:
                moment = self._random.uniform(0.0, most_seconds)
            time.sleep(moment)
            pids = descendants(process.pid)
            self._look()
            process.send_signal(number)
            process.wait()
        assert wait_until(lambda: not any(map(is_running, pids))), f"{name}: {number.name}"
        for file in self.folder.glob("killed.wwp*"):
            file.unlink()

    def run_one(self) -> int:
        """Runs a command to its end; returns its exit code."""
        with self._started(*COMMANDS["doctor"]) as process:
            return process.wait()

    def left(self) -> list[str]:
        """Files and shared memory that are there."""
        self._look()
        shared = (file for file in self._shared if os.path.lexists(file))
        return sorted([*map(str, self.folder.iterdir()), *shared])

    def close(self) -> None:
        self.folder.rmdir()

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "waywiser", *words, "--mpicc", self._mpicc],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _launches(self) -> Iterator[str]:
        return (name for name in os.listdir(self.folder) if name.startswith(LAUNCH))

    def _look(self) -> None:
        """Notes the shared memory of launches of this folder."""
        self._shared |= {shared_folder(name) for name in self._launches()}


def kill_commands(
    kills: int, mpicc: str, environment: Mapping[str, str], seed: int, most_seconds: float
) -> list[str]:
    """Kills ``doctor --mpi`` and ``survey --ranks`` in turn, by SIGKILL and SIGTERM, then runs one
    to its end. Returns what is wrong."""
    before = _shared_memory()
    commands = KilledCommands(mpicc, environment, seed)
    for number in range(kills):
        name = tuple(COMMANDS)[number % len(COMMANDS)]
        by = (signal.SIGKILL, signal.SIGTERM)[number // len(COMMANDS) % 2]
        commands.kill_one(name, by, most_seconds)
    code = commands.run_one()
    wrong = [f"the next run ended with {code}"] if code not in DONE else []
    wait_until(lambda: not commands.left(), seconds=20.0)
    wrong += commands.left()
    found = _shared_memory() - before  # that of launches beside these goes when they end
    wait_until(lambda: not found & _shared_memory())
    wrong += sorted(found & _shared_memory())
    if not wrong:
        commands.close()
    return wrong


def _shared_memory() -> set[str]:
    return {name for name in os.listdir(SHARED_MEMORY) if name.startswith((LAUNCH, "mpich_shm"))}
