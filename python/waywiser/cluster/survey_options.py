"""The options of ``waywiser cluster survey`` and ``join``: the list of them."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.measure.option import argument, like, option
from waywiser.measure.survey_options import AnySurveyOptions
from waywiser.words import Bounds

MOST_NODES = 10_000
"""Nodes of a run."""

_DAY_SECONDS = 24 * 3600

_SECONDS = Bounds(1, _DAY_SECONDS, "number of seconds")


@dataclass(frozen=True)
class ClusterSurveyOptions(AnySurveyOptions):
    """Options as they were given; the default for what was not given."""

    output: str | None = option(
        "Write the results into this folder; by default cluster-TIME.", metavar="FOLDER", short="-o"
    )
    resume: bool = option("Go on with the run in the folder; nothing is repeated.", default=False)
    retry: bool = option(
        "The same as --resume, and repeat failed tests, and test lost, stuck or excluded nodes.",
        default=False,
    )
    hostfile: str | None = option(
        "Survey the hosts of this file, one on each line. Without it: those of the Slurm "
        "allocation, or those that join.",
        metavar="FILE",
    )
    launcher: str | None = option(
        "Start ranks of MPI by this launcher, and with hosts the agents too: "
        "'mpiexec -n {ranks} -hosts {hosts} {command}'; also {nodes} and {hostfile}. By default "
        "srun in an allocation of Slurm, else the library's mpiexec.",
        metavar="TEMPLATE",
    )
    transport: str | None = option(
        "How nodes exchange messages: nccl, or mpi. By default nccl if most have GPUs and NCCL.",
        metavar="NAME",
    )
    nodes: int = option(
        "Wait for so many nodes; by default --expect-nodes. Not used with a list of hosts.",
        default=0,
        metavar="N",
        bounds=Bounds(2, MOST_NODES),
    )
    expect_nodes: int = option(
        "End with 1 if fewer nodes than this are reached.",
        default=0,
        metavar="N",
        bounds=Bounds(0, MOST_NODES),
    )
    join_seconds: float | None = option(
        "Wait so long for nodes to join; by default 60.",
        metavar="SECONDS",
        bounds=_SECONDS,
    )
    address: str | None = option(
        "Listen at this address, HOST or HOST:PORT; by default at all, on a free port.",
        metavar="ADDRESS",
    )
    groups: str | None = option(
        "The nodes below each switch, a line 'NAME: HOSTS' for each. By default those of Slurm's "
        "topology, else found from times.",
        metavar="FILE",
    )
    uplink_pairs: int = option(
        "Pairs that the up-links of a group carry at once undisturbed.",
        default=0,
        metavar="N",
        bounds=Bounds(0, MOST_NODES),
    )
    size: str | None = option(
        "Bytes of each message between two rails; by default chosen from the first tests.",
        metavar="BYTES",
        takes_numbers=True,
    )
    test_seconds: float | None = option(
        "End a test that takes longer; by default ten times what others took, and at least 15.",
        metavar="SECONDS",
        bounds=_SECONDS,
    )
    no_check: bool = option("Do not survey each node by itself first.", default=False)
    seed: int = option(
        "Draws the pairs; the same number draws the same.",
        default=0,
        metavar="N",
        bounds=Bounds(0, 2**53 - 1),
    )


@dataclass(frozen=True)
class ClusterJoinOptions:
    """Options as they were given; the default for what was not given."""

    coordinator: str = argument("Where 'waywiser cluster survey' listens.", "HOST:PORT")
    node_name: str | None = option(
        "Join as this node; by default SLURMD_NODENAME, or the name of the host.", metavar="NAME"
    )
    join_seconds: float | None = like(
        ClusterSurveyOptions,
        "join_seconds",
        help="Try so long to reach the coordinator; by default 600.",
    )
    mpicc: str | None = like(AnySurveyOptions, "mpicc")
