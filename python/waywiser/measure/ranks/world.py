"""The ranks of a survey: the members of a group that an MPI launcher starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

import msgspec

from waywiser.machine import limits
from waywiser.measure.probe.member import Member, MemberLost
from waywiser.measure.probe.protocol import MeasuredVisit, Ready
from waywiser.measure.ranks.bridge_file import sha256_of
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.launch_hosts import LaunchHosts
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.ranks.rank_end import RankEnd
from waywiser.measure.supervise import Deadline, Team
from waywiser.words import KILLED, Failure, Workload, count

COMMAND = (sys.executable, "-m", "waywiser.measure.ranks.rank_worker")


class RankProcess:
    """The process of a rank: a `waywiser.measure.probe.member.MemberProcess`. The launcher has
    started it and prints what it prints, and the launch ends it."""

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


class RankMember(Member):
    """A rank as a worker: its launch ends it."""

    def close(self) -> None:
        self.process.close()


class LaunchedTeam(Team[Member]):
    """The ranks of a launch, which ends with them."""

    def __init__(self, launch: Launch, ranks: Sequence[RankEnd]) -> None:
        self._launch = launch
        super().__init__(
            RankMember(number, RankProcess(launch, rank), rank.channel, rank.name)
            for number, rank in enumerate(ranks)
        )

    def close(self) -> None:
        with self._launch:
            super().close()


class RankTeams:
    """`waywiser.measure.probe.teams.Teams`: one launch of ranks for each group, on this machine or
    across ``hosts``."""

    def __init__(
        self,
        library: MpiLibrary,
        size: int,
        template: str = "",
        hosts: LaunchHosts | None = None,
        seconds: float = 60.0,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """``seconds`` and ``is_cancelled`` are those of `Launch`."""
        self.size = size
        self.is_bound = True
        self.are_descendants = not template
        """Whether ranks are descendants of this process; a daemon starts those of ``srun``."""
        self.library = library
        self._template = template
        self._launcher = template or library.launcher
        self._has_started = False
        self._hosts, self._seconds, self._is_cancelled = hosts, seconds, is_cancelled
        self.launch: Launch | None = None
        """That of the last group."""

    def start(self) -> Team[Member]:
        """Raises `MpiError` if ranks do not start; `MemberLost` if a launch did before: then it is
        no wrong launcher, and another launch may be well."""
        bridge = self.library.bridge
        command = (*COMMAND, bridge, *([sha256_of(bridge)] if self._hosts else []))
        try:
            launch = Launch(
                self.library,
                command,
                self.size,
                template=self._template,
                seconds=self._seconds,
                hosts=self._hosts,
                is_cancelled=self._is_cancelled,
            )
        except MpiError as error:
            if self._has_started:
                raise MemberLost(Failure("crash", error.what)) from error
            raise
        with ExitStack() as stack:
            stack.enter_context(launch)
            self.launch = launch
            ranks = sorted(launch.ranks, key=lambda rank: rank.stated)
            if [rank.stated for rank in ranks] != list(range(self.size)):
                raise MpiError(
                    "the launcher does not state the rank of each process in its environment",
                    where=self._launcher,
                    remedy="use the mpiexec of the library, or srun",
                )
            team = LaunchedTeam(launch, ranks)
            stack.pop_all()
        return team

    def unready(self, attempts: int, reason: str) -> MpiError:
        """Returns the error of a launch that never gets ready. A launcher of another library is one
        cause: its processes end when MPI starts."""
        return MpiError(
            f"{attempts} launches in a row did not get ready: {reason}",
            where=self._launcher,
            remedy=f"see whether it is the launcher of {self.library.name}: waywiser doctor --try",
        )

    def know(self, ready: Sequence[Ready]) -> None:
        """Raises `MpiError` for ranks that are not those of one world."""
        if [each.ranks for each in ready] != [self.size] * self.size:
            raise MpiError(
                f"the launcher started {count(self.size, 'process')} that are alone: it is not the "
                f"launcher of {self.library.name}",
                where=self._launcher,
                remedy="use the mpiexec of this library, or name the mpicc of the launcher's",
            )
        if [each.rank for each in ready] != list(range(self.size)):
            raise MpiError(
                "the launcher states other ranks than MPI gives",
                where=self._launcher,
                remedy="use the mpiexec of the library",
            )
        self._has_started = True

    def shares(self, workload: Workload) -> Sequence[int]:
        """The ranks at the ends; the first one for what is not between ranks."""
        return sorted({place.index for place in workload.places if place.kind == "rank"}) or (0,)

    def together(self, parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
        return together_of_ranks(parts)


class PartOfRanks(Team[Member]):
    """Some ranks of a launch that has started, which end with it: a team, and the
    `waywiser.measure.probe.teams.Teams` that it is alone. Groups of different ranks measure
    independently, each in a thread of its own."""

    is_bound = True

    @property
    def size(self) -> int:
        return len(self.members)

    def start(self) -> Team[Member]:
        return self

    def close(self) -> None:
        """Nothing: others may use the members."""

    def know(self, ready: Sequence[Ready]) -> None:
        """Nothing: they knew each other before."""

    def unready(self, attempts: int, reason: str) -> MpiError:
        return MpiError(f"ranks did not get ready: {reason}")

    def shares(self, workload: Workload) -> Sequence[int]:
        """The places of the ranks at the ends."""
        ends = {place.index for place in workload.places if place.kind == "rank"}
        return [n for n, member in enumerate(self.members) if member.rank in ends]

    def together(self, parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
        return together_of_ranks(parts)


def together_of_ranks(parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
    """What ranks found: the lowest leads and has the samples; each knows its own buffers."""
    found = [part for _, part in sorted(parts.items())]
    return msgspec.structs.replace(
        found[0],
        buffers=tuple(buffer for part in found for buffer in part.buffers),
        notes=tuple(note for part in found for note in part.notes),
        buffer_bytes=sum(part.buffer_bytes for part in found),
        held_bytes=sum(part.held_bytes for part in found),
    )
