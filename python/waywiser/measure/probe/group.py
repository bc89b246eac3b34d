"""A group of workers that measure a workload together, from a common start.

Every member gets the order with its rank and measures its own transfers
(`waywiser.measure.probe.share`): prepare, wait until all are prepared, start, wait until all have
answered. One member is the usual case; with more, the loss of one is the loss of the group."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from waywiser.measure.probe.blame import blamed_of, failure_of
from waywiser.measure.probe.load import LoadReadings
from waywiser.measure.probe.member import Member, MemberLost
from waywiser.measure.probe.protocol import (
    LOCATED,
    MEASURED,
    OTHER_MEMBER,
    Connected,
    Failed,
    FromWorker,
    Hello,
    Locate,
    Located,
    MadeKey,
    MeasuredVisit,
    Observe,
    Observed,
    Pong,
    Prepare,
    Prepared,
    Progressed,
    RanksLeft,
    Ready,
    Result,
    Start,
)
from waywiser.measure.probe.teams import Teams
from waywiser.measure.supervise import Deadline
from waywiser.words import Failure, GpuState, Locality, Memory, Order, Transfer, Visit, WhoCopies
from waywiser.words.records import ObservedCopy

Heard = Callable[[Progressed], None]

_Answer = TypeVar(
    "_Answer", Ready, Located, Observed, MadeKey, Connected, RanksLeft, Prepared, Result
)

_PONG_SECONDS = 3.0
"""Seconds for a process that runs to answer a ping, on a busy machine too."""

_FOLLOWING_SECONDS = 2.0
"""Seconds for members to notice that one with which they measure has failed."""

_FOLLOWING_KINDS = (OTHER_MEMBER, "interrupted")

_LOOK_SECONDS = 60.0
"""The longest sleep without a reason to wake up."""


class WorkerGroup:
    """Workers of one `waywiser.words.records.Process`, numbered within the survey."""

    def __init__(self, teams: Teams, number: int) -> None:
        self.number = number
        self._teams = teams
        self.lost = False
        """No further order can be measured; close it and take a fresh group."""
        self.blamed: Member | None = None
        """The member that the last order failed by; None if none can be named."""
        self._orders = self._pings = 0
        self._fresh = True
        with ExitStack() as stack:
            self._selector = stack.enter_context(selectors.DefaultSelector())
            self._team = stack.enter_context(teams.start())
            for member in self.members:
                for descriptor in (*member.speaking, member.process.output):
                    if descriptor not in self._selector.get_map():  # ranks print to their launcher
                        self._selector.register(descriptor, selectors.EVENT_READ, member)
            self._resources = stack.pop_all()

    @property
    def members(self) -> Sequence[Member]:
        """By their ranks."""
        return self._team.members

    @property
    def usable(self) -> bool:
        """Whether another order can be measured, by what is known."""
        return not self.lost and self.runs

    @property
    def runs(self) -> bool:
        """Whether no process has ended."""
        return not any(member.process.ended for member in self.members)

    def start(self, hello: Callable[[int], Hello], seconds: float) -> list[Ready]:
        """Introduces the members to their task: what each said when ready, by rank.

        Raises `MemberLost` when one is not ready within that time.
        """
        deadline = Deadline(seconds)
        self.greet(hello, deadline)
        return self.await_ready(deadline)

    def greet(self, hello: Callable[[int], Hello], deadline: Deadline) -> None:
        """The first half of `start`."""
        for member in self.members:
            member.send(hello(member.rank), deadline)

    def await_ready(self, deadline: Deadline) -> list[Ready]:
        """The second half of `start`."""
        answers = self._gather(Ready, self.members, 0, deadline)
        if failed := first_failed(answers):
            raise MemberLost(failed.failure, self.members[answers.index(failed)])
        for member in self.members:
            member.doing = "waiting for an order"
        ready = [answer for answer in answers if isinstance(answer, Ready)]
        self._teams.know(ready)
        return ready

    def locate(self, memory: Memory, cpus: Sequence[int], seconds: float) -> Locality:
        """How far blocks of a memory are from GPUs and CPUs, by the first member; with the reason
        if it does not say. May lose the group."""
        found = Locality(self.number, _moment(datetime.now(UTC)), str(memory))
        request = Locate(0, memory, tuple(cpus))
        answer = self._ask("locating memory", request, Located, seconds)
        if isinstance(answer, Failure):
            return msgspec.structs.replace(found, failure=answer)
        values = {name: getattr(answer, name) for name in LOCATED}
        return msgspec.structs.replace(found, **values)

    def observe(self, gpu: int, transfers: Sequence[Transfer], seconds: float) -> WhoCopies:
        """Whether transfers of a GPU need multiprocessors, by the first member; with the reason if
        it does not say. May lose the group."""
        found = WhoCopies(gpu, _moment(datetime.now(UTC)))
        request = Observe(0, gpu, tuple(transfers))
        answer = self._ask("observing who copies", request, Observed, seconds)
        if isinstance(answer, Failure):
            return msgspec.structs.replace(found, failure=answer)
        return msgspec.structs.replace(
            found,
            kernel=answer.kernel,
            fill=answer.fill,
            copies=tuple(map(ObservedCopy, transfers, answer.copies)),
            seconds=answer.seconds,
        )

    def _ask(
        self, doing: str, request: Locate | Observe, expected: type[_Answer], seconds: float
    ) -> _Answer | Failure:
        """What the first member answers, or why it does not."""
        member = self.members[0]
        member.doing = doing
        deadline = Deadline(seconds)
        try:
            member.send(request, deadline)
            (answer,) = self._gather(expected, [member], 0, deadline)
        except MemberLost as lost:
            self.lost = True
            return lost.failure
        member.doing = "waiting for an order"
        return answer.failure if isinstance(answer, Failed) else answer

    def measure(
        self,
        order: Order,
        *,
        host_timed: Sequence[Transfer] = (),
        allowance_seconds: float = 0.0,
        readings: LoadReadings | None = None,
        heard: Heard | None = None,
    ) -> tuple[Visit, tuple[MeasuredVisit, ...]]:
        """One visit, and the members' parts of it; failed where anything went wrong.

        ``host_timed`` are transfers to be timed by the host.
        ``allowance_seconds`` are added to the order's time-out for the first order, in which
        workers open their devices.
        """
        allowed = order.timeout_seconds + (allowance_seconds if self._fresh else 0.0)
        self._fresh = False
        self.blamed = None
        started, deadline = datetime.now(UTC), Deadline(allowed)
        failure: Failure | None = None
        parts: dict[int, MeasuredVisit] = {}
        try:
            answers = self._exchange(
                Prepare(self._orders + 1, order, tuple(host_timed)), deadline, readings, heard
            )
            shares = self._teams.shares(order.workload)
            if failed := first_failed(answers):
                failure = failed.failure
                self.blamed = self.members[shares[answers.index(failed)]]
            else:
                found = zip(shares, answers, strict=True)
                parts = {r: a.measured for r, a in found if isinstance(a, Result)}
        except MemberLost as lost:
            self.lost = True
            failure, self.blamed = lost.failure, lost.member
        elapsed = deadline.elapsed
        states = readings.taken if readings else ()
        head = (order, started, elapsed, self.number, states)
        whole = self._teams.together(parts) if parts else None
        return _visit(*head, failure, whole), tuple(parts.values())

    def _exchange(
        self,
        prepare: Prepare,
        deadline: Deadline,
        readings: LoadReadings | None,
        heard: Heard | None,
    ) -> Sequence[Prepared | Result | Failed]:
        """The results of the members that have a share; or their answers to the preparation, one
        of which is a failure."""
        self._orders = number = prepare.id
        members = [self.members[n] for n in self._teams.shares(prepare.order.workload)]
        for member in members:
            member.doing = "preparing"
            member.send(prepare, deadline)
        prepared = self._gather(Prepared, members, number, deadline)
        if first_failed(prepared):
            return prepared
        for member in members:
            member.doing = "measuring, before the first sample"
            member.send(Start(number), deadline)
        results = self._gather(Result, members, number, deadline, readings, heard)
        if readings:
            readings.at_end()
        for member in members:
            member.doing = "waiting for an order"
        return results

    def _gather(
        self,
        expected: type[_Answer],
        members: Sequence[Member],
        number: int,
        deadline: Deadline,
        readings: LoadReadings | None = None,
        heard: Heard | None = None,
    ) -> list[_Answer | Failed]:
        """One answer of the expected type, or a failure that its worker survived, of each member,
        in their order. Raises `MemberLost` as soon as one is lost, or says that it cannot go on."""
        answers: dict[int, _Answer | Failed] = {}
        while waiting := [m for m in members if m.rank not in answers]:
            if deadline.is_over:
                raise self._overdue(waiting, answers)
            wake = min(deadline.left, readings.take() if readings else _LOOK_SECONDS)
            for member, message in self._messages(wake):
                in_turn = (
                    member.rank not in answers
                    and member in members
                    and getattr(message, "id", number) == number
                )
                if in_turn and isinstance(message, Progressed) and expected is Result:
                    member.doing = f"measuring: {message.n} samples, median {message.median:.3g} s"
                    if readings:
                        readings.under_load()
                    if heard and member is members[0]:
                        heard(message)
                elif in_turn and isinstance(message, expected | Failed) and not _fatal(message):
                    answers[member.rank] = message
                    if self._teams.is_bound and isinstance(message, Failed):
                        deadline = deadline.within(_FOLLOWING_SECONDS)
                else:
                    raise MemberLost(member.unexpected(message), member)
        return [answers[member.rank] for member in members]

    def _overdue(self, waiting: Sequence[Member], answers: Mapping[int, object]) -> MemberLost:
        """The loss by members that take too long; ``answers`` are those of the others, by rank."""
        if failed := first_failed(list(answers.values())):
            rank = next(rank for rank, answer in answers.items() if answer is failed)
            return MemberLost(failed.failure, next(m for m in self.members if m.rank == rank))
        self._pings += 1
        for member in waiting:
            member.ping(self._pings)
        pongs: dict[int, Pong] = {}
        end = Deadline(_PONG_SECONDS)
        try:
            while len(pongs) < len(waiting) and not end.is_over:
                for member, said in self._messages(end.left):
                    if isinstance(said, Pong) and said.id == self._pings:
                        pongs[member.rank] = said
                    elif _fatal(said):
                        return MemberLost(member.unexpected(said), member)
        except MemberLost as lost:
            return lost
        blamed = blamed_of(waiting, pongs)
        return MemberLost(failure_of(waiting, pongs), blamed)

    def _messages(self, seconds: float) -> Iterator[tuple[Member, FromWorker]]:
        """What the members say within that time; returns with the first of it."""
        speaking: dict[int, Member] = {}
        for key, _ in self._selector.select(seconds):
            member: Member = key.data
            if key.fd != member.process.output:
                speaking[member.rank] = member  # once, even if it both answered and ended
            elif not member.process.drain_log():
                self._selector.unregister(member.process.output)
        for member in speaking.values():
            for said in member.receive():
                yield member, said

    def end(self, seconds: float) -> None:
        """Ends the members, politely if they are well, and closes everything."""
        with self._resources:
            if not self.lost:
                self._team.end(Deadline(seconds))

    def close(self) -> None:
        """Kills the members and closes everything; any number of times."""
        self._resources.close()


def _moment(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def first_failed(answers: Sequence[object]) -> Failed | None:
    """The first failure; if a member has one, one that does not follow from another."""
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    return min(failures, key=lambda each: each.failure.kind in _FOLLOWING_KINDS, default=None)


def _fatal(message: FromWorker) -> bool:
    """Whether the worker says that it cannot go on: at whatever time, and of whatever order."""
    return isinstance(message, Failed) and message.fatal


def _visit(
    order: Order,
    started: datetime,
    elapsed: float,
    worker: int,
    states: tuple[GpuState, ...],
    failure: Failure | None,
    whole: MeasuredVisit | None,
) -> Visit:
    visit = Visit(
        workload=order.workload,
        block=order.block,
        stop="failed",
        started=_moment(started),
        failure=failure,
        worker=worker,
        elapsed_seconds=elapsed,
        gpu_states=states,
    )
    if whole is None:
        return visit
    return msgspec.structs.replace(visit, **{name: getattr(whole, name) for name in MEASURED})
