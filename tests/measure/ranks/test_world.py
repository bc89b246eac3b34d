"""Ranks of real MPI libraries as the workers of a survey: right bytes, and what a loss costs. Each
library has as many launches as losses, the last of which measures all cases."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.measure.plan.machines import machine
from tests.measure.ranks.watching import PATIENCE_SECONDS, launcher_of

from mpi_wheels import mpicc_of
from waywiser.machine import native
from waywiser.machine.machine import Machine, NumaNode
from waywiser.measure.probe import member
from waywiser.measure.probe.member import Member
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import End, Hello, Prepare, Start
from waywiser.measure.probe.supervisor import Progress, run_orders
from waywiser.measure.ranks import world
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.measure.ranks.placement import place_ranks
from waywiser.measure.ranks.world import RankTeams
from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Operation, Transfer, Workload
from waywiser.words.records import Order, Process, Rule, Visit

RULE = Rule(minimum=2, maximum=3, slow_minimum=2, minimum_seconds=0.0, soft_seconds=0.0)

HOST = "pageable@rank:0 -> pageable@rank:1 by mpi"


@pytest.fixture
def launches(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fake_native_environment: dict[str, str],
    nothing_left: Callable[[Launch], None],
) -> list[Launch]:
    """The launches of the test, of which nothing may be left. Ranks use the fake GPU; this process
    must not: a process has one native library."""
    native.load()
    for name in ("PYTHONPATH", native.MODULE_VARIABLE):
        monkeypatch.setenv(name, fake_native_environment[name])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(member, "_EXIT_SECONDS", PATIENCE_SECONDS)
    made: list[Launch] = []

    def launch(*arguments: Any, **options: Any) -> Launch:
        made.append(Launch(*arguments, **options))
        nothing_left(made[-1])
        return made[-1]

    monkeypatch.setattr(world, "Launch", launch)
    return made


def with_ranks(ranks: int) -> Machine:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    node = NumaNode(0, cpus, 2**30, 0)
    bare = msgspec.structs.replace(machine(gpus=2), numa=(node,))
    gpus = tuple(msgspec.structs.replace(gpu, uuid=f"fake {gpu.index}") for gpu in bare.gpus)
    bare = msgspec.structs.replace(bare, gpus=gpus)
    return msgspec.structs.replace(bare, ranks=place_ranks(bare, ranks))


def order(text: str, block: int = 0, timeout_seconds: float = PATIENCE_SECONDS) -> Order:
    return Order(
        workload=Workload.parse(text),
        block=block,
        process=Process(),
        rule=RULE,
        seed=7,
        buffer_bytes=2**22,
        expected_seconds=0.1,
        timeout_seconds=timeout_seconds,
    )


def measured(name: str, ranks: int, orders: Iterable[Order], **other: Any) -> list[Visit]:
    visits: list[Visit] = []
    options = ProbeOptions(
        startup_seconds=PATIENCE_SECONDS, ending_seconds=PATIENCE_SECONDS, memory_bytes=2**28
    )
    run_orders(
        orders,
        with_ranks(ranks),
        options=options,
        on_visit=visits.append,
        teams=RankTeams(find_library(mpicc_of(name)), ranks),
        **other,
    )
    return visits


def all_cases() -> Iterator[str]:
    """Every executor with every kind of memory that it has, with settings and awkward sizes."""
    kinds = ("pageable", "pinned", "device")
    for one in kinds:
        for other in kinds:
            yield f"{one}@rank:0 -> {other}@rank:1 by mpi of 65537"
            if "device" in (one, other):
                yield f"{one}@rank:0 -> {other}@rank:1 by mpi-staged of 65537"
    for size in (1, 7, 262144):
        yield f"device@rank:1 -> device@rank:0 by mpi of {size}"
        yield f"pageable@rank:0 -> pageable@rank:2 by mpi[test=bw] of {size}"
        yield f"device@rank:0 -> device@rank:2 by mpi-staged[chunk=65536,buffers=3] of {size}"
    yield "pageable@rank:1 -> pageable@rank:2 by mpi[window=16] of 4099"
    yield (
        "pageable@rank:0 -> pageable@rank:1 by mpi of 4099; "
        "device@rank:1 -> device@rank:2 by mpi-staged of 300013"
    )


def all_exchanges() -> Iterator[str]:
    """Every strategy among four ranks of two GPUs, and counts that leave some messages empty."""
    both = "device@rank:0-3 -> device@rank:0-3 by"
    strategies = [
        "strategy=direct", "strategy=3-step", "strategy=3-step,unique=1/2",
        "strategy=extra-message", "strategy=extra-message,split=messages",
        "strategy=extra-message,per-gpu=1", "strategy=duplicate-pointer",
        "strategy=duplicate-pointer,split=messages", "strategy=duplicate-pointer,unique=1/2",
    ]  # fmt: skip
    for strategy in strategies:
        yield f"{both} alltoall[{strategy}] of 262144"
        yield f"{both} alltoallv[{strategy},counts=neighbours,neighbours=1] of 7"
        yield f"{both} alltoallv[{strategy},counts=skewed,exchange=pairs] of 65537"
    host = "pageable@rank:0-3 -> pageable@rank:0-3 by"
    yield f"{host} alltoall of 262144"
    yield f"{host} alltoall[exchange=pairs] of 1"
    yield f"{host} alltoallv[counts=skewed] of 65537"
    yield "pinned@rank:0-3 -> pinned@rank:0-3 by alltoallv[counts=neighbours,neighbours=2] of 7"


def cases(step: int = 1) -> list[Order]:
    """Every ``step``-th case, the set of two transfers, and one operation."""
    skew = Workload(operation=Operation.parse("barrier-skew@rank:0-2"))
    *alone, together = all_cases()
    transfers = [order(text) for text in (*[*alone, *all_exchanges()][::step], together)]
    return [*transfers, msgspec.structs.replace(transfers[0], workload=skew)]


def require_right(visits: Sequence[Visit]) -> None:
    """Visits of `cases` by one launch."""
    assert [(str(v.workload), v.failure) for v in visits if v.failure] == []
    assert len({visit.worker for visit in visits}) == 1
    for visit in visits:
        assert len(visit.samples) >= 2 and min(visit.samples.span) > 0
        for transfer in visit.workload.transfers:
            if transfer.path.is_among_several:
                require_lanes(visit, transfer)
    (together,) = [visit for visit in visits if len(visit.workload.transfers) > 1]
    assert {len(times) for times in together.samples.transfers} == {2}
    assert [buffer.memory for buffer in together.buffers] == [
        "pageable@rank:0", "pageable@rank:1", "device@rank:1", "device@rank:2",
    ]  # fmt: skip


def require_lanes(visit: Visit, transfer: Transfer) -> None:
    """The time of each rank that takes part in an exchange."""
    strategy = transfer.parameters.get("strategy", "")
    alone = strategy in ("direct", "3-step") or "per-gpu" in transfer.parameters
    taking_part = 2 if alone else 4
    for lanes, times in zip(visit.samples.lanes, visit.samples.transfers, strict=True):
        assert len(lanes[0]) == taking_part
        assert max(lanes[0]) == times[0] > 0


STAGED = "device@rank:0 -> device@rank:1 by mpi-staged"

BOUNDARIES = [(kind, when) for kind in (Hello, Prepare, Start, End) for when in ("before", "after")]


class Kills:
    """One kill for each message of the protocol, before and after the second rank has it."""

    def __init__(self, launches: list[Launch], monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = list(BOUNDARIES)
        self._launches = launches
        self._struck: list[Launch] = []
        self._send = send = Member.send

        def sending(member: Member, message: Any, deadline: Deadline) -> None:
            at = [each for each in self.left if member.rank == 1 and isinstance(message, each[0])]
            if launches[-1] in self._struck:  # it may have answered before it was killed
                at = []
            if at[:1] == [(type(message), "before")]:
                self._strike(at[0])
            send(member, message, deadline)
            if at[:1] == [(type(message), "after")]:
                self._strike(at[0])

        monkeypatch.setattr(Member, "send", sending)

    def _strike(self, at: tuple[type, str]) -> None:
        self.left.remove(at)
        self._struck.append(self._launches[-1])
        os.kill(second_rank(self._launches[-1]), signal.SIGKILL)


def second_rank(launch: Launch) -> int:
    return next(rank.pid for rank in launch.ranks if rank.stated == 1)


@pytest.mark.slow
def test_a_kill_at_any_boundary_costs_what_it_did_and_one_launch_measures_all_the_rest(
    launches: list[Launch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong bytes and messages that are too large cost no launch either."""
    monkeypatch.setenv("WAYWISER_FAKE", "drop=copy@1+;only_bytes=300007")
    kills = Kills(launches, monkeypatch)
    long = msgspec.structs.replace(RULE, maximum=10**6, minimum_seconds=0.3, soft_seconds=0.3)
    struck = [msgspec.structs.replace(order(f"{HOST} of 64", n), rule=long) for n in range(4)]
    others = [order(f"{STAGED} of 300007"), order(f"{HOST} of {2**31}"), order(f"{HOST} of 8")]
    # All cases are measured with the other library, below.
    visits = measured("mpich", 4, [*struck, *cases(8), *others])
    measured("mpich", 4, [order(f"{HOST} of 64")])
    assert kills.left == []
    assert len(launches) == len(BOUNDARIES)
    for visit in visits[:4]:
        assert visit.failure is not None and visit.failure.kind == "crash"
        # MPICH then kills the others, any of which a busy machine may see first.
        reason = visit.failure.reason
        assert re.match(r"rank [0-3] ended, while ", reason), reason
        assert "\n" not in visit.failure.reason
    require_right(visits[4:-3])
    wrong, large, after = visits[-3:]
    assert wrong.failure is not None and wrong.failure.kind == "wrong-bytes"
    assert "bytes are wrong at the destination" in wrong.failure.reason
    assert large.failure is not None and large.failure.kind == "not-supported"
    assert large.failure.reason == "MPI counts in int, so one message has less than 2 GiB"
    assert after.failure is None and after.worker == visits[4].worker


@pytest.mark.slow
def test_a_stopped_rank_is_named_and_a_killed_launcher_and_the_rank_of_a_fault(
    launches: list[Launch], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first two are lost in the middle of a measurement. What one rank fails with is the
    reason, and not that the other waits for it."""
    monkeypatch.setenv("WAYWISER_FAKE", f"fail=copy@9;only_bytes=300007;once={tmp_path / 'struck'}")
    strikes = {1: stop_second_rank, 2: kill_launcher}

    def progress(heard: Progress) -> None:
        if strike := strikes.pop(heard.order.block, None):
            strike(launches[-1])

    slow = Rule(minimum=10**6, minimum_seconds=600, soft_seconds=600, hard_seconds=600)
    first = [
        order(f"{HOST} of 64", 0),  # ranks are no longer fresh when they hang
        msgspec.structs.replace(order(f"{HOST} of 64", 1, timeout_seconds=3.0), rule=slow),
        msgspec.structs.replace(order(f"{HOST} of 64", 2), rule=slow),
    ]
    orders = [*first, *cases(), order(f"{STAGED} of 300007")]
    visits = measured("openmpi", 4, orders, on_progress=progress)
    before, stopped, without = visits[:3]
    assert stopped.failure is not None and without.failure is not None
    assert stopped.failure.kind == "timeout"
    assert stopped.failure.reason.startswith("rank 1 took too long and was killed")
    assert "it did not answer" in stopped.failure.reason
    assert without.failure.kind == "crash"
    assert without.failure.reason.startswith("the launcher was killed by SIGKILL, while ")
    assert before.failure is None
    require_right(visits[3:-1])
    fault = visits[-1].failure
    assert fault is not None and fault.kind == "gpu"
    assert "\n" not in fault.reason
    assert [visit.worker for visit in (before, stopped, without, *visits[-2:])] == [1, 1, 2, 3, 3]


def stop_second_rank(launch: Launch) -> None:
    os.kill(second_rank(launch), signal.SIGSTOP)


def kill_launcher(launch: Launch) -> None:
    os.kill(launcher_of(launch), signal.SIGKILL)
