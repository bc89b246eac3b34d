"""What a survey of a cluster needs on the machine of its coordinator."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from waywiser.cluster.connection.run_certificate import RunCertificate
from waywiser.cluster.connection.token_proof import new_run_token
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys.agent_launch import LauncherError, from_template
from waywiser.cluster.surveys.survey_hosts import SurveyHosts, survey_hosts
from waywiser.measure.ranks.launch_hosts import LaunchHosts
from waywiser.measure.ranks.launch_start import require_room
from waywiser.measure.ranks.launcher import launch_command
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.words import TemporaryFolder, WaywiserError

WITHOUT_NCCL = "mpi"
"""The transport if most nodes have no GPU with NCCL."""

OWN_DESCRIPTORS = 64
"""Open files of a coordinator besides the connections of its nodes."""

_HOST = "localhost"


class NeedError(WaywiserError):
    """This machine lacks what a survey needs."""


class MissingNeeds(NamedTuple):
    """What this machine lacks, an error with its remedy each."""

    always: tuple[str, ...]
    for_mpi: tuple[str, ...]
    """What it lacks besides if most nodes have no GPU with NCCL, which is known when they have
    joined; empty if the transport is known."""


def all_missing(options: ClusterSurveyOptions, hosts: SurveyHosts) -> MissingNeeds:
    """All that a survey with these options lacks here."""
    always = tuple(map(str, missing_needs(options, hosts, options.transport or "")))
    if options.transport:
        return MissingNeeds(always, ())
    for_mpi = map(str, missing_needs(options, hosts, WITHOUT_NCCL))
    return MissingNeeds(always, tuple(line for line in for_mpi if line not in always))


def missing_here(mpicc: str = "", launcher: str = "") -> MissingNeeds:
    """All that a survey lacks here: of the Slurm allocation, or of nodes that will join."""
    options = ClusterSurveyOptions(mpicc=mpicc or None, launcher=launcher or None)
    try:
        hosts = survey_hosts(options)
    except WaywiserError:  # no hosts are known
        hosts = SurveyHosts()
    return all_missing(options, hosts)


def needs_text(always: Iterable[str], for_mpi: Iterable[str]) -> Iterator[str]:
    """A line for each thing that is missing."""
    yield from (f"missing: {line}" for line in always)
    yield from (f"missing if most nodes have no GPU with NCCL: {line}" for line in for_mpi)


def require_needs(options: ClusterSurveyOptions, hosts: SurveyHosts, transport: str) -> None:
    """Raises the first error of `missing_needs`."""
    for error in missing_needs(options, hosts, transport):
        raise error


def missing_needs(
    options: ClusterSurveyOptions, hosts: SurveyHosts, transport: str
) -> Iterator[WaywiserError]:
    """Yields an error with its remedy for each thing that is missing: open files, a token
    and a certificate that can be used, a folder for temporary files, the launcher of agents, and
    for ``mpi`` the compiler, the library and the launcher of ranks. ``transport`` is empty if it
    is not known yet."""
    checks: list[Callable[[str], None]] = [
        partial(_require_descriptors, options, hosts),
        _require_token,
        _require_certificate,
    ]
    if hosts.template:
        checks.append(partial(_require_agent_launcher, hosts.template))
    if transport == WITHOUT_NCCL:
        checks.append(partial(_require_mpi, options))
    try:
        folder = TemporaryFolder("waywiser-needs-")
    except OSError as error:
        yield NeedError(
            f"no temporary folder can be made: {error.strerror}",
            remedy="name a folder that can be written to with TMPDIR",
        )
        return
    with folder:
        for check in checks:
            try:
                check(str(folder.path))
            except WaywiserError as error:
                yield error


def _require_descriptors(options: ClusterSurveyOptions, hosts: SurveyHosts, folder: str) -> None:
    nodes = len(hosts.names) or options.nodes or options.expect_nodes
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and nodes + OWN_DESCRIPTORS > most:
        raise NeedError(
            f"this process may open {most} files, and {nodes} nodes take {nodes + OWN_DESCRIPTORS}",
            remedy=f"raise the limit: ulimit -Hn {nodes + OWN_DESCRIPTORS}",
        )


def _require_token(folder: str) -> None:
    new_run_token()


def _require_certificate(folder: str) -> None:
    RunCertificate()


def _require_agent_launcher(template: str, folder: str) -> None:
    _require_program(from_template(template, ["waywiser"], folder)([_HOST]))


def _require_mpi(options: ClusterSurveyOptions, folder: str) -> None:
    """The ``mpicc`` that compiles the bridge, the library that it loads, and what starts ranks."""
    library = find_library(options.mpicc or "")
    require_room(library, 1)
    if options.launcher:
        host = LaunchHosts(_HOST, (_HOST,), (1,))
        _require_program(launch_command(library, ["waywiser"], 1, options.launcher, host, folder))
    elif not (os.environ.get("SLURM_JOB_ID") and shutil.which("srun")):
        launch_command(library, ["waywiser"], 1)


def _require_program(words: Sequence[str]) -> None:
    if words and shutil.which(words[0]) is None:
        raise LauncherError(
            "the launcher cannot be run: there is no such program",
            where=words[0],
            remedy="load the module that has it, or name another with --launcher",
        )
