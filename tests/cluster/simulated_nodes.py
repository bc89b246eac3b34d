"""Simulated nodes of a cluster: network namespaces of this host, whose interfaces are slow enough
that a planted fault stands out on a busy machine.

They need no root. Nothing in them has another address than 10.77.0.x and loopback, and no
interface of the host is reachable from them. `simulated_nodes.sh` makes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_suffix(".sh")
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
"""``ip`` and ``tc`` are not on the path of every user."""
TOOLS = ("unshare", "nsenter", "setpriv", "ip", "tc")
NAMESPACES = ("--net", "--mount", "--uts", "--ipc", "--pid")
USER = ("--user", "--map-root-user")
RATE = "100mbit"
BURST = "16kb"
"""With a larger one, short messages pass a slow interface at full speed."""
UNLIMITED = "10gbit quantum 3000"  # tc warns of so high a rate without a quantum
SECONDS = 60.0
"""Only what hangs takes so long."""


@cache
def _unshare() -> tuple[str, ...] | str:
    """The command that starts the first process of the namespaces, or why there can be none. Root
    needs no user namespace, where it is what it says; in a container it may need one."""
    absent = [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]
    if absent:
        return f"there is no {', '.join(absent)} here (packages util-linux and iproute2)"
    kept = (*NAMESPACES, "--fork", "--kill-child", "--mount-proc")
    ways = [("unshare", *kept), ("unshare", *USER, *kept)]
    trial = f"ip link add core type bridge && tc {_tbf('core', RATE)}"
    said = ""
    for way in ways if os.geteuid() == 0 else ways[1:]:
        tried = subprocess.run(
            [*way, "sh", "-c", trial], env=_environment({}), capture_output=True, text=True
        )
        if tried.returncode == 0:
            return way
        said = tried.stderr.strip().splitlines()[-1] if tried.stderr.strip() else "no reason given"
    return (
        f"namespaces cannot be made here: {said} (where AppArmor forbids it, "
        "'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0' allows it)"
    )


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PATH": PATH, **more}


def _first_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _namespace_of(pid: str | int) -> str:
    """Which process namespace a process is in; empty if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


_IF_STARTER_LIVES = ("sh", "-c", '[ "$PPID" = 0 ] && exec "$@"', "sh")
"""Runs the rest, unless the process that started it has ended before its end could be noticed. It
is outside of the node, so that its number is 0 there; 1 is the node's own first process."""


class SimulatedNodes:
    """The nodes of one world, ``n1`` to ``nN``, and ``head``, which has no fault."""

    head = "head"

    def __init__(self, folder: Path, groups: Mapping[str, str], rate: str, world: int) -> None:
        self.names = tuple(groups)
        self.rate = rate
        self.remote = folder / "remote"
        """Takes a host and a command, as ssh does; only for processes of the head."""
        self._groups = groups
        self._is_healthy = True
        self._started: list[subprocess.Popen[str]] = []
        self._first = {self.head: world}
        for name in self.names:
            parent = int((folder / f"{name}.parent").read_text())
            self._first[name] = _first_child(_seen_from_here(parent, world))
        self._namespaces = {name: _namespace_of(pid) for name, pid in self._first.items()}
        self.is_user = os.readlink("/proc/self/ns/user") != os.readlink(f"/proc/{world}/ns/user")
        """Whether they have a user namespace: what is root in them is whoever runs the tests."""

    def address(self, name: str) -> str:
        return f"10.77.0.{254 if name == self.head else self.names.index(name) + 1}"

    def start(
        self,
        name: str,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Starts a command on a node, with the environment of this process and ``env``. To kill
        the process that is returned is to kill the command (SIGKILL); see `pid_of` for another
        signal."""
        user = ("--user", "--preserve-credentials") if self.is_user else ()
        where = ("--target", str(self._first[name]), *user, *NAMESPACES)
        dies_with = ("setpriv", "--pdeathsig", "KILL", *_IF_STARTER_LIVES)
        inside = (*dies_with, "env", "-C", str(cwd or Path.cwd()))
        process = subprocess.Popen(
            ["nsenter", *where, "--", *inside, *map(str, command)],
            env=_environment(env or {}),
            text=True,
            **{"stdin": subprocess.DEVNULL, **options},
        )
        self._started = [each for each in self._started if each.returncode is None]
        self._started.append(process)
        return process

    def end_started(self) -> None:
        """Kills what `start` has started, if nobody has waited for its end, as a test that fails
        does not; and closes its streams."""
        started, self._started = self._started, []
        for process in started:
            if process.returncode is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait()

    def run(self, name: str, *command: str | Path, **options: Any) -> str:
        """What a command on a node says. Raises `AssertionError` with its messages if it fails."""
        with self.start(
            name, *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        ) as process:
            out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{name}: {command}: {err}"
        return out

    @staticmethod
    def pid_of(process: subprocess.Popen[str]) -> int:
        """The command itself, which `start` has started; here, not in its node."""
        return _first_child(process.pid)

    def processes(self, *names: str) -> list[int]:
        """What runs on these nodes (all of them, and the head), without what keeps the nodes."""
        namespaces = {self._namespaces[name]: name for name in names or self._first}
        found = []
        for each in filter(str.isdigit, os.listdir("/proc")):
            name = namespaces.get(_namespace_of(each))
            if name is not None and not self._keeps(int(each), name):
                found.append(int(each))
        return found

    def commands(self) -> list[str]:
        """The command of each of `processes`, with its parent and its state."""
        found = []
        for pid in self.processes():
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
                state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
                found.append(f"{pid} {state} of {parent}: {command}")
        return found

    def _keeps(self, pid: int, name: str) -> bool:
        """Whether it is the first process of a node, or a child that the node waits with."""
        if pid in self._first.values():
            return True
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return True
        return command[:2] == [b"sleep", b"infinity"] or command[:1] in ([b"unshare"], [b""])

    def limit(self, name: str, *, sending: str = "", receiving: str = "") -> None:
        """Makes a node slow, in one direction or in both: ``50mbit``."""
        if sending:
            self._tc(name, _tbf("eth0", sending))
        if receiving:
            self._tc(self.head, _tbf(f"v-{name}", receiving))

    def limit_pair(self, sender: str, receiver: str, rate: str) -> None:
        """Makes a node slow to one other. What limits it to all others is of the same kind as
        before: another kind can be a few percent slower."""
        self._tc(
            sender,
            "qdisc replace dev eth0 root handle 1: htb default 1",
            f"class add dev eth0 parent 1: classid 1:1 htb rate {UNLIMITED}",
            f"class add dev eth0 parent 1: classid 1:2 htb rate {UNLIMITED}",
            _tbf("eth0", self.rate, "parent 1:1"),
            _tbf("eth0", rate, "parent 1:2"),
            "filter add dev eth0 protocol ip parent 1: u32 match ip dst "
            f"{self.address(receiver)} flowid 1:2",
        )

    def limit_group(self, group: str, rate: str) -> None:
        """Makes the up-link of a group slow, in both directions."""
        self._tc(self.head, _tbf(f"g-{group}-up", rate), _tbf(f"g-{group}-down", rate))

    def slow_down(self, rate: str) -> None:
        """Gives all interfaces another rate, and takes all faults back."""
        self.rate, self._is_healthy = rate, False
        self.heal()

    def cut(self, name: str) -> None:
        """Pulls the cable of a node."""
        self._is_healthy = False
        self.run(self.head, "ip", "link", "set", f"v-{name}", "down")

    def heal(self) -> None:
        """Takes all faults back."""
        if self._is_healthy:
            return
        head = [_tbf(f"v-{name}", self.rate) for name in self.names]
        for group in dict.fromkeys(self._groups.values()):
            head += [f"qdisc replace dev g-{group}-{end} root noqueue" for end in ("up", "down")]
        self._tc(self.head, *head)
        for name in self.names:
            self.run(self.head, "ip", "link", "set", f"v-{name}", "up")
            self._tc(name, _tbf("eth0", self.rate))
        self._is_healthy = True

    def _tc(self, name: str, *lines: str) -> None:
        self._is_healthy = False
        with self.start(name, "tc", "-batch", "-", stdin=subprocess.PIPE) as process:
            process.communicate("".join(f"{line}\n" for line in lines), timeout=SECONDS)
        assert process.returncode == 0, f"{name}: tc: {lines}"


def _tbf(device: str, rate: str, parent: str = "root") -> str:
    return f"qdisc replace dev {device} {parent} tbf rate {rate} burst {BURST} latency 60ms"


def _seen_from_here(pid: int, world: int) -> int:
    """A process that its namespace, whose first process is ``world``, calls ``pid``."""
    for each in (world, *_below(world)):
        status = Path(f"/proc/{each}/status").read_text()
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
        if _namespace_of(each) == _namespace_of(world) and int(numbers[-1]) == pid:
            return each
    raise AssertionError(f"there is no process {pid} in the namespace of {world}")


def _below(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def simulated_nodes(
    folder: Path, groups: Sequence[str] = ("a", "a", "b", "b"), rate: str = RATE
) -> Iterator[SimulatedNodes]:
    """Makes one node per entry, which names its group (8 letters at most), and ends them with all
    that runs on them. Skips the test, with the reason, where namespaces cannot be made; fails it
    there in CI."""
    unshare = _unshare()
    if isinstance(unshare, str):
        pytest.fail(unshare) if os.environ.get("CI") else pytest.skip(unshare)
    named = {f"n{number}": group for number, group in enumerate(groups, 1)}
    nodes = [f"{name}={group}" for name, group in named.items()]
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [*unshare, "bash", str(SCRIPT), str(folder), rate, *nodes],
        env=_environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n", "the simulated nodes could not be made"
        nodes = SimulatedNodes(folder, named, rate, _first_child(process.pid))
        try:
            yield nodes
        finally:
            nodes.end_started()
    finally:
        process.stdin.close()
        process.kill()
        process.stdout.close()
        process.wait()
