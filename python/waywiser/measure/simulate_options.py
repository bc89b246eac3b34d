"""The options of a simulated survey, as `waywiser.measure.survey_options` has those of a real
one."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.measure.option import like
from waywiser.measure.survey_options import SurveyOptions


@dataclass(frozen=True)
class SimulateOptions:
    """Options as they were given; the default for what was not given."""

    seed: int | None = like(SurveyOptions, "seed")
    preset: str | None = like(
        SurveyOptions,
        "preset",
        help="How much to measure, as for 'survey'. By default as the profile was surveyed.",
    )
    only: tuple[str, ...] = like(SurveyOptions, "only")
    workload: tuple[str, ...] = like(
        SurveyOptions,
        "workload",
        help="Measure these transfers, as for 'survey'. May be repeated.",
    )
    sizes: str | None = like(SurveyOptions, "sizes", help="Sizes to measure, as for 'survey'.")
    model: bool = like(SurveyOptions, "model")
