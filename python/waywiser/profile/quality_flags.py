"""Quality flags of a number, each a value that names its remedy (methodology 12)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from waywiser.machine import Bound, Machine, Traits
from waywiser.profile.block import BlockEstimate
from waywiser.stats import median
from waywiser.stats.dependence import ENOUGH_TIMES
from waywiser.words import Rule, Series, Value, Workload, count

SPREAD_LIMIT = 0.10
"""Interquartile range over median from which the middle half is called wide."""

DEVIATION_LIMIT = 0.50
"""Distance from the median, over it, from which severe outliers are reported."""

TARGET = Rule().target
"""Half-width of the interval over the median at which sampling may stop, by default. Halves and
blocks whose medians differ by less are not distinguished."""

OUTLIER_PROCESS = "outlier process"
"""The kind that counts processes which no figure uses."""

CROWDED = "crowded"
"""The kind of series whose ranks share CPUs: what was measured is how these take turns."""

REMEDIES = {
    "failed block": "the reason is listed; survey again, or --resume where it was interrupted",
    "summary only": "it has no interval and none can be made: survey the machine itself",
    "few samples": "survey them again alone with --only, or with a more thorough --preset",
    "not converged": "survey them again alone with --only, or with a more thorough --preset",
    "blocks disagree": "use --preset full and read the interval between processes",
    "drift": "let the machine settle: stop other work, wait for steady clocks, survey again",
    "spread": "stop other work on the machine and ask waywiser doctor",
    "outliers": "stop other work on the machine and ask waywiser doctor",
    "throttled": "cool the GPU or raise its power limit; see nvidia-smi -q -d PERFORMANCE",
    "slow link": "compare slot, riser and firmware settings; ask waywiser doctor",
    "above bound": "use sizes that exceed all caches; if they are faster than the bound too, "
    "check the bound",
    "below resolution": "compare with the empty interval, or use larger sizes",
    "misplaced": "free memory on that node, or widen the cpuset that forbids it",
    "unverified": "allow move_pages in the container, or survey outside it",
    "void": "the path holds its host at a closed gate: time it by the host, and report it",
    OUTLIER_PROCESS: "no figure uses it, --json has it; stop other work on the machine and ask "
    "waywiser doctor",
    CROWDED: "start no more ranks than there are free CPUs",
}
"""What to do about each kind of quality flag; its keys are the kinds, the gravest first but for the
last ones, which came later: their order gives their letters."""


Origin = Literal["surveyed", "imported", "simulated"]
"""Where the numbers of a profile are from. Only a survey can be repeated by surveying."""

_REMEDIES_OF_IMPORTED = {
    "failed block": "the reason is that of the other tool",
    "summary only": "the file has no repetitions: let the tool write them, if it can",
    "few samples": "let the other tool repeat more often",
    "not converged": "let the other tool repeat more often",
    "blocks disagree": "import more runs of the other tool",
    "drift": "run the other tool again while nothing else uses the machine",
    "spread": "run the other tool again while nothing else uses the machine",
    "outliers": "run the other tool again while nothing else uses the machine",
    "slow link": "compare slot, riser and firmware settings",
    OUTLIER_PROCESS: "no figure uses it; import more runs of the other tool",
}


def remedy_of(kind: str, origin: Origin) -> str:
    """What to do about a quality flag of a profile of this origin; empty if nothing is."""
    if origin == "simulated":
        return "nothing was measured: the machine is simulated"
    if origin == "imported":
        return _REMEDIES_OF_IMPORTED.get(kind, "")
    return REMEDIES.get(kind, "")


class QualityFlag(Value, frozen=True):
    """Why a number deserves less trust, in one line."""

    kind: str
    """A key of `REMEDIES`."""
    what: str

    @property
    def remedy(self) -> str:
        return REMEDIES[self.kind]

    def __str__(self) -> str:
        return f"{self.kind}: {self.what} ({self.remedy})"


def quality_flags(
    series: Series,
    blocks: Sequence[BlockEstimate],
    converged: bool,
    machine: Machine | None = None,
    best: Bound | None = None,
    outliers: Sequence[BlockEstimate] = (),
) -> tuple[QualityFlag, ...]:
    """All quality flags of a series, the gravest kind first, at most one of each kind.

    ``blocks`` are the estimates of its visits that have counted samples, but for those that are
    ``outliers`` of the survey; ``machine`` and ``best``
    say what its links could do; without them no flag is about links.
    """
    found: dict[str, QualityFlag] = {}
    for flag in (
        *_of_sampling(series, blocks, converged),
        *_of_blocks(blocks),
        *_of_outliers(blocks, outliers),
        *_of_bound(series.workload, blocks, best),
        *_of_conditions(series, machine),
    ):
        found.setdefault(flag.kind, flag)
    return tuple(found[kind] for kind in REMEDIES if kind in found)


def _of_sampling(
    series: Series, blocks: Sequence[BlockEstimate], converged: bool
) -> Iterator[QualityFlag]:
    for visit in series.visits:
        if visit.failure is not None and visit.stop != "skipped":
            yield QualityFlag("failed block", f"block {visit.block}: {visit.failure.reason}")
    summaries = [block for block in blocks if block.summary]
    if summaries:
        yield QualityFlag("summary only", "another tool's mean or median, without its samples")
    for block in blocks:
        if block.interval is None and not block.summary and not block.drift:
            yield QualityFlag("few samples", _few_samples(block))
    stops = sorted({visit.stop for visit in series.visits if visit.stop in ("budget", "limit")})
    if stops and not converged and not summaries:
        yield QualityFlag("not converged", f"sampling stopped at its {' and '.join(stops)}")
    void = sum(block.void for block in blocks)
    if void:
        yield QualityFlag(
            "void", f"{count(void, 'sample')} not counted: the watchdog opened the gate"
        )
    below = sum(block.below_resolution for block in blocks)
    if below:
        yield QualityFlag(
            "below resolution", f"{count(below, 'sample')} under 20 times the timer's overhead"
        )


def _few_samples(block: BlockEstimate) -> str:
    """Why the samples of a block give no interval."""
    if block.count < ENOUGH_TIMES:
        gives = "gives" if block.count == 1 else "give"
        return f"{count(block.count, 'sample')} {gives} no interval"
    return (
        f"{block.count} samples of one process may depend on each other: they are not surely ten "
        "independent ones, and give no interval"
    )


def _of_blocks(blocks: Sequence[BlockEstimate]) -> Iterator[QualityFlag]:
    if blocks_disagree(blocks):
        least = min(block.median for block in blocks)
        most = max(block.median for block in blocks)
        yield QualityFlag("blocks disagree", f"medians of blocks differ by {most / least - 1:.1%}")
    for block in blocks:
        if abs(block.drift) > TARGET:
            yield QualityFlag("drift", f"the second half of a block took {block.drift:+.1%}")
        if block.spread >= SPREAD_LIMIT:
            yield QualityFlag("spread", f"the middle half spans {block.spread:.0%} of the median")
        if block.outliers.severe and block.largest_deviation >= DEVIATION_LIMIT:
            severe = count(block.outliers.severe, "sample")
            yield QualityFlag("outliers", f"{severe}, up to {block.largest_deviation:.0%} off")


def _of_outliers(
    blocks: Sequence[BlockEstimate], outliers: Sequence[BlockEstimate]
) -> Iterator[QualityFlag]:
    if outliers:
        middle = median([block.median for block in blocks])
        furthest = max(outliers, key=lambda block: abs(math.log(block.median / middle)))
        numbers = ", ".join(str(block.block) for block in outliers)
        yield QualityFlag(
            OUTLIER_PROCESS,
            f"{len(outliers)} of {len(blocks) + len(outliers)} processes not used (block "
            f"{numbers}), up to {furthest.median / middle - 1:+.0%} in time",
        )


def blocks_disagree(blocks: Sequence[BlockEstimate]) -> bool:
    """Two medians differ by more than `TARGET` and their intervals do not overlap."""
    known = sorted(blocks, key=lambda block: block.median)
    return any(
        slow.median > fast.median * (1 + TARGET)
        and fast.interval is not None
        and slow.interval is not None
        and not fast.interval.overlaps(slow.interval)
        for position, fast in enumerate(known)
        for slow in known[position + 1 :]
    )


def _of_bound(
    workload: Workload, blocks: Sequence[BlockEstimate], best: Bound | None
) -> Iterator[QualityFlag]:
    if best is None or not blocks or not workload.rated_bytes:
        return
    share = workload.rated_bytes / median([b.median for b in blocks]) / best.bytes_per_second
    if share > 1:
        yield QualityFlag("above bound", f"{share:.1%} of the theoretical peak")


def _of_conditions(series: Series, machine: Machine | None) -> Iterator[QualityFlag]:
    fed = gpus_fed_by_host(series.workload) if machine is not None else ()
    gpus = {gpu.index: gpu for gpu in machine.gpus if gpu.index in fed} if machine else {}
    traits = machine.traits if machine is not None else Traits()
    if machine is not None and are_crowded(series.workload, machine):
        yield QualityFlag(CROWDED, "its ranks share CPUs")
    for visit in series.visits:
        for state in visit.gpu_states:
            if state.throttle:
                yield QualityFlag("throttled", f"gpu:{state.index}: {', '.join(state.throttle)}")
            gpu = gpus.get(state.index)
            if gpu is not None:
                below = gpu.pcie.below_best(state.pcie_generation, state.pcie_width)
                if below:
                    yield QualityFlag("slow link", f"gpu:{gpu.index} ran at {below}")
        for buffer in visit.buffers:
            if buffer.state == "misplaced":
                part = f"{buffer.fraction_on_place:.0%} of {buffer.memory} was on its place"
                yield QualityFlag("misplaced", part)
            if buffer.state == "unverified" and not _migrates(buffer.memory, traits):
                yield QualityFlag(
                    "unverified", f"the place of the pages of {buffer.memory} is not known"
                )


def _migrates(memory: str, traits: Traits) -> bool:
    """Whether its pages move to the processor that touches them: where they are is not
    known, and nothing is to be done about it."""
    kind = memory.partition("@")[0].partition("[")[0]
    return traits.memory(kind).migrates


def are_crowded(workload: Workload, machine: Machine) -> bool:
    """Whether ranks at its ends share CPUs."""
    if not machine.ranks:
        return False
    at_ends = {place.index for place in workload.places if place.kind == "rank"}
    cpus = [cpu for rank in machine.ranks if rank.index in at_ends for cpu in rank.cpus]
    return len(cpus) > len(set(cpus))


def gpus_fed_by_host(workload: Workload) -> set[int]:
    """GPUs at one end of a transfer whose other end is host memory: their PCIe link is loaded."""
    fed: set[int] = set()
    for transfer in workload.transfers:
        places = transfer.path.places
        if "numa" in [place.kind for place in places]:
            fed.update([place.index for place in places if place.kind == "gpu"])
    return fed
