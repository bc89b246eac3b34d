"""A change that nearly all paths of a machine share."""

from __future__ import annotations

import math

from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.curves.texts import percent
from waywiser.stats.order import median
from waywiser.words.number_format import count

SEVERAL = 10
"""Paths below which a common change is not distinguished from one of few paths."""

ONE_SIDED = 0.9
"""The share of paths that have to change to one side."""

DEVIATIONS = 3.0
"""Standard errors of one path that the median change has to exceed."""


def whole_machine(found: ProfileComparison) -> str:
    """``the whole machine is 3.0 % slower: …``, if nearly all paths changed to one side; empty
    otherwise. The amount is the median over the paths. The noise of a process is common to its
    paths, so that it counts as that of one path, and not less for their number. Changes below half
    of the threshold are none."""
    decisions = [path.decision for path in found.measured if path.decision is not None]
    if len(decisions) < SEVERAL:
        return ""
    logs = [math.log(each.ratio) for each in decisions]
    shift = median(logs)
    least = DEVIATIONS * median([each.deviation for each in decisions])
    same = sum(each * shift > 0 for each in logs)
    if abs(shift) < max(math.log1p(found.threshold) / 2, least) or same < ONE_SIDED * len(logs):
        return ""
    side = "slower" if shift < 0 else "faster"
    return (
        f"the whole machine is {percent(math.expm1(shift))} {side}: {same} of "
        f"{count(len(logs), 'path')} are, and this is their median; look for a common cause "
        "(clocks, power, other work, settings) and measure again"
    )
