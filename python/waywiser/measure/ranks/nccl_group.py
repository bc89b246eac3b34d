"""The ranks of NCCL on one node: a worker for each of its GPUs, kept from test to test.

    with NcclGroup(machine, gpus) as group:
        group.get_ready(machine, options)
        key = group.make_key(seconds)              # on one node; all others are given it
        group.connect(key, (0, 1), size, seconds)  # on all nodes at once
        visit = group.measure(order)[0]            # on all nodes at once
        group.leave()                              # on all nodes at once

The node that has the lowest rank of the workload has the samples; those of others are empty.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from waywiser.machine import Machine
from waywiser.measure.probe.group import WorkerGroup, first_failed
from waywiser.measure.probe.member import Member, MemberLost
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import (
    Connect,
    Connected,
    Failed,
    Hello,
    LeaveRanks,
    MadeKey,
    MakeKey,
    MeasuredVisit,
    RanksLeft,
    Ready,
)
from waywiser.measure.probe.teams import started_team
from waywiser.measure.probe.worker_process import ProbeError, WorkerProcess
from waywiser.measure.ranks.world import together_of_ranks
from waywiser.measure.supervise import Deadline, Team
from waywiser.words import Failure, Process, Workload

COMMAND = (sys.executable, "-m", "waywiser.measure.ranks.nccl_worker")

NCCL = Process(loads="nccl")
"""The process in which such a worker measures."""

_Answer = TypeVar("_Answer", MadeKey, Connected, RanksLeft)

_ANSWER_SECONDS = 5.0
"""Seconds for a worker to say that a connection failed, after the time it was given for it."""

_LEAVE_SECONDS = 10.0
"""Seconds for a worker to leave other ranks, twice what it waits for them itself."""


class NcclTeams:
    """`waywiser.measure.probe.teams.Teams`: a worker for each GPU, with the numbers that the last
    connection gave them."""

    def __init__(self, gpus: Sequence[int]) -> None:
        self.gpus = tuple(gpus)
        self.size = len(self.gpus)
        self.is_bound = True
        self.ranks: tuple[int, ...] = ()

    def start(self) -> Team[Member]:
        return started_team(
            ((*COMMAND, "--gpu", str(gpu)), f"the worker of gpu:{gpu}") for gpu in self.gpus
        )

    def know(self, ready: Sequence[Ready]) -> None:
        """Nothing: connections make them know each other."""

    def unready(self, attempts: int, reason: str) -> ProbeError:
        return ProbeError(
            f"{attempts} workers in a row did not get ready: {reason}", where=" ".join(COMMAND)
        )

    def shares(self, workload: Workload) -> Sequence[int]:
        """Members whose ranks are at an end of the workload, or the first one, which says why it
        has no share."""
        used = {each.index for each in workload.places if each.kind == "rank"}
        return [number for number, rank in enumerate(self.ranks) if rank in used] or (0,)

    def together(self, parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
        return together_of_ranks(parts)


class NcclGroup(WorkerGroup):
    """The workers of one node. ``lost``: one ended; close it and take a fresh group."""

    def __init__(self, gpus: Sequence[int], number: int = 1) -> None:
        """Raises `ProbeError`."""
        self._ranks = NcclTeams(gpus)
        super().__init__(self._ranks, number)

    @property
    def size(self) -> int:
        """The number of workers."""
        return self._ranks.size

    def kill(self) -> None:
        """Kills the processes of the workers, from their start on; does not wait. Any thread may
        call it."""
        for member in self.members:
            if isinstance(member.process, WorkerProcess):
                member.process.signal(signal.SIGKILL)

    def get_ready(self, machine: Machine, options: ProbeOptions) -> Failure | None:
        """Introduces the workers to their node; the failure if one is not ready in time."""
        head = Hello(machine, NCCL, options.memory_bytes, options.watchdog_seconds)
        size = self._ranks.size

        def hello(rank: int) -> Hello:
            return msgspec.structs.replace(head, rank=rank, size=size)

        try:
            self.start(hello, options.startup_seconds)
        except MemberLost as lost:
            self.lost = True
            return lost.failure
        return None

    def make_key(self, seconds: float) -> str | Failure:
        """A key of a connection, used once; the failure if NCCL makes none."""
        answers = self._request("making a key", [MakeKey(0)], MadeKey, seconds)
        return answers if isinstance(answers, Failure) else answers[0].key

    def connect(self, key: str, ranks: Sequence[int], size: int, seconds: float) -> float | Failure:
        """Joins as these of ``size`` ranks, one for each worker, and returns the seconds that it
        took; all nodes call it at once. Messages of the connection fail after ``seconds``, too.
        """
        self._ranks.ranks = tuple(ranks)
        requests = [Connect(0, key, rank, size, seconds) for rank in ranks]
        answers = self._request("connecting", requests, Connected, seconds + _ANSWER_SECONDS)
        if isinstance(answers, Failure):
            return answers
        return max(answer.seconds for answer in answers)

    def leave(self) -> None:
        """Ends the connection; all nodes call it at once. A worker that does not leave is lost."""
        self._request(
            "leaving other ranks", [LeaveRanks(0)] * self._ranks.size, RanksLeft, _LEAVE_SECONDS
        )

    def abort(self) -> None:
        """Ends what the workers do with other ranks: it fails. Any thread may call it."""
        for member in self.members:
            member.abort()

    def _request(
        self,
        doing: str,
        requests: Sequence[MakeKey | Connect | LeaveRanks],
        expected: type[_Answer],
        seconds: float,
    ) -> list[_Answer] | Failure:
        """What the first members answer, each to its request; or why they do not."""
        members = self.members[: len(requests)]
        deadline = Deadline(seconds)
        self.blamed = None
        try:
            for member, request in zip(members, requests, strict=True):
                member.doing = doing
                member.send(request, deadline)
            answers = self._gather(expected, members, 0, deadline)
        except MemberLost as lost:
            self.lost, self.blamed = True, lost.member
            return lost.failure
        for member in members:
            member.doing = "waiting for an order"
        if failed := first_failed(answers):
            return failed.failure
        return [each for each in answers if not isinstance(each, Failed)]
