"""One figure that another tool reports, as a sample that is marked as its summary."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.words import SUMMARY, Samples

LEAST_SECONDS = 1e-12
MOST_SECONDS = 1e9


def summary(seconds: float, transfers: Sequence[float] = ()) -> Samples:
    """One sample of ``seconds``; ``transfers`` are those of each transfer, where they are known."""
    return Samples(
        span=(seconds,),
        repetitions=(1,),
        flags=(SUMMARY,),
        transfers=(tuple(transfers),) if transfers else (),
    )


def is_time(seconds: float) -> bool:
    """Whether it can be a measured time at all: positive, and neither absurdly short nor long."""
    return LEAST_SECONDS <= seconds <= MOST_SECONDS
