"""The size of the messages of a run, chosen from the first tests."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.stats import median
from waywiser.words import FinishedTest

FIRST_BYTES = 256 * 1024
"""The size of messages before any test has finished."""

LEAST_BYTES, MOST_BYTES = 64 * 1024, 16 * 2**20
"""The sizes that may be chosen."""

_MESSAGE_SECONDS = 0.01
"""A message takes about so long: much longer than its latency, and many fit into a second."""


def choose_size(finished: Sequence[FinishedTest]) -> int:
    """The power of two of bytes that takes about 10 ms to send; 0 if no test has times."""
    rates = [
        test.bytes / time.seconds for test in finished for time in test.times if time.seconds > 0
    ]
    if not rates:
        return 0
    needed = median(rates) * _MESSAGE_SECONDS
    size = 1 << max(round(needed) - 1, 1).bit_length()
    return min(max(size, LEAST_BYTES), MOST_BYTES)
