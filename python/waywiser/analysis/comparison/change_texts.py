"""How a change of a path is written: of bandwidth as one, and of time as one.

A size whose figures are times has a change of time: ``takes 5.3% longer``, and a share of
bandwidth that is lost is that much more time.
"""

from __future__ import annotations

import math

from waywiser.analysis.comparison.path_change import SizeChange
from waywiser.analysis.comparison.path_parts import FEWEST_SIZES
from waywiser.profile.block import STANDARD_ERRORS
from waywiser.stats.order import Interval
from waywiser.words.number_format import format_rate, format_time
from waywiser.words.sizes_in_text import size_of

NOT_DECIDABLE = (
    "the noise is not known, and a change not decidable: nothing repeats it, and no "
    f"{FEWEST_SIZES} sizes of one kind show how it scatters"
)
"""What is said of a path whose noise is not known."""


def change(ratio: float, *, of_time: bool) -> float:
    """The relative change, by the ratio of bandwidths, now over before."""
    return 1 / ratio - 1 if of_time else ratio - 1


def change_text(size: SizeChange) -> str:
    """``-5.1%`` of a bandwidth, ``latency +5.4%`` of a latency, ``time +5.4%`` of another time."""
    return _named(size, f"{change(size.decision.ratio, of_time=size.is_time):+.1%}")


def _named(size: SizeChange, text: str) -> str:
    if not size.is_time:
        return text
    return f"{'latency' if size.regime == 'latency' else 'time'} {text}"


def interval_of_change(interval: Interval, *, of_time: bool) -> Interval:
    """The same of an interval of the ratio."""
    ends = sorted(change(end, of_time=of_time) for end in (interval.low, interval.high))
    return Interval(*ends)


def slower_by(size: SizeChange | None) -> str:
    """``is 5.1% slower`` of a bandwidth, ``takes 5.4% longer`` of a time."""
    if size is None or not size.is_time:
        return f"is {1 - (size.decision.ratio if size else 1.0):.1%} slower"
    return f"takes {change(size.decision.ratio, of_time=True):.1%} longer"


def loss(share: float, *, of_time: bool) -> float:
    """A share of bandwidth that is lost; in time what it adds."""
    return share / (1 - share) if of_time and share < 1 else share


def loss_text(share: float, *, of_time: bool, digits: int = 1) -> str:
    """``a loss of 3.1%``, ``a time that is 3.2% longer``."""
    text = f"{loss(share, of_time=of_time):.{digits}%}"
    return f"a time that is {text} longer" if of_time else f"a loss of {text}"


def detectable_text(
    share: float | None, *, hides: bool = False, has_changed: bool = False, of_time: bool = False
) -> str:
    """``a loss of 3.1% or more would have been found``; of a path that is not decided, that the
    noise ``hides`` smaller ones; without a loss, that the noise is not known."""
    if share is None:
        return NOT_DECIDABLE
    least = f"{loss(share, of_time=of_time):.1%}"
    if hides:
        below = f"extra time below {least}" if of_time else f"losses below {least}"
        return f"the noise hides {below}"
    if has_changed:
        return f"smallest detectable {'extra time' if of_time else 'loss'} {least}"
    return f"{loss_text(share, of_time=of_time)} or more would have been found"


def sizes_text(size: SizeChange) -> str:
    """``64 MiB``; ``64 MiB to 512 MiB`` of sizes that differ before and now."""
    return str(size.other_size) if size.other_size else size_of(size.series)


def figures_before_and_now(size: SizeChange) -> tuple[str, str]:
    """``55.3 GB/s`` or ``2.2 µs`` of each side, with as many digits as the interval allows."""
    # Half the width of a 95 % interval. Of a change, both sides have the same share.
    relative = STANDARD_ERRORS * size.decision.deviation / math.sqrt(2)
    before, now = (
        format_time(seconds, relative)
        if size.is_time
        else f"{format_rate(size.rated_bytes / seconds, relative)} GB/s"
        for seconds in (size.seconds_before, size.seconds_now)
    )
    return before, now
