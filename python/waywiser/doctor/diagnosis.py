"""All checks, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from waywiser.doctor import gpu, memory, processor, virtual
from waywiser.doctor.finding import DoctorFinding
from waywiser.doctor.situation import Situation
from waywiser.profile import Profile
from waywiser.profile.rows import gpu_states_from
from waywiser.records import GpuState
from waywiser.series.health import health_report, readings
from waywiser.series.quality_flags import gpus_fed_by_host
from waywiser.severity import ORDER

Check = Callable[[Situation], Iterator[DoctorFinding]]

CHECKS: tuple[Check, ...] = (
    gpu.presence,
    gpu.driver,
    gpu.links,
    gpu.errors,
    gpu.counters,
    gpu.affinity,
    gpu.clocks,
    gpu.users,
    gpu.modes,
    virtual.virtualisation,
    virtual.topology_notes,
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


def unchecked(situation: Situation) -> tuple[str, ...]:
    """What the checks could not see, since a profile does not store it; empty for this machine."""
    if situation.is_live:
        return ()
    missing = ["driver and CUDA runtime of this installation", "CPUs outside the cpuset"]
    gpus = situation.machine.gpus
    if not situation.is_host_known:
        missing += ["CPU frequency and load", "memory settings", "limits of cgroups"]
    if gpus and not all(gpu.links_known for gpu in gpus):
        missing.append("links, clocks and modes of GPUs")
    if gpus and situation.health is None:
        missing.append("error counters of GPUs")
    return tuple(missing)


def live_situation() -> Situation:
    """This machine, now. Raises as `waywiser.hardware.capture.capture_live` does."""
    from waywiser import native
    from waywiser.hardware.assemble import machine_from
    from waywiser.hardware.capture import capture_live
    from waywiser.hardware.system_files import SystemFiles

    machine = machine_from(capture_live())
    library = native.load()
    return Situation(machine, SystemFiles(), library.backend, library.runtime_version)


def stored_situation(profile: Profile) -> Situation:
    """What a profile stored of its machine. Raises `ProfileError` for a damaged file."""
    by_series = profile.rows_by_series()
    all_states: list[GpuState] = []
    link_states: list[GpuState] = []
    for identity, workload in profile.workloads_of(by_series).items():
        fed = gpus_fed_by_host(workload)
        for row in by_series[identity]:
            try:
                states = gpu_states_from(row.gpu_states)
            except msgspec.MsgspecError as error:
                raise profile.damaged_visit(row, error) from error
            all_states += states
            link_states += [state for state in states if state.index in fed]
    runs = profile.health()
    counted = readings(runs)
    return Situation(
        profile.machine,
        stored=profile.environment,
        gpu_states=tuple(all_states),
        link_states=tuple(link_states),
        health=health_report(runs),
        counters=counted[-1].gpus if counted else (),
    )
