"""Surveys of clusters whose processes are killed: agents of nodes that are processes of this host,
the coordinator, workers, the launcher of MPI."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.measure.ranks.watching import PATIENCE_SECONDS, descendants, is_running, wait_until

from waywiser.profile.cluster_folder import read_cluster

WAYWISER = (sys.executable, "-m", "waywiser", "cluster")
JOINING = ("--join-seconds", "60")
ADMITTING = ("--join-seconds", "600")
"""On a busy machine agents take long to start."""
LAUNCHER = re.compile(r"mpiexec|mpirun|prterun")


class KilledSurvey:
    """One folder of results, which one survey after another fills."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        names: tuple[str, ...],
        *options: str,
    ) -> None:
        self.folder = folder
        self.names = names
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.wrong: list[str] = []
        self._environment = {
            **environment,
            "WAYWISER_CLUSTER_TOKEN": "0123456789abcdef" * 2,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "NO_COLOR": "1",
        }
        self._options = options
        self._seen: set[int] = set()
        self._kept: list[str] = []
        self._runs = 0
        self._address = "127.0.0.1:0"
        """That of the first run is kept: agents that wait find the next coordinator there."""
        self._survey: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, agents: tuple[str, ...] | None = None) -> None:
        """Starts the coordinator and agents: those of all nodes, unless some are named."""
        self._runs += 1
        own = ("--address", self._address, "--nodes", str(len(self.names)), "--no-check")
        own += ADMITTING
        self._survey = self._started("survey", "-o", "c", *own, *self._options, *options)
        self.await_text(r"cluster join \S+")
        found = re.search(r"cluster join (\S+)", self.said)
        assert found is not None
        self._address = found[1]
        for name in self.names if agents is None else agents:
            if name not in self.agents or self.agents[name].poll() is not None:
                self.start_agent(name)

    def end_early(self, seconds: float, number: signal.Signals) -> bool:
        """Starts the coordinator without agents, and sends it a signal after so many seconds: the
        same command must work again. Returns whether it had made the folder."""
        self._runs += 1
        own = ("--address", self._address, "--nodes", str(len(self.names)), "--no-check")
        self._survey = self._started("survey", "-o", "c", *own, *ADMITTING, *self._options)
        time.sleep(seconds)
        self.survey.send_signal(number)
        self.survey.wait()
        self.check()
        return (self.folder / "c").exists()

    def start_agent(self, name: str) -> None:
        words = ("join", self._address, *JOINING, "--node-name", name)
        self.agents[name] = self._started(*words)

    @property
    def survey(self) -> subprocess.Popen[bytes]:
        assert self._survey is not None
        return self._survey

    @property
    def said(self) -> str:
        return (self.folder / f"{self._runs}.out").read_text()

    def finished(self) -> list[str]:
        """The lines of finished tests; the last one may be cut by a kill."""
        path = self.folder / "c" / "tests.jsonl"
        text = path.read_text() if path.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def await_text(self, pattern: str) -> None:
        self._await(lambda: re.search(pattern, self.said) is not None, pattern)

    def await_tests(self, more: int) -> None:
        count = len(self.finished()) + more
        self._await(lambda: len(self.finished()) >= count, f"{more} more tests")

    def kill(
        self,
        victim: str,
        name: str = "",
        *,
        waiting: bool = False,
        number: signal.Signals = signal.SIGKILL,
    ) -> bool:
        """Kills, or sends another signal to, the coordinator, an agent, a worker of it, or the
        launcher. False if there is none now. If it is the coordinator, all that it and the agents
        have started must end, unless agents are ``waiting`` for tests: they wait for the next
        coordinator."""
        self._look()
        pids = {
            "coordinator": lambda: [self.survey.pid],
            "agent": lambda: [self.agents[name].pid],
            "worker": lambda: descendants(self.agents[name].pid),
            "launcher": lambda: list(filter(_is_launcher, descendants(self.survey.pid))),
        }[victim]()
        pids = list(filter(is_running, pids))
        if not pids:
            return False
        os.kill(pids[-1], number)
        if waiting:
            self.survey.wait()
            self.check()
        elif victim == "coordinator":
            code = self.end()
            if number != signal.SIGKILL and code != 130:
                self.wrong.append(f"exit code {code} after {number.name}: {self.said}")
        elif victim == "agent":
            self.agents[name].wait()
        return True

    def end(self) -> int:
        """Waits for the end of the survey and of all that belongs to it; checks what is stored."""
        code = self.survey.wait(10 * PATIENCE_SECONDS)
        self._look()
        if not wait_until(lambda: not any(map(is_running, self._seen))):
            left = [_command(pid) for pid in self._seen if is_running(pid)]
            self.wrong.append(f"these are left: {left}")
        for agent in self.agents.values():
            agent.wait()
        self.check()
        return code

    def check(self) -> None:
        """Nothing finished is lost or changed, and no test with times is repeated."""
        found = self.finished()
        if found[: len(self._kept)] != self._kept:
            self.wrong.append("what was finished has changed")
        read = [json.loads(line) for line in found]
        timed = [each["test"] for each in read if not each["failed"]]
        tests = Counter(json.dumps(each, sort_keys=True) for each in timed)
        self.wrong += [f"repeated: {test}" for test, times in tests.items() if times > 1]
        self._kept = found
        if (self.folder / "c" / "plan.json").exists() and (
            damaged := read_cluster(self.folder / "c").damaged
        ):
            self.wrong.append(f"damaged lines: {damaged}")

    def check_leftovers(self) -> None:
        """Checks that a run that ended by itself has left nothing half-written."""
        if left := [str(path) for path in (self.folder / "c").rglob(".*")]:
            self.wrong.append(f"these files are left: {left}")

    def close(self) -> None:
        """Kills all that is left."""
        self._look()
        for process in (*self.agents.values(), *([self._survey] if self._survey else [])):
            process.kill()
            process.wait()
        for pid in filter(is_running, self._seen):
            os.kill(pid, signal.SIGKILL)

    def _look(self) -> None:
        """Remembers what runs now."""
        for process in (self.survey, *self.agents.values()):
            if process.poll() is None:
                self._seen |= {process.pid, *descendants(process.pid)}

    def _await(self, is_so: object, what: str) -> None:
        assert callable(is_so)

        def holds() -> bool:
            self._look()
            return bool(is_so()) or self.survey.poll() is not None

        assert wait_until(holds, seconds=5 * PATIENCE_SECONDS), f"{what}: {self.said}"
        assert is_so(), f"the survey ended before {what}: {self.said}"

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        name = self._runs if words[0] == "survey" else f"{self._runs}.{words[-1]}"
        with open(self.folder / f"{name}.out", "wb") as out:
            return subprocess.Popen(
                [*WAYWISER, *words],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _is_launcher(pid: int) -> bool:
    return LAUNCHER.search(os.path.basename(_command(pid).partition(" ")[0])) is not None
