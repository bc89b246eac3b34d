"""How much of an error probability each of several looks at growing data may spend.

Lan and DeMets, "Discrete Sequential Boundaries for Clinical Trials", Biometrika 70 (1983): a
function of the share of the data says how much was spent by then. Each look may spend the
difference to the look before. Tests at these levels together err at most with the whole
probability, however the looks depend on each other (Boole's inequality).

To accuse, the function is that of O'Brien and Fleming's boundaries: early looks spend nearly
nothing. To clear, it is that of Pocock's boundaries: early looks may spend much, since a cleared
path saves the most time then. Two functions for the two errors: Pampallona and Tsiatis, J.
Statistical Planning and Inference 42 (1994).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

Spending = Callable[[float, float], float]
"""What was spent of a probability when a share of the data is known."""


def to_accuse(probability: float, share: float) -> float:
    """What was spent of ``probability`` at a ``share`` of the data, from 0 to 1: O'Brien and
    Fleming's boundaries, on both sides."""
    if share <= 0:
        return 0.0
    normal = NormalDist()
    bound = normal.inv_cdf(1 - probability / 2) / math.sqrt(min(share, 1.0))
    return 2 * (1 - normal.cdf(bound))


def to_clear(probability: float, share: float) -> float:
    """The same: Pocock's boundaries."""
    return probability * math.log1p((math.e - 1) * min(max(share, 0.0), 1.0))


def level(spending: Spending, probability: float, look: int, looks: int) -> float:
    """What look number ``look`` of ``looks``, from 1, may spend; 0 beyond the last."""
    if look > looks:
        return 0.0
    before = spending(probability, (look - 1) / looks)
    return spending(probability, look / looks) - before
