"""Measures what a killed process costs a survey of ranks, and what it leaves behind.

    python benchmarks/rank_kills.py [--mpicc PATH] [--kills 30] [--seed 1] [--json FILE]

Surveys of two ranks run one after the other. In turn a rank is killed, a rank is stopped, the
launcher is killed, and the surveying command itself, each at a random moment; a survey whose
command was killed is resumed. After each, what was finished must still be there, unchanged, and
must not be measured again, and each failure must name a rank or the launcher. In the end no
process, shared memory or temporary file of MPI may be left. The exit status is 1 if anything is
wrong, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from tests.measure.ranks.watching import descendants, is_running  # noqa: E402

from waywiser.measure.ranks.leftovers import SHARED_MEMORY  # noqa: E402
from waywiser.measure.ranks.mpi_library import find_library  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.words.records import Visit  # noqa: E402

VICTIMS = ("rank", "stopped rank", "launcher", "command")
SECONDS = 900.0
"""Only what hangs takes so long."""

SURVEY = (
    *("--ranks", "2", "--gpus", "none", "--preset", "quick", "--share"),
    *("--sizes", "8:64KiB:4", "--only", "between ranks"),
)
"""Some 50 visits of which the longest takes a second."""


def wait(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {SECONDS:.0f} s")
        time.sleep(0.01)


def visits(file: Path) -> list[Visit]:
    if not file.exists():
        return []
    with Profile.open(file) as profile:
        return list(profile.visits())


def words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def left() -> set[str]:
    names = (SHARED_MEMORY, "/tmp/")
    return {f"{folder}{name}" for folder in names for name in os.listdir(folder)}


class Trial:
    """One survey, and what is done to it."""

    def __init__(self, file: Path, mpicc: str) -> None:
        self.file = file
        self.pids: set[int] = set()
        self.wrong: list[str] = []
        self._kept: list[Visit] = []
        self._process = self._start(*SURVEY, "--mpicc", mpicc)

    def _start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "waywiser", "survey", *options, "-o", str(self.file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    @property
    def failed(self) -> list[str]:
        """The reasons of the visits that failed."""
        return [visit.failure.reason for visit in visits(self.file) if visit.failure]

    def await_visit(self) -> None:
        """Returns when one more is stored, or the survey is over."""
        count = len(visits(self.file))
        wait(lambda: self.is_over or len(visits(self.file)) > count, "a visit")

    def await_failure(self) -> None:
        count = len(self.failed)
        wait(lambda: self.is_over or len(self.failed) > count, "a failure")

    def check(self) -> None:
        """Whether all that was finished before is there as it was."""
        found = visits(self.file)
        if found[: len(self._kept)] != self._kept:
            self.wrong.append("what was finished has changed")
        if len({(visit.workload.identity, visit.block) for visit in found}) != len(found):
            self.wrong.append("something was measured twice")
        self._kept = found

    def end(self) -> None:
        _, said = self._process.communicate()
        self.check()
        if self._process.returncode:
            self.wrong.append(f"the survey ended with {said.splitlines()[-1:]}")
        named = ("rank ", "the launcher was killed")
        self.wrong += [why for why in self.failed if not why.startswith(named)]
        wait(lambda: not any(map(is_running, self.pids)), "processes of a survey")

    def members(self) -> tuple[list[int], list[int]]:
        """The launcher and the ranks that run now."""
        launchers, ranks = [], []
        for pid in descendants(self._process.pid):
            self.pids.add(pid)
            command = words(pid)
            if "waywiser.measure.ranks.rank_worker" in command[:3]:
                ranks.append(pid)
            elif os.path.basename(command[0]).startswith(("mpiexec", "mpirun", "prterun")):
                launchers.append(pid)
        return launchers, ranks

    def strike(self, victim: str, rng: random.Random) -> bool:
        """Whether there was one to strike."""
        launchers, ranks = self.members()
        if len(ranks) < 2 or not launchers or self.is_over:
            return False
        if victim == "command":
            self._process.kill()
            self._process.communicate()
            wait(lambda: not any(map(is_running, self.pids)), "processes of a killed command")
            self.check()
            self._process = self._start("--resume")
        elif victim == "launcher":
            os.kill(launchers[0], signal.SIGKILL)
        else:
            os.kill(
                rng.choice(ranks), signal.SIGSTOP if victim == "stopped rank" else signal.SIGKILL
            )
            if victim == "stopped rank":
                self.await_failure()
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpicc", default="", help="by default that of 'waywiser doctor --mpi'")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    library, rng = find_library(options.mpicc), random.Random(options.seed)
    before, struck, trials = left(), Counter[str](), list[Trial]()
    with tempfile.TemporaryDirectory() as folder:
        while struck.total() < options.kills:
            trials.append(Trial(Path(folder, f"{len(trials)}.wwp"), library.mpicc.path))
            while not trials[-1].is_over:
                trials[-1].await_visit()
                time.sleep(rng.uniform(0.0, 1.0))
                trials[-1].check()
                victim = VICTIMS[struck.total() % len(VICTIMS)]
                if struck.total() < options.kills and trials[-1].strike(victim, rng):
                    struck[victim] += 1
            trials[-1].end()
        failures = Counter(why.split(",")[0] for trial in trials for why in trial.failed)
        measured = sum(len(visits(trial.file)) for trial in trials)
    after = sorted(name for name in left() - before if re.search("mpi|ranks|prte|sm_seg", name))
    wrong = [each for trial in trials for each in trial.wrong]
    print(f"{library.name} {library.version}: {struck.total()} kills in {len(trials)} surveys")
    print(
        f"{measured} visits, of which failed {failures.total()}; left behind: {after or 'nothing'}"
    )
    for what, number in (*struck.items(), *failures.most_common(), *Counter(wrong).items()):
        print(f"  {number:3} {what}")
    if options.json:
        document = {
            "library": f"{library.name} {library.version}", "kills": struck, "visits": measured,
            "surveys": len(trials), "failures": failures, "wrong": wrong, "left": after,
        }  # fmt: skip
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return int(bool(wrong or after))


if __name__ == "__main__":
    sys.exit(main())
