"""The options of a simulated survey, as `waywiser.measure.survey_options` has those of a real
one."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.measure.option import like, option
from waywiser.measure.survey_options import SurveyOptions
from waywiser.words import Bounds

MOST_NIGHTS = 1000
"""The most nights that one command simulates."""


@dataclass(frozen=True)
class SimulateOptions:
    """Options as they were given; the default for what was not given."""

    seed: int | None = like(SurveyOptions, "seed", more="By default that of the profile.")
    preset: str | None = like(
        SurveyOptions, "preset", more="By default as the profile was surveyed."
    )
    only: tuple[str, ...] = like(SurveyOptions, "only")
    workload: tuple[str, ...] = like(SurveyOptions, "workload")
    sizes: str | None = like(SurveyOptions, "sizes")
    model: bool = like(SurveyOptions, "model")
    host: str | None = option(
        "The name of the machine: its profiles are of one host, whose GPUs are its own.",
        metavar="NAME",
    )
    nights: int | None = option(
        "Survey the machine on N nights, one after the other, into the folder of --output.",
        metavar="N",
        bounds=Bounds(1, MOST_NIGHTS),
    )
    from_night: int | None = option(
        "Make the changes of --set from this night on; by default from the first one.",
        metavar="N",
        bounds=Bounds(1, MOST_NIGHTS),
    )
    night_noise: str = option(
        "Standard deviation of each path from night to night; by default 1%.",
        default="1%",
        metavar="FRACTION",
    )
