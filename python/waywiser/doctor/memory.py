"""Checks of the host's memory: who moves, joins, swaps or limits pages."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.doctor.finding import DoctorFinding
from waywiser.doctor.situation import Situation
from waywiser.machine.environment import SWAPPED_FRACTION
from waywiser.words import format_bytes

LOW_MEMLOCK_BYTES = 64 << 20
LOW_MEMORY_BYTES = 4 << 30
"""What a survey takes by default at most."""

HUGE_PAGES = {
    "always": (
        "transparent huge pages are always on: ordinary pageable memory uses them too",
        "compare only with machines that have the same setting",
    ),
    "never": (
        "transparent huge pages are off: pageable[pages=huge] gets ordinary pages",
        "as root: write madvise into it",
    ),
}
"""What a setting of transparent huge pages means, and what can be done."""


def numa_balancing(situation: Situation) -> Iterator[DoctorFinding]:
    """The kernel moves pages to where they are used, in the middle of a measurement."""
    setting = situation.number("numa_balancing")
    if setting and len(situation.machine.numa) > 1:
        yield DoctorFinding(
            "numa-balancing",
            "warning",
            "automatic NUMA balancing is on: pages move and are unmapped while they are measured",
            f"/proc/sys/kernel/numa_balancing: {setting:g}",
            "as root: sysctl kernel.numa_balancing=0",
        )


def huge_pages(situation: Situation) -> Iterator[DoctorFinding]:
    """Whether ordinary memory comes in huge pages unasked, or cannot come so at all."""
    setting = situation.text("transparent_huge_pages")
    if setting in HUGE_PAGES:
        what, remedy = HUGE_PAGES[setting]
        evidence = f"/sys/kernel/mm/transparent_hugepage/enabled: {setting}"
        yield DoctorFinding("huge-pages", "info", what, evidence, remedy)


def swap(situation: Situation) -> Iterator[DoctorFinding]:
    """Memory that is written to disk because there is too little of it."""
    used = situation.number("swap_used_bytes")
    total = situation.number("memory_total_bytes")
    if used and total and used > SWAPPED_FRACTION * total:
        yield DoctorFinding(
            "swap",
            "warning",
            f"{used / 2**30:.1f} GiB are swapped out: buffers may be swapped too",
            "/proc/meminfo: SwapTotal minus SwapFree",
            "wait until memory is free, or give the survey a smaller --memory",
        )


def lock_limit(situation: Situation) -> Iterator[DoctorFinding]:
    """How much memory the process may lock itself."""
    limit = situation.number("memlock_bytes")
    if limit is not None and limit < LOW_MEMLOCK_BYTES:
        yield DoctorFinding(
            "memlock",
            "info",
            f"only {format_bytes(int(limit))} may be locked: enough for CUDA, to which the limit "
            "does not apply, but not for RDMA or mlock",
            "/proc/self/limits: Max locked memory",
            "ulimit -l unlimited (limits.conf; docker --ulimit memlock=-1)",
        )


def cgroup_memory(situation: Situation) -> Iterator[DoctorFinding]:
    """The cgroup's memory limit, beyond which the kernel kills."""
    limit = situation.number("cgroup_memory_bytes")
    if limit is not None and limit < LOW_MEMORY_BYTES:
        yield DoctorFinding(
            "cgroup-memory",
            "warning",
            f"the cgroup allows {limit / 2**30:.1f} GiB: the default survey would be killed",
            "memory.max of this process's cgroup",
            f"survey with --memory {max(1, int(limit) >> 21)}MiB, or ask for more memory",
        )
