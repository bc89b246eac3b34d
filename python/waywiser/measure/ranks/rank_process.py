"""The process of a rank as the supervisor of its group holds it: the launcher has started it, and
prints what it prints."""

from __future__ import annotations

import os
from contextlib import suppress

from waywiser.machine import limits
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.rank_end import RankEnd
from waywiser.measure.supervise.deadline import Deadline
from waywiser.words.closeable import Closeable
from waywiser.words.records import KILLED


class RankProcess(Closeable):
    """A `waywiser.measure.probe.member.MemberProcess`. The launch ends it."""

    def __init__(self, launch: Launch, rank: RankEnd) -> None:
        self._launch = launch
        self._rank = rank
        self._killed_before = limits.killed_for_memory()
        self.descriptor: int | None = None
        if rank.is_running:
            with suppress(OSError):  # kernels before 5.3 have none
                self.descriptor = os.pidfd_open(rank.pid)

    @property
    def output(self) -> int:
        return self._launch.launcher.output

    @property
    def prints(self) -> bool:
        return self._launch.launcher.prints

    def drain_log(self) -> bool:
        return self._launch.launcher.drain_log()

    def printed(self) -> str:
        return self._launch.printed()

    def ending(self) -> tuple[str, str]:
        """The kind of failure that its end amounts to, and how it ended."""
        # How the process ended is the launcher's to know: a kill elsewhere may be another's.
        if why := self._killed_before.why(of_group=True):
            return KILLED, f"the kernel, out of memory, killed a rank: {why}"
        return "crash", self._launch.ending(self._rank)

    @property
    def ended(self) -> bool:
        return not self._rank.is_running

    def await_end(self, deadline: Deadline) -> bool:
        """Whether it ends by then."""
        self._launch.await_end(self._rank, deadline)
        return self.ended

    def kill(self) -> None:
        self._launch.kill(self._rank)

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)
