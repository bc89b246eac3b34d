"""Finds times that fall as the size grows: a library changes its protocol, or noise.

Models keep them, since measurements have them. A view that shows such a time states it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.words import format_bytes, format_time

Array = NDArray[Any]

LEAST_FALL = 0.01
"""The share of the longer time from which on a fall is said: less is scatter."""
LEAST_DROP = 0.03
"""The share of the longer time from which on a drop is said to be another protocol."""
_BETWEEN = 128
"""Sizes between two measured ones that are looked at: a peak before another protocol is narrow."""


class LongerTime(NamedTuple):
    """The smaller size that takes longest, and longer than a size in question."""

    bytes: int
    seconds: float

    def text(self, bytes: int, seconds: float) -> str:
        return (
            f"the predicted time falls with the size: {format_bytes(bytes)} takes "
            f"{format_time(seconds)}, {1 - seconds / self.seconds:.1%} less than "
            f"{format_bytes(self.bytes)} ({format_time(self.seconds)}): another protocol, or noise"
        )


def longer_before(
    times: Callable[[Array], Array], sizes: Sequence[int], bytes: int
) -> LongerTime | None:
    """The size below ``bytes`` that takes longest by the model ``times`` over the measured
    ``sizes``; None if none takes longer by `LEAST_FALL`."""
    ends = [size for size in sizes if size < bytes]
    if not ends:
        return None
    steps = [np.geomspace(a, b, _BETWEEN + 2) for a, b in pairwise([*ends, bytes])]
    at = np.unique(np.concatenate(steps).round())
    at = at[at < bytes]
    found = times(at)
    top = int(np.argmax(found))
    own = float(times(np.array([float(bytes)]))[0])
    if own >= (1 - LEAST_FALL) * found[top]:
        return None
    return LongerTime(int(at[top]), float(found[top]))


def drop_text(sizes: Sequence[int], times: Sequence[float]) -> str:
    """``faster from 256 KiB on: another protocol`` at the largest drop between two neighbours;
    empty without one."""
    drops = {
        1 - after / before: size
        for (before, after), size in zip(pairwise(times), sizes[1:], strict=True)
    }
    most = max(drops, default=0.0)
    if most < LEAST_DROP:
        return ""
    return f"faster from {format_bytes(drops[most])} on: another protocol"
