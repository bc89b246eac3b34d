"""All checks, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from waywiser.curves import Finding, Point, at_least, curves_of
from waywiser.curves.headline import headline
from waywiser.curves.overview import overview
from waywiser.fitness import direct_storage, gpu, isolation, memory, nccl, processor, ranks, virtual
from waywiser.fitness.situation import Situation
from waywiser.profile import Profile, SeriesFrame, gpus_fed_by_host, health_report, readings
from waywiser.words import SEVERITY_ORDER, GpuState, format_rate

Check = Callable[[Situation], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    gpu.lost,
    virtual.simulated,
    gpu.presence,
    gpu.without_driver,
    gpu.driver,
    gpu.machine_code,
    gpu.links,
    gpu.errors,
    gpu.counters,
    gpu.affinity,
    gpu.clocks,
    gpu.users,
    gpu.modes,
    virtual.virtualisation,
    virtual.topology_notes,
    isolation.confidential_gpu,
    isolation.confidential_guest,
    isolation.iommu,
    isolation.acs,
    direct_storage.direct_storage,
    nccl.nccl,
    ranks.rank_limits,
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

DISTURBING: tuple[Check, ...] = (
    gpu.clocks,
    gpu.users,
    processor.governor,
    processor.quota,
    processor.load,
    memory.numa_balancing,
    memory.swap,
)
"""Checks of what disturbs all measurements of a machine."""

_RANKS = 2
"""Ranks whose limits are looked at: the fewest that exchange messages."""

OTHER_WORK = ("load", "gpu-in-use")
"""The findings of these that are about the work of others, and not about settings."""


def diagnose(situation: Situation) -> tuple[Finding, ...]:
    """Every finding of every check, the severest first."""
    findings = [finding for check in CHECKS for finding in check(situation)]
    return tuple(sorted(findings, key=lambda finding: -SEVERITY_ORDER.index(finding.severity)))


def disturbances(situation: Situation) -> tuple[Finding, ...]:
    """The warnings of `DISTURBING` checks. Reports warn of them too, and of no others."""
    found = (finding for check in DISTURBING for finding in check(situation))
    return at_least(found, "warning")


def seen(finding: Finding) -> str:
    """What was found, and where it was seen."""
    return f"{finding.text} ({'; '.join(finding.evidence)})"


def unchecked(situation: Situation) -> tuple[str, ...]:
    """What the checks could not see, since a profile does not store it; empty for this machine."""
    if situation.is_live:
        return ()
    missing = ["driver and CUDA runtime of this installation", "CPUs outside the cpuset"]
    gpus = situation.machine.gpus
    if not situation.is_host_known:
        missing += ["CPU frequency", "memory settings", "limits of cgroups"]
    if situation.load is None:
        missing.append("load by other programs")
    if gpus and not all(gpu.links_known for gpu in gpus):
        missing.append("links, clocks and modes of GPUs")
    if gpus and "gpu_confidential" not in situation.stored:
        missing.append("confidential computing, IOMMU mode, ACS and GPUDirect Storage")
    if gpus and situation.health is None:
        missing.append("error counters of GPUs")
    return tuple(missing)


def live_situation() -> Situation:
    """This machine, now. Raises as `waywiser.machine.capture.capture_live` does."""
    from waywiser.machine import SystemFiles, capture_live, machine_from, native, present_load
    from waywiser.machine.environment import gpu_environment
    from waywiser.machine.nccl_library import try_nccl
    from waywiser.machine.rank_limits import rank_limits

    machine = machine_from(capture_live())
    library = native.load()
    return Situation(
        machine,
        SystemFiles(),
        library.backend,
        library.runtime_version,
        library.architectures,
        native.build_text(library),
        stored=gpu_environment(),
        load_now=present_load(),
        nccl=try_nccl(library) if len(machine.gpus) > 1 else None,
        rank_limits=tuple(rank_limits(_RANKS)),
    )


def stored_situation(profile: Profile) -> Situation:
    """What a profile stored of its machine. Raises `ProfileError` for a damaged file."""
    frame = SeriesFrame.read(profile)
    link_states: list[GpuState] = []
    for workload, _, visits in frame.series:
        fed = gpus_fed_by_host(workload)
        states = chain.from_iterable(map(frame.gpu_states_of, frame.visits[visits]))
        link_states += [state for state in states if state.index in fed]
    runs = profile.health()
    counted = readings(runs)
    return Situation(
        profile.machine,
        stored=profile.environment,
        gpu_states=frame.gpu_states,
        link_states=tuple(link_states),
        health=health_report(runs),
        counters=counted[-1].gpus if counted else (),
        measured=_measured(profile, frame) if isolation.may_cost(profile.environment) else {},
    )


def _measured(profile: Profile, frame: SeriesFrame) -> dict[str, str]:
    """The slowest bandwidth of each group of headline paths."""
    found = overview(profile, frame=frame)
    groups = headline(profile.machine, (each.workload for each in frame.series))
    slowest: dict[str, Point] = {}
    for curve in curves_of(found.series):
        if curve.text in groups and (point := curve.plateau) is not None:
            known = slowest.setdefault(groups[curve.text], point)
            if point.rate < known.rate:
                slowest[groups[curve.text]] = point
    return {group: f"{group} {_rate_text(point)}" for group, point in slowest.items()}


def _rate_text(point: Point) -> str:
    share = point.estimate.relative if point.estimate else None
    of = f", {point.of_bound * 100:.0f} % of the theoretical peak" if point.of_bound else ""
    return f"{format_rate(point.rate, share)} GB/s{of}"
