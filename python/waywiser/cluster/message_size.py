"""The size of the messages of a run, and how long a test may take: chosen from the first tests."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.stats.order import median
from waywiser.words.cluster import FinishedTest

FIRST_BYTES = 256 * 1024
"""The size of messages before any test has finished."""

_LEAST_BYTES, _MOST_BYTES = 64 * 1024, 16 * 2**20

_MESSAGE_SECONDS = 0.01
"""A message takes about so long: much longer than its latency, and many fit into a second."""

_FIRST_LIMIT_SECONDS = 60.0
_LEAST_LIMIT_SECONDS = 15.0
_LIMIT_FACTOR = 10.0


def choose_size(finished: Sequence[FinishedTest]) -> int:
    """The power of two of bytes that takes about 10 ms to send; 0 if no test has times."""
    rates = [
        test.bytes / time.seconds for test in finished for time in test.times if time.seconds > 0
    ]
    if not rates:
        return 0
    needed = median(rates) * _MESSAGE_SECONDS
    size = 1 << max(round(needed) - 1, 1).bit_length()
    return min(max(size, _LEAST_BYTES), _MOST_BYTES)


def choose_limit(finished: Sequence[FinishedTest]) -> float:
    """The seconds after which a test is ended: many times what tests took that did not fail."""
    took = [test.elapsed_seconds for test in finished if not test.failed]
    if not took:
        return _FIRST_LIMIT_SECONDS
    return max(_LEAST_LIMIT_SECONDS, _LIMIT_FACTOR * median(took))
