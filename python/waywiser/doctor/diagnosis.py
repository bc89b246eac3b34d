"""All checks, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from waywiser.doctor import gpu, memory, processor, virtual
from waywiser.doctor.finding import DoctorFinding
from waywiser.doctor.situation import Situation
from waywiser.severity import ORDER

Check = Callable[[Situation], Iterator[DoctorFinding]]

CHECKS: tuple[Check, ...] = (
    gpu.presence,
    gpu.driver,
    gpu.links,
    gpu.clocks,
    gpu.users,
    gpu.modes,
    virtual.virtualisation,
    virtual.left_out,
    processor.governor,
    processor.boost,
    processor.threads,
    processor.quota,
    processor.cpuset,
    processor.load,
    memory.numa_balancing,
    memory.huge_pages,
    memory.swap,
    memory.lock_limit,
    memory.cgroup_memory,
)


def diagnose(situation: Situation) -> tuple[DoctorFinding, ...]:
    """Every finding of every check, the severest first."""
    findings = [finding for check in CHECKS for finding in check(situation)]
    return tuple(sorted(findings, key=lambda finding: -ORDER.index(finding.severity)))


def live_situation() -> Situation:
    """This machine, now. Raises as `waywiser.topology.capture.capture_live` does."""
    from waywiser import native
    from waywiser.topology.assemble import machine_from
    from waywiser.topology.capture import capture_live
    from waywiser.topology.system_files import SystemFiles

    machine = machine_from(capture_live())
    library = native.load()
    return Situation(machine, SystemFiles(), library.backend, library.runtime_version)
