"""The measured times of several messages, by size and number, as models of them read it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.model.messages import MessageTimes

Array = NDArray[Any]

LEAST_COUNTS = 3
"""Numbers of messages of one size: two determine t and g, and the third shows whether they hold."""

CountTimes = Mapping[tuple[int, int], tuple[float, ...]]
"""Seconds of jobs, by (bytes, count)."""


class CountTable(NamedTuple):
    """Measured seconds, [size, count]; not-a-number where nothing was measured."""

    sizes: Array
    counts: Array
    seconds: Array

    @property
    def bytes(self) -> Array:
        """Those of all messages."""
        return np.outer(self.sizes, self.counts)


def times_of(messages: Iterable[MessageTimes], kind: str, test: str) -> CountTimes:
    """The times of jobs by (bytes, count)."""
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    for each in messages:
        if (each.source, each.test) == (kind, test):
            key = each.bytes, each.count
            found[key] = found.get(key, ()) + each.seconds
    return found


def table_of(times: CountTimes, *, least: bool) -> CountTable | None:
    """The sizes that show what one message takes and each further one; None without two."""
    counts_of: dict[int, set[int]] = {}
    for size, number in times:
        counts_of.setdefault(size, set()).add(number)
    sizes = sorted(n for n, own in counts_of.items() if 1 in own and len(own) >= LEAST_COUNTS)
    if len(sizes) < 2:
        return None
    counts = sorted({number for size in sizes for number in counts_of[size]})
    usual = min if least else np.median
    seconds = [
        [float(usual(times[size, n])) if n in counts_of[size] else math.nan for n in counts]
        for size in sizes
    ]
    return CountTable(np.array(sizes, float), np.array(counts, float), np.array(seconds))
