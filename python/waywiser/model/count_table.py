"""The measured times of several messages, by size and number, as models of them read it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.model.messages import Locality, MessageTimes
from waywiser.words import with_units

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


class CountKey(NamedTuple):
    """What several messages that one model describes have in common."""

    kind: str
    """The kind of memory."""
    test: str
    method: str = ""
    locality: Locality | Literal[""] = ""
    """The method of a survey; empty for results of another tool, whose model is of all methods."""

    @property
    def name(self) -> str:
        """``pinned by max-rate``; of a survey ``pinned by mpi, pairs, on-node``."""
        if not self.method:
            return f"{self.kind} by {self.test}"
        return f"{self.kind} by {with_units(self.method)}, {self.test}, {self.locality}"

    @classmethod
    def of(cls, message: MessageTimes) -> CountKey | None:
        """Returns None between different kinds of memory in a survey."""
        if not message.method:
            return cls(message.source, message.test)
        if message.source != message.destination:
            return None
        return cls(message.source, message.test, message.method, message.locality)


def times_of(messages: Iterable[MessageTimes], key: CountKey) -> CountTimes:
    """The times of jobs by (bytes, count). In a survey one message is the first of several by each
    test."""
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    one = key._replace(test="") if key.method else key
    for each in messages:
        own = CountKey.of(each)
        if own == key or (own == one and each.count == 1):
            at = each.bytes, each.count
            found[at] = found.get(at, ()) + each.seconds
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
