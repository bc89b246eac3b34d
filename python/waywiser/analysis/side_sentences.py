"""What the sides of a machine are, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.series.cores import CoreVerdict
from waywiser.series.locality import Sides
from waywiser.stats.division import P_LIMIT
from waywiser.words import ranges_of


def sentences(found: Sides) -> Iterator[str]:
    """One of GPUs, where there are several, and one of cores, where anything was seen."""
    if len(found.groups) == 2:
        yield _two(found)
    elif len(found.gpus) > 1:
        yield _one(found)
    if text := _cores(found.cores):
        yield text


def _two(found: Sides) -> str:
    first, second = (f"{_plural('GPU', group)} {_ranges(group)}" for group in found.groups)
    text = (
        f"{first} and {second} are on two sides: {found.near_seconds * 1e6:.2f} µs from memory on "
        f"their own, {found.far_seconds * 1e6:.2f} from the other, the same from {found.agreeing} "
        f"of {len(found.blocks)} blocks"
    )
    if found.by == "level":
        return f"{text}; by their level alone, since all blocks were on one side"
    return f"{text} (p = {found.p_value:.2g})"


def _one(found: Sides) -> str:
    chance = f" (p = {found.p_value:.2g})" if found.p_value is not None else ""
    if found.p_value is not None and found.p_value <= P_LIMIT:
        chance += ", and differences that are too small to divide them"
    return (
        f"GPUs {_ranges(found.gpus)} show no sides: {found.near_seconds * 1e6:.2f} µs from any of "
        f"{len(found.blocks)} blocks of memory{chance}"
    )


def _cores(found: CoreVerdict) -> str:
    if found.verdict in ("not told", "none seen"):
        return ""
    times = f"{found.near_seconds * 1e9:.0f} against {found.far_seconds * 1e9:.0f} ns for a load"
    if found.verdict == "drifting":
        return (
            f"cores drift between two sides ({times}): {len(found.changed)} of "
            f"{len(found.cores)} changed, the quickest within {found.seconds:.2g} s"
        )
    return f"cores stayed on one of two sides each ({times}) for {found.seconds:.2g} s"


def _plural(what: str, members: Sequence[int]) -> str:
    return what if len(members) == 1 else f"{what}s"


def _ranges(numbers: Sequence[int]) -> str:
    """``0-3, 6`` for 0, 1, 2, 3, 6."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges_of(numbers))
