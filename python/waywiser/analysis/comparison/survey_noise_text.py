"""What a comparison of few surveys says about the noise between surveys, which they do not show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.comparison.change_texts import loss_text
from waywiser.analysis.comparison.path_change import REGIMES, PathChange, certain_level
from waywiser.analysis.comparison.path_parts import MachineNoise, Part
from waywiser.stats.decision import Effect
from waywiser.stats.noise_model import SURVEYS_FOR_VARIANCE, Variance


def survey_noise_notes(parts: Sequence[Part], paths: Sequence[PathChange]) -> Iterator[str]:
    """A note on the noise between surveys if no side has `SURVEYS_FOR_VARIANCE` of them: that it is
    assumed, or what it is beside a suspected loss, and which loss would be confirmed."""
    few = [
        (path, part)
        for path in paths
        for part in path.parts
        if max(part.surveys) < SURVEYS_FOR_VARIANCE and part.decision.freedom > 0
    ]
    if not few:
        return
    machine = MachineNoise(parts).regimes
    if assumed := [part for _, part in few if not machine[part.regime].contrasts]:
        deviation = machine[assumed[0].regime].variance.deviation
        yield (
            f"the noise between surveys is assumed to be {deviation:.1%}, since fewer than "
            f"{SURVEYS_FOR_VARIANCE} surveys of a side and too few paths show it"
        )
    suspected = [each for each in few if each[0].verdict == each[1].verdict == "suspected"]
    if suspected:
        path, part = min(suspected, key=lambda each: each[1].decision.ratio)
        variance = Variance(part.decision.deviation**2, part.decision.freedom)
        effect = Effect(0.0, variance, path.headline is not None, parts[0].threshold)
        tested = sum((each.headline is not None) == effect.headline for each, _ in few)
        least = effect.detectable(certain_level(effect) / tested) or 1.0
        deviation = machine[part.regime].variance.deviation
        yield (
            f"between surveys the paths of this machine deviate by {deviation:.1%} "
            f"({REGIMES[part.regime]}): so few surveys confirm "
            f"{loss_text(least, of_time=part.typical.is_time)} or more, and "
            f"{SURVEYS_FOR_VARIANCE} baselines a smaller one"
        )
