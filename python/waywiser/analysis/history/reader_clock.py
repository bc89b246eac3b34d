"""Whether profiles can be compared with the clock of the reader, which may be wrong itself, as on a
machine whose clock was never set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

CLOCK_ERROR = timedelta(days=1)
"""A profile from the future by more than this is from a wrong clock, or read by one."""

FIRST_YEAR = 2020
"""A clock that says an earlier year was not set."""

_USUAL_GAP = timedelta(days=7)
_GAPS = 3
"""Profiles go on if the next one is within this many of the longest gaps before, or of weeks."""


ANY_MOMENT = datetime.max.replace(tzinfo=UTC)
"""A moment after all surveys."""


def latest_moment(moments: Iterable[datetime], now: datetime) -> datetime:
    """The latest moment at which a survey can have begun; `ANY_MOMENT` if it is the reader's clock
    that is wrong.

    That is so if it was not set, if more profiles are from its future than from its past, or if
    the profiles go on from its past to its future without a gap.
    """
    latest = now + CLOCK_ERROR
    set_ones = sorted(each for each in moments if each.year >= FIRST_YEAR)
    past = [each for each in set_ones if each <= latest]
    future = set_ones[len(past) :]
    if now.year < FIRST_YEAR or len(future) > len(past):
        return ANY_MOMENT
    if past and future:
        gaps = [later - earlier for earlier, later in pairwise(past)]
        if future[0] - past[-1] <= _GAPS * max([_USUAL_GAP, *gaps]):
            return ANY_MOMENT
    return latest
