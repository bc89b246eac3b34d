"""The process of one worker: its start, and what its end amounts to."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from waywiser.machine import limits
from waywiser.machine.met_limit import met_limit
from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.supervise import ChildProcess, ProcessError
from waywiser.words import KILLED


class ProbeError(ProcessError):
    """No worker can be had, or one cannot be got rid of: the survey cannot go on."""


class LimitReached(ProbeError):
    """A limit of the system leaves no room for a worker."""


class WorkerProcess(ChildProcess):
    """Raises `ProbeError` if it cannot be started."""

    name = "worker"

    def __init__(self, command: Sequence[str], inherited: Sequence[int]) -> None:
        self._killed_before = limits.killed_for_memory()
        words = [*command, "--parent", str(os.getpid())]
        try:
            super().__init__(words, worker_environment(), inherited)
        except OSError as error:
            if limit := met_limit(error):
                raise LimitReached(limit.what, remedy=limit.remedy) from error
            raise ProbeError(f"a worker cannot be started: {error}", where=command[0]) from error

    def ending(self) -> tuple[str, str]:
        """The kind of failure that its end amounts to, and how it ended."""
        if self.status == -signal.SIGKILL and (why := self._killed_before.why()):
            return KILLED, f"the kernel, out of memory, killed the worker: {why}"
        return "crash", self.how_it_ended()
