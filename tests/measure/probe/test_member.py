"""What is sent to a worker whose pipes are full, or that does not read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scripted_orders import PATIENCE_SECONDS, a_command, a_machine, an_order

from waywiser.measure.probe.member import Member, MemberLost
from waywiser.measure.probe.protocol import Hello, Locate, Prepare, ToWorker
from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Memory, Place
from waywiser.words.records import Process, Visit

Run = Callable[..., list[Visit]]

GPUS = 2000
"""So many that a greeting is longer than a pipe is wide."""

LONG = [
    Hello(a_machine(gpus=GPUS), Process(), 1 << 30, 10.0),
    Locate(0, Memory("pinned", Place("numa", 0)), tuple(range(100_000))),
    Prepare(1, an_order(*[{}] * GPUS)),
]


def member_that(deed: str) -> Member:
    return Member.start(a_command("--before", deed), 0)


@pytest.mark.parametrize("message", LONG, ids=lambda message: type(message).__name__)
def test_a_worker_that_prints_before_it_reads_gets_a_long_message(message: ToWorker) -> None:
    member = member_that("noise")
    try:
        member.send(message, Deadline(PATIENCE_SECONDS))
    finally:
        member.close()


def test_a_worker_that_prints_before_it_reads_gets_ready(run: Run) -> None:
    noisy = run([an_order()], "--before", "noise", machine=a_machine(gpus=GPUS))
    assert [visit.stop for visit in noisy] == ["converged"]


def test_a_worker_that_prints_and_never_reads_is_killed_when_its_time_is_over() -> None:
    member = member_that("babble")
    try:
        with pytest.raises(MemberLost, match=r"does not read its orders.*printed: driver: busy"):
            member.send(LONG[0], Deadline(1.0))
        assert member.process.ended
    finally:
        member.close()


@pytest.mark.parametrize("message", LONG, ids=lambda message: type(message).__name__)
def test_a_worker_that_speaks_instead_of_reading_is_heard(message: ToWorker) -> None:
    member = member_that("give-up-and-exit")
    try:
        with pytest.raises(MemberLost, match="scripted loss of the device") as caught:
            member.send(message, Deadline(PATIENCE_SECONDS))
        assert caught.value.failure.kind == "sticky"
    finally:
        member.close()


def test_a_worker_that_closed_its_output_is_still_sent_to(run: Run) -> None:
    silent = run([an_order()], "--before", "silence", machine=a_machine(gpus=GPUS))
    assert [visit.stop for visit in silent] == ["converged"]
