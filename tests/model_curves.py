"""Curves for tests of models, made from formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.model.curve import CurveModel, CurveTimes, fit_curves
from waywiser.model.prediction_interval import PathKind
from waywiser.stats.scatter import CurveBlocks

SIZES = [2**n for n in range(3, 31)]


def curve(
    seconds: Callable[[int], float],
    sizes: Sequence[int] = SIZES,
    text: str = "x",
    kind: PathKind = "link",
    alike: str | None = None,
) -> CurveTimes:
    blocks = [{0: seconds(n), 1: seconds(n) * 1.001} for n in sizes]
    return CurveTimes(text, kind, CurveBlocks(sizes, blocks, [0.001] * len(sizes), alike))


def model(seconds: Callable[[int], float], sizes: Sequence[int] = SIZES) -> CurveModel:
    (found,) = fit_curves([curve(seconds, sizes)])
    return found
