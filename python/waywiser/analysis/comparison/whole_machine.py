"""A change that nearly all paths of a machine share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from waywiser.analysis.comparison.path_change import ProfileComparison, SizeChange
from waywiser.curves.texts import percent
from waywiser.stats.order import median
from waywiser.words.number_format import count

SEVERAL = 10
"""Paths below which a common change is not distinguished from one of few paths."""

ONE_SIDED = 0.9
"""The share of paths that have to change to one side."""

DEVIATIONS = 3.0
"""Standard errors of one path that the median change has to exceed."""


class _CommonChange(NamedTuple):
    shift: float
    """The median over all paths, as a logarithm; below 0 it is a loss."""
    paths: int
    same: list[SizeChange]
    """Those of the paths that changed to the same side."""
    is_between_ranks: bool


def whole_machine(found: ProfileComparison) -> str:
    """``the whole machine is 3.0 % slower: …``, if nearly all paths changed to one side; empty
    otherwise."""
    change = _common_change(found)
    return _text(change, found.message_settings) if change is not None else ""


def whole_loss(found: ProfileComparison) -> str:
    """`whole_machine`, if it is slower; empty otherwise."""
    change = _common_change(found)
    if change is None or change.shift >= 0:
        return ""
    return _text(change, found.message_settings)


def _common_change(found: ProfileComparison) -> _CommonChange | None:
    """The amount is the median over the paths. The noise of a process is common to its paths, so
    that it counts as that of one path, and not less for their number. Changes below half of the
    threshold are none."""
    compared = [path for path in found.measured if path.verdict != "not decided"]
    sizes = [path.size for path in compared if path.size is not None]
    if len(sizes) < SEVERAL:
        return None
    logs = [math.log(each.decision.ratio) for each in sizes]
    shift = median(logs)
    least = DEVIATIONS * median([each.decision.deviation for each in sizes])
    same = [size for size, each in zip(sizes, logs, strict=True) if each * shift > 0]
    if abs(shift) < max(math.log1p(found.threshold) / 2, least):
        return None
    if len(same) < ONE_SIDED * len(logs):
        return None
    is_between_ranks = are_between_ranks(size.series for size in sizes)
    return _CommonChange(shift, len(sizes), same, is_between_ranks)


def _text(change: _CommonChange, message_settings: str) -> str:
    shift, paths, same, is_between_ranks = change
    what = "messages between ranks" if is_between_ranks else "the whole machine"
    be = "are" if is_between_ranks else "is"
    of = f"{len(same)} of {count(paths, 'path')}"
    if all(size.is_time for size in same):
        side = "longer" if shift < 0 else "shorter"
        text = f"the latencies of {what} are {percent(math.expm1(-shift))} {side}: so"
    else:
        side = "slower" if shift < 0 else "faster"
        text = f"{what} {be} {percent(math.expm1(shift))} {side}:"
    cause = look_for(is_between_ranks)
    if is_between_ranks and message_settings:
        cause = f"settings of the MPI library differ ({message_settings}): make them equal"
    return f"{text} {of} are, and this is their median; {cause} and measure again"


def are_between_ranks(texts: Iterable[str]) -> bool:
    """Whether all series or paths are of ranks."""
    return all("@rank:" in text for text in texts)


def look_for(is_between_ranks: bool) -> str:
    """What can slow all paths: of messages it is their library first, and not the hardware."""
    if is_between_ranks:
        return "look at the MPI library's transport and settings (UCX_*, OMPI_MCA_*)"
    return "look for a common cause (clocks, power, other work, settings)"
