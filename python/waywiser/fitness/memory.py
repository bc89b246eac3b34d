"""Checks of the host's memory: who moves, joins, swaps or limits pages."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation
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


def numa_balancing(situation: Situation) -> Iterator[Finding]:
    """The kernel moves pages to where they are used, in the middle of a measurement."""
    setting = situation.number("numa_balancing")
    if setting and len(situation.machine.numa) > 1:
        yield Finding(
            "numa-balancing",
            "warning",
            "automatic NUMA balancing is on: pages move and are unmapped while they are measured",
            evidence=(f"/proc/sys/kernel/numa_balancing: {setting:g}",),
            remedy="as root: sysctl kernel.numa_balancing=0",
        )


def huge_pages(situation: Situation) -> Iterator[Finding]:
    """Whether ordinary memory comes in huge pages unasked, or cannot come so at all."""
    setting = situation.text("transparent_huge_pages")
    if setting in HUGE_PAGES:
        what, remedy = HUGE_PAGES[setting]
        evidence = f"/sys/kernel/mm/transparent_hugepage/enabled: {setting}"
        yield Finding("huge-pages", "info", what, evidence=(evidence,), remedy=remedy)


def swap(situation: Situation) -> Iterator[Finding]:
    """Memory that is written to disk because there is too little of it."""
    used = situation.number("swap_used_bytes")
    total = situation.number("memory_total_bytes")
    if used and total and used > SWAPPED_FRACTION * total:
        yield Finding(
            "swap",
            "warning",
            f"{used / 2**30:.1f} GiB are swapped out: buffers may be swapped too",
            evidence=("/proc/meminfo: SwapTotal minus SwapFree",),
            remedy="wait until memory is free, or give the survey a smaller --memory",
        )


def lock_limit(situation: Situation) -> Iterator[Finding]:
    """How much memory the process may lock itself."""
    limit = situation.number("memlock_bytes")
    if limit is not None and limit < LOW_MEMLOCK_BYTES:
        yield Finding(
            "memlock",
            "info",
            f"only {format_bytes(int(limit))} may be locked: enough for CUDA, to which the limit "
            "does not apply, but not for RDMA or mlock",
            evidence=("/proc/self/limits: Max locked memory",),
            remedy="ulimit -l unlimited (limits.conf; docker --ulimit memlock=-1)",
        )


def cgroup_memory(situation: Situation) -> Iterator[Finding]:
    """The cgroup's memory limit, beyond which the kernel kills."""
    limit = situation.number("cgroup_memory_bytes")
    if limit is not None and limit < LOW_MEMORY_BYTES:
        yield Finding(
            "cgroup-memory",
            "warning",
            f"the cgroup allows {limit / 2**30:.1f} GiB: the default survey would be killed",
            evidence=("memory.max of this process's cgroup",),
            remedy=f"survey with --memory {max(1, int(limit) >> 21)}MiB, or ask for more memory",
        )
