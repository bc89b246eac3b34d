"""How thorough a survey is: the three presets, and the reason for each of their numbers."""

from __future__ import annotations

from typing import Literal

from waywiser.plan.sizes import DEFAULT
from waywiser.records import Rule
from waywiser.words import Value, WaywiserError

Variations = Literal["none", "single", "product"]
"""Of parameters and memory variants: defaults only; each alone away from its default; all of them
together, up to `waywiser.plan.vary.MOST_COMBINATIONS`."""


class Preset(Value, frozen=True):
    """What a survey visits, how often and for how long."""

    name: str
    description: str
    blocks: int
    """Visits of each series."""
    fresh_processes: bool
    """Each block is measured by a process of its own."""
    variations: Variations
    secondary_varied: bool
    """Also on secondary paths (see `waywiser.plan.curves`); the same holds for cache states."""
    remote: bool
    """What nobody asks a machine for is measured too: host memories that feed GPUs among
    themselves, and operations other than the empty interval (see `curves`)."""
    rule: Rule
    principal_octaves: int
    """Octaves between the sizes of a principal curve."""
    secondary_octaves: int
    """The same for the rest, which go no further than `waywiser.plan.sizes.GROWING`."""
    largest_always: bool
    """The largest size is visited even where the rate has saturated before."""
    host_pairs: bool
    """Opposite pairs that the host times are measured too, not only those timed on devices."""
    cache_sizes: tuple[int, ...]
    """Where sources in CPU memory are also measured dirtied and flushed; none for nowhere."""
    sizes: str = DEFAULT
    """Where nobody asks for others."""
    pair_smallest: int = 0
    """Opposite pairs are measured from this size on."""
    seconds: float = 0.0
    """The plan is cut to this expected time, best coverage first; 0 for no cut."""
    deadline_seconds: float = 0.0
    """What is not begun by then is skipped, where the machine is slower than expected; 0 for none.
    Like the cut, it does not hold for sizes that somebody asked for."""


_KIB, _MIB = 2**10, 2**20

QUICK = Preset(
    name="quick",
    description="the best coverage of default settings that fits in under 30 s",
    blocks=1,
    fresh_processes=False,
    variations="none",
    secondary_varied=False,
    remote=False,
    # A first look: 2 % where it comes cheaply, never more than a quarter of a second for one.
    rule=Rule(soft_seconds=0.02, hard_seconds=0.25),
    principal_octaves=1,
    secondary_octaves=6,
    largest_always=False,
    host_pairs=False,
    cache_sizes=(),
    # Leaves five of the thirty seconds for starting up, the table, and an estimate 25 % short.
    seconds=20.0,
    deadline_seconds=25.0,
    # What lies beyond costs most of the time and says least that is new.
    sizes="8:256MiB",
    # Whether both directions are had at once is a question of bandwidth.
    pair_smallest=16 * _MIB,
)

STANDARD = Preset(
    name="standard",
    description="every path, and each setting of the principal ones, in two processes",
    blocks=2,
    fresh_processes=True,
    variations="single",
    secondary_varied=False,
    remote=False,
    # Most series reach 1 % in a few milliseconds; the rest get a third of a second for 2 %: what
    # is not quiet by then is seldom quiet later, and every such series costs as much as thirty.
    rule=Rule(soft_seconds=0.02, hard_seconds=0.30),
    principal_octaves=1,
    secondary_octaves=5,
    largest_always=True,
    host_pairs=False,
    # One size in a private cache, one in a shared cache, one beyond most.
    cache_sizes=(64 * _KIB, 2 * _MIB, 64 * _MIB),
)

FULL = Preset(
    name="full",
    description="every combination of settings in six processes, for intervals between processes",
    # Six is the fewest for which a 95 % interval of the median exists (methodology 5).
    blocks=6,
    fresh_processes=True,
    variations="product",
    secondary_varied=True,
    remote=True,
    rule=Rule(soft_seconds=0.08, hard_seconds=0.60),
    principal_octaves=1,
    secondary_octaves=2,
    largest_always=True,
    host_pairs=True,
    cache_sizes=tuple(64 * _KIB * 4**step for step in range(7)),
)

PRESETS = {preset.name: preset for preset in (QUICK, STANDARD, FULL)}


def find_preset(name: str) -> Preset:
    """The preset of that name; raises `WaywiserError` listing the three."""
    try:
        return PRESETS[name]
    except KeyError:
        raise WaywiserError(
            f"there is no preset {name!r}", remedy=f"use one of {', '.join(PRESETS)}"
        ) from None
