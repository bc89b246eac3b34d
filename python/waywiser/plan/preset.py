"""How thorough a survey is: the presets, and the reason for each of their numbers."""

from __future__ import annotations

import math
from typing import Literal

from waywiser.plan.sizes import DEFAULT
from waywiser.records import Rule
from waywiser.words import Value, WaywiserError

Variations = Literal["none", "single", "pairs"]
"""Of parameters and memory variants: defaults only; each alone away from its default; every two of
them together as well, up to `waywiser.plan.vary.MOST_COMBINATIONS`."""

MOST_GPUS = 8
"""The deadline grows with the GPUs up to so many."""


class Preset(Value, frozen=True):
    """What a survey visits, how often and for how long."""

    name: str
    description: str
    processes: int
    """Fresh processes that measure representative sizes and concurrent sets."""
    variations: Variations
    secondary_variations: Variations
    """Of secondary paths (see `waywiser.plan.curves`), which have cache states where they have
    any."""
    remote: bool
    """What nobody asks a machine for is measured too (see `waywiser.plan.curves`)."""
    operations: bool
    """All of them, not only the empty interval that small copies stand on."""
    layouts: Literal["named", "usual", "every"]
    """Where boxes and lists are tried (see `waywiser.plan.layouts`): on the usual paths, there but
    only where somebody names them, or everywhere with each setting."""
    equal_sizes: tuple[int, ...]
    """What of a class of equal paths is measured beside its first (see `waywiser.plan.classes`):
    these sizes of the default curves, and the others where one differs; none for everything."""
    rule: Rule
    secondary_octaves: int
    """Octaves between the sizes of a secondary curve, which goes no further than
    `waywiser.plan.sizes.GROWING`; a principal curve has all sizes."""
    largest_always: bool
    """The largest size is visited even where the rate has saturated before."""
    all_pairs: bool
    """Opposite pairs within a place, and of paths that nobody asks for, are measured too."""
    cache_sizes: tuple[int, ...]
    """Where sources in CPU memory are also measured dirtied and flushed; none for nowhere."""
    repeat_all: bool = False
    """All processes measure all sizes, not only the representative ones."""
    equal_settings: int = 0
    """Curves of the others in a class with so many settings away from their defaults are measured
    too, at the largest of ``equal_sizes``."""
    combined_sizes: tuple[int, ...] = ()
    """The only ones where two settings are away from their defaults at once."""
    sizes: str = DEFAULT
    """Where nobody asks for others."""
    links_only: bool = False
    """Nothing but what shows whether the links of the machine are well (see
    `waywiser.plan.check`)."""
    sets_by: Literal["reference", "all"] = "all"
    """By which executors all GPUs are measured at once (see `waywiser.plan.sets`): by the one that
    paths with a GPU are judged by, or by all that declare it."""
    set_sizes: tuple[int, ...] = (64 * 2**20, 256 * 2**20)
    """Of each transfer of such a set: two, for one alone does not show that it has saturated."""
    set_every_one: bool = False
    """One to all and all to one with every GPU as the one, not only with the first."""
    pair_smallest: int = 0
    """Opposite pairs are measured from this size on."""
    longest_seconds: float = math.inf
    """Sizes at which one execution is expected to take longer are left to who asks for them."""
    conditional: bool = False
    """Whether the other sizes of a class are measured where one of its paths differs."""
    evidence: bool = True
    """The links that paths use are looked at, also where nobody asks for a part of the plan."""
    seconds: float = 0.0
    """Nothing begins that is not expected to end so long after the start; 0 for no deadline."""
    seconds_between: float = 0.0
    """More, where there are several GPUs: each path between them is new."""
    seconds_per_gpu: float = 0.0
    """More, for each GPU after the first."""

    def deadline_seconds(self, gpus: int) -> float:
        """On a machine with so many GPUs; 0 for no deadline."""
        if gpus < 2:
            return self.seconds
        more = self.seconds_per_gpu * (min(gpus, MOST_GPUS) - 1)
        return self.seconds + self.seconds_between + more


_KIB, _MIB = 2**10, 2**20

CHECK = Preset(
    name="check",
    description="every link of the machine, alone and all at once, in up to 8 processes and under "
    "30 s: for every night",
    processes=8,
    variations="none",
    secondary_variations="none",
    remote=False,
    operations=False,
    layouts="named",
    # A check believes in no symmetry: a worse slot is what it looks for.
    equal_sizes=(),
    # Bandwidth at one size is quiet; what is not must not take the time of all others. A state of
    # the GPUs is read while samples are taken, which a visit of less than this may not allow.
    rule=Rule(minimum=6, minimum_seconds=0.03, soft_seconds=0.05, hard_seconds=0.15),
    secondary_octaves=1,
    largest_always=False,
    all_pairs=False,
    cache_sizes=(),
    links_only=True,
    # Within 1 % of what every link of this decade reaches.
    sizes="64MiB",
    sets_by="reference",
    set_sizes=(64 * _MIB,),
    evidence=False,
    # Leaves some of the thirty seconds for starting up and the table.
    seconds=25.0,
)

QUICK = Preset(
    name="quick",
    description="the best coverage of default settings that fits in under 30 s",
    processes=1,
    variations="none",
    secondary_variations="none",
    remote=False,
    operations=False,
    layouts="named",
    # A latency, a rate, and one between.
    equal_sizes=(8, _MIB, 64 * _MIB),
    # A first look: 2 % where it comes cheaply, never more than a quarter of a second for one.
    rule=Rule(soft_seconds=0.02, hard_seconds=0.25),
    secondary_octaves=6,
    largest_always=False,
    all_pairs=False,
    cache_sizes=(),
    longest_seconds=0.05,
    evidence=False,
    # Leaves some of the thirty seconds for starting up and the table.
    seconds=25.0,
    # What lies beyond costs most of the time and says least that is new.
    sizes="8:256MiB",
    # Whether both directions are had at once is a question of bandwidth.
    pair_smallest=16 * _MIB,
    sets_by="reference",
    set_sizes=(64 * _MIB,),
)

STANDARD = Preset(
    name="standard",
    description="every path that is asked for and each setting of the first of equal paths, "
    "representative sizes in four processes",
    # The fewest that show how far processes differ.
    processes=4,
    variations="single",
    secondary_variations="none",
    remote=False,
    operations=True,
    layouts="usual",
    equal_sizes=(8, _MIB, 64 * _MIB),
    # Other processes show more than more samples of one: what is not quiet after a tenth of a
    # second differs more between processes.
    rule=Rule(minimum=6, minimum_seconds=0.002, soft_seconds=0.01, hard_seconds=0.03),
    # A latency, a page, what a cache holds, a rate.
    secondary_octaves=7,
    largest_always=True,
    all_pairs=False,
    # A visit is a dozen executions and more: beyond this it takes seconds.
    longest_seconds=0.11,
    conditional=True,
    # Less than two minutes for one GPU and six for eight, starting and printing included.
    seconds=108.0,
    seconds_between=15.0,
    seconds_per_gpu=31.0,
    pair_smallest=_MIB,
    # One size in a private cache, one in a shared cache, one beyond most, and the one that all
    # processes measure.
    cache_sizes=(64 * _KIB, 2 * _MIB, 16 * _MIB, 64 * _MIB),
)

FULL = Preset(
    name="full",
    description="every way and setting, alone and in pairs, in six processes, to 8 GiB: in hours",
    # Six is the fewest for which a 95 % interval of the median exists (methodology 5).
    processes=6,
    repeat_all=True,
    variations="pairs",
    secondary_variations="single",
    remote=True,
    operations=True,
    layouts="every",
    # A latency, a page, a rate, and what lies between them; each setting where a rate tells.
    equal_sizes=(8, 4 * _KIB, 64 * _KIB, _MIB, 16 * _MIB, 64 * _MIB),
    equal_settings=1,
    conditional=True,
    combined_sizes=(_MIB, 64 * _MIB),
    # Beyond it are gigabytes on a disk, six times over.
    longest_seconds=0.6,
    rule=Rule(soft_seconds=0.08, hard_seconds=0.60),
    secondary_octaves=3,
    largest_always=True,
    all_pairs=True,
    set_sizes=(64 * _MIB, 256 * _MIB, 1024 * _MIB),
    set_every_one=True,
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
