"""How thorough a survey is: the presets with the reason for each number, and what else a request
may ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum

import msgspec

from waywiser.curves.exchanges import as_measured
from waywiser.curves.sizes import DEFAULT
from waywiser.words import Rule, Value, WaywiserError

MOST_GPUS = 8
"""The deadline grows with the GPUs up to so many."""


class Depth(IntEnum):
    """How far a survey goes beyond the defaults; of parameters and variants, which are varied."""

    DEFAULTS = 0
    """No settings, layouts and operations beside the empty interval, unless the user names them.
    All GPUs at once move bytes by the reference executor alone."""
    SINGLE = 1
    """Each setting of a principal path alone, usual layouts, all operations, and the links that
    paths use. The largest size is never skipped. The other sizes of a class are measured where one
    of its paths differs. All GPUs at once move bytes by all executors that declare it. What large
    copies take from other work is measured."""
    PAIRS = 2
    """Every two settings as well, up to `waywiser.measure.plan.curves.MOST_COMBINATIONS`, and each
    of a secondary path; what is rarely requested of a machine; all layouts and opposite pairs;
    every GPU in turn as the one of sets. All processes measure all sizes."""


class Preset(Value, frozen=True):
    """What a survey visits, how often and for how long."""

    name: str
    description: str
    depth: Depth
    processes: int
    """Fresh processes that measure representative sizes and concurrent sets."""
    equal_sizes: tuple[int, ...]
    """What of a class of equal paths is measured beside its first (see `waywiser.curves.classes`):
    these sizes of the default curves; none for everything."""
    rule: Rule
    secondary_octaves: int
    """Octaves between the sizes of a secondary curve, which goes no further than
    `waywiser.curves.sizes.GROWING`; a principal curve has all sizes."""
    sizes: str = DEFAULT
    """The default sizes."""
    set_sizes: tuple[int, ...] = (64 * 2**20, 256 * 2**20)
    """Sizes of each transfer of a set over all GPUs: two, for one alone does not show that it has
    saturated."""
    pair_smallest: int = 0
    """Opposite pairs are measured from this size on."""
    cache_sizes: tuple[int, ...] = ()
    """Sizes at which sources in CPU memory are also measured dirtied and flushed; none for no
    size."""
    combined_sizes: tuple[int, ...] = ()
    """The only ones where two settings are away from their defaults at once; none for all."""
    links_only: bool = False
    """Only the series that show whether the links of the machine are healthy (see
    `waywiser.measure.plan.sets.check_curves`)."""
    longest_seconds: float = math.inf
    """Sizes at which one execution is expected to take longer are measured on request only."""
    seconds: float = 0.0
    """Seconds after the start by which every visit is expected to end; 0 for no deadline."""
    seconds_between: float = 0.0
    """More, if there are several GPUs: each path between them is new."""
    seconds_per_gpu: float = 0.0
    """More, for each GPU after the first."""

    @property
    def secondary_depth(self) -> Depth:
        """The depth of secondary paths (see `waywiser.measure.plan.curves`): one less."""
        return Depth(max(self.depth - 1, 0))

    def deadline_seconds(self, gpus: int) -> float:
        """The deadline on a machine with so many GPUs; 0 for no deadline."""
        if gpus < 2:
            return self.seconds
        more = self.seconds_per_gpu * (min(gpus, MOST_GPUS) - 1)
        return self.seconds + self.seconds_between + more


class Request(Value, frozen=True):
    """What was asked for: with the machine it gives the same plan again."""

    preset: str = "standard"
    only: tuple[str, ...] = ()
    sizes: str = ""
    """As in `waywiser.curves.sizes`; empty for those of the preset."""
    workloads: tuple[str, ...] = ()
    """Named by the user, instead of the preset's own; ``only`` adds of those what it matches."""
    memory_bytes: int = 4 << 30
    """Size of all buffers of a workload together, host and device."""
    seed: int = 1
    deadline_seconds: float = 0.0
    """The survey ends in so long, and uses all of it; 0 for the deadline of the preset."""
    model: bool = False
    """The sets that a model of the machine needs are measured too."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """``only`` for texts of a survey: comparisons name exchanges with more."""
        return tuple(map(as_measured, self.only))

    @property
    def texts(self) -> tuple[str, ...]:
        """All in which the user names places."""
        return (*self.only, *self.workloads)

    def of_paths(self, patterns: Iterable[str], seconds: float = 0.0) -> Request:
        """The same of other paths, in so many seconds; 0 for the time that they need."""
        return msgspec.structs.replace(self, only=tuple(patterns), deadline_seconds=seconds)

    @property
    def is_narrow(self) -> bool:
        """Whether the user selected a part of the plan: every process measures all of it."""
        return bool(self.only or self.sizes or self.workloads)


_KIB, _MIB = 2**10, 2**20

CHECK = Preset(
    name="check",
    description="every link of the machine, alone and concurrently, in up to 8 processes and under "
    "30 s: for every night",
    depth=Depth.DEFAULTS,
    processes=8,
    # A check believes in no symmetry: a worse slot is what it looks for.
    equal_sizes=(),
    # Bandwidth at one size is quiet; what is not must not take the time of all others. A state of
    # the GPUs is read while samples are taken, which a visit of less than this may not allow.
    rule=Rule(minimum=6, minimum_seconds=0.03, soft_seconds=0.05, hard_seconds=0.15),
    secondary_octaves=1,
    links_only=True,
    # Within 1 % of what every link of this decade reaches.
    sizes="64MiB",
    set_sizes=(64 * _MIB,),
    # Leaves some of the thirty seconds for starting up and the table.
    seconds=25.0,
)

QUICK = Preset(
    name="quick",
    description="the best coverage of default settings that fits in under 30 s",
    depth=Depth.DEFAULTS,
    processes=1,
    # A latency, a rate, and one between.
    equal_sizes=(8, _MIB, 64 * _MIB),
    # A first look: 2 % where it comes cheaply, never more than a quarter of a second for one.
    rule=Rule(soft_seconds=0.02, hard_seconds=0.25),
    secondary_octaves=6,
    longest_seconds=0.05,
    # Leaves some of the thirty seconds for starting up and the table.
    seconds=25.0,
    # What lies beyond costs most of the time and says least that is new.
    sizes="8:256MiB",
    # Whether both directions are had at once is a question of bandwidth.
    pair_smallest=16 * _MIB,
    set_sizes=(64 * _MIB,),
)

STANDARD = Preset(
    name="standard",
    description="all headline paths, and each setting of the first of equivalent paths, "
    "representative sizes in four processes",
    depth=Depth.SINGLE,
    # The fewest that show how far processes differ.
    processes=4,
    equal_sizes=(8, _MIB, 64 * _MIB),
    # Other processes show more than more samples of one: what is not quiet after a tenth of a
    # second differs more between processes.
    rule=Rule(minimum=6, minimum_seconds=0.002, soft_seconds=0.01, hard_seconds=0.03),
    # A latency, a page, what a cache holds, a rate.
    secondary_octaves=7,
    # A visit is a dozen executions and more: beyond this it takes seconds.
    longest_seconds=0.11,
    # Less than two minutes for one GPU and six for eight, starting and printing included.
    seconds=118.0,
    seconds_between=15.0,
    seconds_per_gpu=31.0,
    pair_smallest=_MIB,
    # One size in a private cache, one in a shared cache, one beyond most, and the one that all
    # processes measure.
    cache_sizes=(64 * _KIB, 2 * _MIB, 16 * _MIB, 64 * _MIB),
)

FULL = Preset(
    name="full",
    description="all paths and settings, alone and in pairs, in six processes, to 8 GiB: in hours",
    depth=Depth.PAIRS,
    # Six is the fewest for which a 95 % interval of the median exists (methodology 5).
    processes=6,
    # A latency, a page, a rate, and what lies between them; settings where a size shows a rate.
    equal_sizes=(8, 4 * _KIB, 64 * _KIB, _MIB, 16 * _MIB, 64 * _MIB),
    combined_sizes=(_MIB, 64 * _MIB),
    # Beyond it are gigabytes on a disk, six times over.
    longest_seconds=0.6,
    rule=Rule(soft_seconds=0.08, hard_seconds=0.60),
    secondary_octaves=3,
    set_sizes=(64 * _MIB, 256 * _MIB, 1024 * _MIB),
    # The paper's drop of zero-copy reads lies beyond 1 GiB.
    sizes="8:8GiB",
    cache_sizes=tuple(64 * _KIB * 4**step for step in range(7)),
)

PRESETS = {preset.name: preset for preset in (CHECK, QUICK, STANDARD, FULL)}


def find_preset(name: str) -> Preset:
    """The preset of that name; raises `WaywiserError` listing all."""
    try:
        return PRESETS[name]
    except KeyError:
        raise WaywiserError(
            f"there is no preset {name!r}", remedy=f"use one of {', '.join(PRESETS)}"
        ) from None
