"""How long tests and launches may take: by the number of ranks, and by what others took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waywiser.stats import median
from waywiser.words import FinishedTest

FACTOR = 10.0
"""What takes so many times as long as others took does not end."""

RANK_SECONDS = 0.05
"""Seconds for each rank to be started and to connect to others, in a launch or a collective of
which none has been measured: seven minutes more for 8,000 ranks."""

_FIRST_TEST_SECONDS = 60.0
_LEAST_TEST_SECONDS = 15.0


def pair_limit(finished: Iterable[FinishedTest]) -> float:
    """The seconds after which a test of a pair is ended: many times what those took that did not
    fail, of any phase but collectives."""
    took = [
        test.elapsed_seconds
        for test in finished
        if not test.failed and test.test.phase != "collective"
    ]
    return max(_LEAST_TEST_SECONDS, FACTOR * median(took)) if took else _FIRST_TEST_SECONDS


def collective_limit(ranks: int, nodes: int, finished: Sequence[FinishedTest]) -> float:
    """The seconds after which a collective of so many nodes with so many ranks is ended: many times
    what others took, as long for each node; and at least what connecting its ranks may take."""
    took = [
        test.elapsed_seconds * max(1.0, nodes / len(test.test.nodes))
        for test in finished
        if not test.failed and test.test.phase == "collective"
    ]
    measured = FACTOR * max(took) if took else 0.0
    least = max(_FIRST_TEST_SECONDS, pair_limit(finished)) + RANK_SECONDS * ranks
    return max(least, measured)


def start_limit(few: float, ranks: int, launches: Iterable[tuple[int, float]]) -> float:
    """The seconds in which so many ranks have to connect; ``few`` is the time of few ranks.
    ``launches`` are the ranks of earlier launches, and the seconds that each took: many times as
    long is enough for as many ranks, in proportion for more."""
    took = [seconds * max(1.0, ranks / others) for others, seconds in launches]
    return max([few + RANK_SECONDS * ranks, *(FACTOR * seconds for seconds in took)])
