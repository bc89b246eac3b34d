"""The supervisor's own CPU."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec
import pytest
from scripted_orders import a_machine, an_order

from waywiser.machine.machine import Machine, NumaNode
from waywiser.measure.probe.aside import leave_one_cpu_aside, off_measured_cpus
from waywiser.words.records import Visit


def with_cpus(*nodes: tuple[int, ...]) -> Machine:
    numa = tuple(NumaNode(index, cpus, 1 << 30, 0) for index, cpus in enumerate(nodes))
    return msgspec.structs.replace(a_machine(), numa=numa)


def test_the_largest_node_gives_its_last_cpu() -> None:
    machine = leave_one_cpu_aside(with_cpus((0, 1), (2, 3, 4)))
    assert [node.cpus for node in machine.numa] == [(0, 1), (2, 3)]


def test_where_cpus_are_few_none_is_skipped() -> None:
    machine = with_cpus((0, 1, 2))
    assert leave_one_cpu_aside(machine) is machine


needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this process may use one CPU only"
)


@needs_two_cpus
def test_the_supervisor_stays_off_the_measured_cpus_while_it_runs(
    run: Callable[..., list[Visit]],
) -> None:
    before = os.sched_getaffinity(0)
    measured = min(before)
    during = []
    run(
        [an_order()],
        machine=with_cpus((measured,)),
        on_visit=lambda visit: during.append(os.sched_getaffinity(0)),
    )
    assert during == [before - {measured}]
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_without_a_spare_cpu_or_on_another_machine_nothing_changes(elsewhere: bool) -> None:
    before = os.sched_getaffinity(0)
    cpus = (100_000,) if elsewhere else tuple(before)
    with off_measured_cpus(with_cpus(cpus)):
        assert os.sched_getaffinity(0) == before
