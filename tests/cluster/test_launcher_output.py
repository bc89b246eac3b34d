"""Which hosts a launcher blames, by what srun, Hydra and PRRTE print."""

from __future__ import annotations

import pytest

from waywiser.cluster.transports.launcher_output import hosts_named_first, hosts_that_failed

NODES = ("n1", "n2", "n3", "n4")

SRUN_DEAD_DAEMON = """\
srun: error: Task launch for StepId=5.1 failed on node n3: Communication connection failure
srun: error: Application launch failed: Communication connection failure
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: error: n4: task 3: Killed
srun: error: n[1-2]: tasks 0-1: Killed
"""

SRUN_NODE_FAILURE = """\
srun: error: n4: task 3: Killed
srun: error: Node failure on n[2-3]
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
"""


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        (SRUN_DEAD_DAEMON, {"n3"}),
        ("starting on n1,n2,n3,n4\nssh: connect to host n2 port 22: No route to host", {"n2"}),
        ("starting on n[1-4]\nsrun: error: n[2-3]: tasks 1-2: Killed", {"n2", "n3"}),
        ("[mpiexec] host n3.: timed out", {"n3"}),
        ("n33 and my-n3 are other hosts", set()),
        ("n[3-1] is no list", set()),
        ("", set()),
    ],
)
def test_the_first_line_that_names_some_hosts_blames_them(text: str, blamed: set[str]) -> None:
    assert set(hosts_named_first(NODES, NODES, text)) == blamed


def test_hosts_that_are_not_missing_are_not_blamed() -> None:
    found = hosts_named_first(("n4", "n2"), NODES, SRUN_DEAD_DAEMON)
    assert found == {"n4": "srun: error: n4: task 3: Killed"}


def test_a_launch_on_one_host_cannot_blame_it_more_than_the_launcher() -> None:
    assert hosts_named_first(("n3",), ("n3",), SRUN_DEAD_DAEMON) == {}


def test_nodes_that_slurm_has_lost_are_known_whatever_ended_first() -> None:
    line = "srun: error: Node failure on n[2-3]"
    assert hosts_that_failed(SRUN_NODE_FAILURE) == {"n2": line, "n3": line}
    assert hosts_that_failed(SRUN_DEAD_DAEMON) == {}
