"""Whose members a group has, and how they divide a workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

from waywiser.measure.probe.member import Member
from waywiser.measure.probe.protocol import MeasuredVisit, Ready
from waywiser.measure.probe.share import ranks_of, together
from waywiser.measure.probe.worker_process import ProbeError
from waywiser.measure.supervise import Team
from waywiser.words import WaywiserError, Workload


class Teams(Protocol):
    """Starts the team of one group after the other. `Workers` are those of this machine;
    `waywiser.measure.ranks.world.RankTeams` those of an MPI launch."""

    @property
    def size(self) -> int:
        """Members of a group."""

    @property
    def is_bound(self) -> bool:
        """Whether no member can finish a workload if another one failed."""

    def start(self) -> Team[Member]:
        """New members, which end with their team. Raises `WaywiserError`."""

    def know(self, ready: Sequence[Ready]) -> None:
        """Hears what the members said when they were ready. Raises `WaywiserError` if they cannot
        work together."""

    def unready(self, attempts: int, reason: str) -> WaywiserError:
        """The error if so many groups in a row did not get ready, the last one for this reason."""

    def shares(self, workload: Workload) -> Sequence[int]:
        """The numbers of the members that have something to measure, in order."""

    def together(self, parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
        """What members found, by their numbers, as one."""


def started_team(commands: Iterable[tuple[Sequence[str], str]]) -> Team[Member]:
    """A member for each command and name, in order."""
    with ExitStack() as stack:
        team = stack.enter_context(Team[Member]())
        for rank, (command, name) in enumerate(commands):
            team.members.append(Member.start(command, rank, name))
        stack.pop_all()
    return team


class Workers:
    """Processes that this one starts, each of which measures transfers of its own
    (`waywiser.measure.probe.share`)."""

    def __init__(self, command: Sequence[str], size: int) -> None:
        self.size = size
        self.is_bound = False
        self._command = command

    def start(self) -> Team[Member]:
        names = [f"worker {rank + 1} of {self.size}" for rank in range(self.size)]
        named = names if self.size > 1 else ["the worker"]
        return started_team((self._command, name) for name in named)

    def know(self, ready: Sequence[Ready]) -> None:
        """Nothing: they need not know each other."""

    def unready(self, attempts: int, reason: str) -> ProbeError:
        return ProbeError(
            f"{attempts} workers in a row did not get ready: {reason}",
            where=" ".join(self._command),
            remedy="run the command alone with --help: it must start and list its options",
        )

    def shares(self, workload: Workload) -> Sequence[int]:
        return ranks_of(workload, self.size)

    def together(self, parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
        return together(parts)
