"""The survey of a node by itself, as the agent makes it for the coordinator."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from waywiser.cluster.connection.protocol import CheckEnded, NodeFile, RunCheck
from waywiser.cluster.node.node_files import NodeFileError, NodeFiles
from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.supervise import ChildProcess, Deadline

COMMAND = (sys.executable, "-m", "waywiser.cluster.node.check_process")

PROFILE = "check.wwp"


class NodeCheck:
    """Makes the survey in a process of its own, and offers its profile as one of ``files``."""

    def __init__(self, files: NodeFiles, command: Sequence[str] = COMMAND) -> None:
        self._files = files
        self._command = command

    def run(self, request: RunCheck) -> CheckEnded:
        """The handler of the request. A survey that takes too long is killed, with its workers."""
        try:
            path = self._files.folder / PROFILE
        except OSError as error:
            return CheckEnded(-1, printed=f"no temporary folder can be made: {error.strerror}")
        path.unlink(missing_ok=True)
        command = [*self._command, "--file", str(path), "--parent", str(os.getpid())]
        command += ["--preset", request.preset, "--gpus", request.gpus]
        command += ["--seconds", str(request.seconds)]
        command += [word for pattern in request.only for word in ("--only", pattern)]
        try:
            process = ChildProcess(command, worker_environment())
        except OSError as error:
            return CheckEnded(-1, printed=f"the survey cannot be started: {error.strerror}")
        with process:
            if not process.await_end(Deadline(request.seconds)):
                late = f"the survey took longer than {request.seconds:.3g} s"
                return CheckEnded(-1, printed=late, is_late=True)
            if process.status:
                return CheckEnded(process.status, printed=process.printed())
        return CheckEnded(0, self._profile())

    def _profile(self) -> NodeFile | None:
        with suppress(NodeFileError):
            return self._files.offer(PROFILE)
        return None
