"""The smallest slowness of a node that a run finds with 95 % probability."""

from __future__ import annotations

import numpy as np

from waywiser.analysis.cluster.controls import confirm_limit
from waywiser.analysis.cluster.levels import SCALES, THRESHOLD, one_sided_scale
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.verdict_values import DetectableRail
from waywiser.words import RailDirection

SURE = 1.96
"""Two steps must find it, each with 97.5 %. This is also about the distance, in scales, by which
the repeated tests of a suspect must be above their limit, of which few may be below it."""

LEAST_NODES = 3
LEAST_TESTS = 2

DIRECTIONS: tuple[RailDirection, RailDirection] = ("sending", "receiving")


def detectable_rails(state: ClusterState) -> tuple[DetectableRail, ...]:
    """Returns it for each rail and direction that has tests: above both the limit of the rounds
    and that of the tests alone, by the scatter of the levels and of the tests."""
    levels = state.rounds.levels
    limits = confirm_limit(state)
    tested = levels.tests >= LEAST_TESTS
    result = []
    for rail in range(levels.level.shape[1]):
        for way, direction in enumerate(DIRECTIONS):
            if np.isnan(levels.level[:, rail, way]).all():
                continue
            ratio = 0.0
            if int(tested.sum()) >= LEAST_NODES:
                usual = levels.lower[~state.rounds.suspects[:, rail, way] & tested, rail, way]
                scale = float(one_sided_scale(usual)) if len(usual) else np.nan
                limit = max(THRESHOLD, SCALES * float(levels.scale[rail, way]))
                noise = float(state.rounds.noise[rail])
                alone = float(limits[rail]) + SURE * noise
                least = max(limit + SURE * scale, alone)
                ratio = float(np.exp(least)) if np.isfinite(least) else 0.0
            result.append(DetectableRail(rail, direction, ratio))
    return tuple(result)
