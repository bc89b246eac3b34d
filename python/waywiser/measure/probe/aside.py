"""Keeps the supervisor off the CPUs that are measured, if there are CPUs to spare."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from waywiser.machine import Machine

ENOUGH_CPUS = 4
"""Fewest CPUs of which one is kept aside: of fewer, it would be missed more than the supervisor's
rare wake-ups are."""


def leave_one_cpu_aside(machine: Machine) -> Machine:
    """The machine to plan for and to measure: without the last CPU of its largest node.

    If there are fewer than `ENOUGH_CPUS`, the machine as it is.
    """
    if sum(len(node.cpus) for node in machine.numa) < ENOUGH_CPUS:
        return machine
    largest = max(machine.numa, key=lambda node: len(node.cpus))
    smaller = msgspec.structs.replace(largest, cpus=largest.cpus[:-1])
    nodes = tuple(smaller if node is largest else node for node in machine.numa)
    return msgspec.structs.replace(machine, numa=nodes)


@contextmanager
def off_measured_cpus(machine: Machine) -> Iterator[None]:
    """Runs the calling thread on the CPUs that it may use and the machine does not have.

    Does nothing if there are none, which is the case unless `leave_one_cpu_aside` made the
    machine. The workers go back to the machine's CPUs by themselves.
    """
    before = os.sched_getaffinity(0)
    measured = {cpu for node in machine.numa for cpu in node.cpus}
    spare = before - measured
    if not spare or not measured & before:
        yield
        return
    with suppress(OSError):  # forbidden in some containers; it is a courtesy, not a condition
        os.sched_setaffinity(0, spare)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
