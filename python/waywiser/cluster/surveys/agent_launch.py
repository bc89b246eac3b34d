"""Starts one agent on each node by the site's launcher: ``srun``, or one that is described."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Sequence

from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.transports.launcher_output import hosts_named_first
from waywiser.measure.ranks.outer_launcher import without_outer_launcher
from waywiser.measure.supervise import NEVER, ChildProcess, Deadline, Team
from waywiser.measure.supervise.process import Log
from waywiser.words import Closeable, WaywiserError

SLURM = (
    "srun --overlap --nodes={nodes} --ntasks={ranks} --ntasks-per-node=1 --nodelist={hosts} "
    "--cpu-bind=none --kill-on-bad-exit=0 --no-kill --wait=0 {command}"
)
"""In an allocation; without ``--overlap`` a later step waits for that of the agents."""

_LEAVE_SECONDS = 3.0
"""Seconds for a launcher to follow its agents."""

_STOP_SECONDS = 1.0
"""Seconds for a launcher to end after SIGTERM."""

_AGAIN_SECONDS = 1.0
"""Seconds before a launcher that ended is started again for the nodes that are missing."""

_MOST_LAUNCHES = 5


class LauncherError(WaywiserError):
    """A launcher that cannot start agents."""


Launcher = Callable[[Sequence[str]], Sequence[str]]
"""The words that start an agent on each of these hosts."""


def join_command(address: str, seconds: float) -> list[str]:
    """The command of an agent."""
    own = [sys.executable, "-m", "waywiser", "cluster", "join", address]
    return [*own, "--join-seconds", f"{max(seconds, 1.0):g}"]


class AgentLauncher(ChildProcess):
    """It follows its agents. Those of one that has ended end by themselves."""

    name = "launcher"
    takes_along = False

    def close(self) -> None:
        """Ends the launcher, and by it the agents that are left."""
        self.stop(_STOP_SECONDS)
        super().close()


class AgentLaunch(Closeable):
    """The launcher and what it prints. If it ends while nodes are missing, as ``srun`` does when
    it cannot reach one, it is started again without those that it names."""

    def __init__(
        self,
        launcher: Launcher,
        hosts: Sequence[str],
        token: str,
        *,
        address: str = "",
        missing: Callable[[], Collection[str]],
        has_joined: Callable[[str], bool] = lambda host: False,
        give_up: Callable[[str, str], None] = lambda host, reason: None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        """``address`` is that of the coordinator: agents print it, and its host may be one of the
        hosts. ``missing`` returns the hosts whose agents are not connected, ``has_joined`` whether
        one was. ``give_up`` is called for a host on which none is started any more, with the
        reason. Raises `LauncherError`."""
        self._launcher = launcher
        self._address = address
        self._missing = missing
        self._has_joined = has_joined
        self._give_up = give_up
        self._log = log
        self._environment = {**without_outer_launcher(os.environ), TOKEN_VARIABLE: token}
        self._printed = ""
        self._missed: set[str] = set()
        """The hosts that were missing when the launch before ended."""
        self._ends = threading.Event()
        self._process = self._started(hosts)
        self._thread = threading.Thread(target=self._follow, args=(hosts,), daemon=True)
        self._thread.start()

    def printed(self) -> str:
        """The last lines of launcher and agents, as one line."""
        return self._process.printed() or self._printed

    @property
    def is_following(self) -> bool:
        """Whether a launcher runs, or may be started again."""
        return self._thread.is_alive()

    def start_no_more(self) -> None:
        """From now on a launcher that ends is not started again."""
        self._ends.set()

    def close(self) -> None:
        """Ends the launcher, and by it the agents that are left."""
        self.start_no_more()
        Team([self._process]).end(Deadline(_LEAVE_SECONDS))
        self._thread.join(_LEAVE_SECONDS)

    def _started(self, hosts: Sequence[str]) -> AgentLauncher:
        words = self._launcher(hosts)
        try:
            return AgentLauncher(words, self._environment)
        except OSError as error:
            raise LauncherError(
                f"the launcher cannot be run: {error.strerror}",
                where=words[0] if words else "",
                remedy="name another with --launcher",
            ) from error

    def _follow(self, hosts: Sequence[str]) -> None:
        """Reads what is printed, until all is over."""
        left = list(hosts)
        for number in range(1, _MOST_LAUNCHES + 1):
            self._process.await_silence(NEVER)
            self._process.await_end(NEVER)
            printed = self._process.log
            if self._ends.wait(_AGAIN_SECONDS):
                return
            left = self._to_start(left, printed)
            if not left or self._ends.is_set():
                return
            if number == _MOST_LAUNCHES:
                for host in left:
                    self._give_up(host, f"the launcher ended: {printed.tail()}")
                return
            self._log(f"the launcher of the agents ended; starting {len(left)} of them again")
            self._printed = self.printed()
            self._process.close()
            try:
                self._process = self._started(left)
            except LauncherError as error:
                self._log(str(error))
                return

    def _to_start(self, hosts: Sequence[str], printed: Log) -> list[str]:
        """The missing hosts, without those to blame: those that the launcher named first, else
        those that never joined and are missing after two launches, unless all are such. After one
        launch, a host may be missing only because the launcher ended before it joined."""
        missing = set(self._missing())
        absent = [host for host in hosts if host in missing]
        blamed = hosts_named_first(absent, hosts, _without(self._address, printed.text))
        twice = [host for host in absent if host in self._missed and not self._has_joined(host)]
        if not blamed and len(twice) < len(absent):
            blamed = dict.fromkeys(twice, printed.tail())
        self._missed = set(absent)
        for host, line in sorted(blamed.items()):
            self._give_up(host, f"the launcher started no agent there: {line}")
        return [host for host in absent if host not in blamed]


def _without(word: str, text: str) -> str:
    """The lines that do not have the word."""
    return "\n".join(line for line in text.splitlines() if not word or word not in line)


def from_template(template: str, command: Sequence[str], folder: str) -> Launcher:
    """A launcher by a template as ``--launcher`` takes it. Files of hosts are in the folder."""

    def launcher(hosts: Sequence[str]) -> list[str]:
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".hosts", delete=False) as file:
            file.writelines(f"{host}\n" for host in hosts)
        values = {
            **dict.fromkeys(("nodes", "ranks"), str(len(hosts))),
            "hosts": ",".join(hosts),
            "hostfile": file.name,
            "command": shlex.join(command),
        }
        try:
            return shlex.split(template.format_map(values))
        except (KeyError, ValueError, IndexError) as error:
            raise LauncherError(
                f"the launcher cannot be used: {error}",
                where=template,
                remedy="write --launcher 'mpiexec -n {ranks} -hosts {hosts} {command}'",
            ) from error

    return launcher
