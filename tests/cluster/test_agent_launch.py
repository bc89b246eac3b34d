"""Agents started by a launcher, which may fail for some nodes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.measure.ranks.watching import is_running, wait_until

from waywiser.cluster.surveys.agent_launch import (
    AgentLaunch,
    LauncherError,
    from_template,
    join_command,
)

TOKEN = "0123456789abcdef"

LAUNCHER = """
import os, sys, time
from pathlib import Path
folder, hosts, what = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]
number = len(list(folder.glob("launch-*")))
token = os.environ["WAYWISER_CLUSTER_TOKEN"]
(folder / f"launch-{number}").write_text(f"{token} {','.join(hosts)}")
down = [host for host in hosts if (folder / f"down-{host}").exists()]
if down and what == "names":
    sys.exit(f"error: {down[0]}: cannot be reached")
if down and what == "agents":
    print("a:7000: Connection refused; trying again")
    sys.exit(f"error: {down[0]}: cannot be reached")
if down and what == "silent":
    sys.exit(1)
if (folder / "ends").exists():
    (folder / "ends").unlink()
    sys.exit(1)
for host in hosts:
    (folder / f"joined-{host}").write_text(str(os.getpid()))
print("agents run", flush=True)
time.sleep(600)
"""
"""Starts all agents or none, as srun and mpiexec do."""


class Launching:
    """A launcher and what it did."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self.folder = folder
        self.lines: list[str] = []
        self.given_up: dict[str, str] = {}
        (folder / "launcher.py").write_text(LAUNCHER)

    def start(
        self, *hosts: str, what: str = "names", had_joined: Collection[str] = ()
    ) -> AgentLaunch:
        launcher = f"{sys.executable} {self.folder}/launcher.py {self.folder} {{hosts}} {what}"

        def missing() -> list[str]:
            return [host for host in hosts if not (self.folder / f"joined-{host}").exists()]

        made = AgentLaunch(
            from_template(f"{launcher} {{command}}", ["agent"], str(self.folder)),
            hosts,
            TOKEN,
            address="a:7000",
            missing=missing,
            has_joined=lambda host: host in had_joined,
            give_up=self.given_up.__setitem__,
            log=self.lines.append,
        )
        return self._stack.enter_context(made)

    def joined(self) -> set[str]:
        return {path.name.removeprefix("joined-") for path in self.folder.glob("joined-*")}

    def launches(self) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.glob("launch-*"))]


@pytest.fixture
def launching(tmp_path: Path) -> Iterator[Launching]:
    with ExitStack() as stack:
        yield Launching(stack, tmp_path)


def test_agents_get_the_token_by_the_environment(launching: Launching) -> None:
    launch = launching.start("a", "b")
    assert wait_until(lambda: launching.joined() == {"a", "b"})
    assert launching.launches() == [f"{TOKEN} a,b"]
    assert wait_until(lambda: launch.printed() == "agents run")
    assert TOKEN not in " ".join(launching.lines)


def test_a_launcher_ends_with_the_run(launching: Launching) -> None:
    launch = launching.start("a")
    assert wait_until(lambda: launching.joined() == {"a"})
    pid = int((launching.folder / "joined-a").read_text())
    launch.close()
    assert wait_until(lambda: not is_running(pid))


def test_agents_of_a_launcher_that_has_ended_end_by_themselves() -> None:
    """They are on this host, and print to a file."""
    command = ["sh", "-c", "sleep 600 > /dev/null 2>&1 & echo $!"]
    launch = AgentLaunch(lambda hosts: command, ["a"], TOKEN, missing=list)
    assert wait_until(lambda: not launch.is_following)
    agent = int(launch.printed())
    launch.close()
    assert is_running(agent)
    os.kill(agent, signal.SIGKILL)


def test_a_host_that_the_launcher_names_is_left_out_of_the_next_try(launching: Launching) -> None:
    (launching.folder / "down-b").touch()
    launching.start("a", "b", "c")
    assert wait_until(lambda: launching.joined() == {"a", "c"})
    assert launching.launches() == [f"{TOKEN} a,b,c", f"{TOKEN} a,c"]
    reason = "the launcher started no agent there: error: b: cannot be reached"
    assert launching.given_up == {"b": reason}


def test_a_host_that_is_missing_twice_is_left_out_if_others_have_joined(
    launching: Launching,
) -> None:
    """As of srun, which ends the agents of all nodes if one of them fails."""
    (launching.folder / "down-b").touch()
    launching.start("a", "b", "c", what="silent", had_joined={"a", "c"})
    assert wait_until(lambda: launching.joined() == {"a", "c"})
    assert launching.launches() == [f"{TOKEN} a,b,c"] * 2 + [f"{TOKEN} a,c"]
    assert list(launching.given_up) == ["b"]


def test_a_host_that_had_not_joined_when_the_launcher_ended_is_started_again(
    launching: Launching,
) -> None:
    """It is well, and was only slower than the others."""
    (launching.folder / "ends").touch()
    launching.start("a", "b", "c", what="silent", had_joined={"a", "c"})
    assert wait_until(lambda: launching.joined() == {"a", "b", "c"})
    assert launching.given_up == {}


def test_what_agents_print_about_the_coordinator_blames_no_host(launching: Launching) -> None:
    """It runs on the first host, as in a batch job of Slurm."""
    (launching.folder / "down-b").touch()
    launching.start("a", "b", "c", what="agents")
    assert wait_until(lambda: launching.joined() == {"a", "c"})
    assert list(launching.given_up) == ["b"]


def test_a_launcher_is_started_no_more_after_all_may_have_joined(launching: Launching) -> None:
    (launching.folder / "down-b").touch()
    launch = launching.start("a", "b", what="silent")
    launch.start_no_more()
    assert wait_until(lambda: not launch.is_following)
    assert len(launching.launches()) == 1


def test_a_launcher_that_names_nobody_is_tried_again(launching: Launching) -> None:
    (launching.folder / "down-b").touch()
    launching.start("a", "b", what="silent")
    assert wait_until(lambda: len(launching.launches()) == 2)
    (launching.folder / "down-b").unlink()
    assert wait_until(lambda: launching.joined() == {"a", "b"})


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("srun {ranks} {what} {command}", "the launcher cannot be used: 'what'"),
        ("srun 'x {command}", "the launcher cannot be used"),
        ("/missing/srun {command}", "the launcher cannot be run: No such file"),
    ],
)
def test_launchers_that_are_none(template: str, says: str, tmp_path: Path) -> None:
    launcher = from_template(template, ["agent"], str(tmp_path))
    with pytest.raises(LauncherError, match=says):
        AgentLaunch(launcher, ["a"], TOKEN, missing=list)


def test_the_words_of_a_launcher(tmp_path: Path) -> None:
    template = "run -n {ranks} -N {nodes} -H {hosts} -f {hostfile} {command}"
    launcher = from_template(template, ["python", "a file"], str(tmp_path))
    words = launcher(["n1", "n2"])
    assert words[:8] == ["run", "-n", "2", "-N", "2", "-H", "n1,n2", "-f"]
    assert Path(words[8]).read_text() == "n1\nn2\n"
    assert words[9:] == ["python", "a file"]


def test_the_command_of_an_agent() -> None:
    words = join_command("head:7000", 90.0)
    assert words == [
        *(sys.executable, "-m", "waywiser", "cluster", "join", "head:7000"),
        *("--join-seconds", "90"),
    ]
