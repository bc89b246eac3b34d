"""The options of a tuning, as `waywiser.measure.survey_options` has those of a survey."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waywiser.measure.option import Stored, argument, like, option
from waywiser.measure.survey_options import WEEK_SECONDS, OptionError, SurveyOptions
from waywiser.words import Bounds, decimal_number

_BUDGET = re.compile(r"([0-9.]+)\s*(s|min|m|h)?")
_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600}


@dataclass(frozen=True)
class TuneOptions:
    """Options as they were given; the default for what was not given."""

    profile: str = argument("A profile of this machine, or a new one (.wwp).", "FILE")
    only: tuple[str, ...] = like(
        SurveyOptions,
        "only",
        more="By default one of each class of equivalent paths.",
        stored=Stored("request", "paths"),
    )
    sizes: str | None = like(
        SurveyOptions,
        "sizes",
        more="By default those of 1MiB,16MiB,256MiB,1GiB that fit into the budget.",
    )
    budget: str = option(
        "Measure for at most this time: 60s, 2min. By default 60s.", default="60s", metavar="TIME"
    )
    grid: int = option(
        "Do not search: measure every configuration in N processes.",
        default=0,
        metavar="N",
        bounds=Bounds(0, 1000),
        stored=Stored("request", "grid"),
    )
    gpus: str | None = like(SurveyOptions, "gpus")
    memory: str | None = like(SurveyOptions, "memory")
    file: tuple[str, ...] = like(SurveyOptions, "file")
    scratch: str | None = like(SurveyOptions, "scratch", more="By default no file is written.")
    share: bool = like(SurveyOptions, "share")
    ranks: int = like(SurveyOptions, "ranks")
    ranks_per_gpu: int = like(SurveyOptions, "ranks_per_gpu")
    rank_cpus: str | None = like(SurveyOptions, "rank_cpus")
    mpicc: str | None = like(SurveyOptions, "mpicc")
    launcher: str | None = like(SurveyOptions, "launcher")
    seed: int | None = like(SurveyOptions, "seed")

    @property
    def budget_seconds(self) -> float:
        """The seconds of ``60``, ``60s``, ``2min``, ``1h``. Raises `OptionError`."""
        match = _BUDGET.fullmatch(self.budget.strip())
        seconds = decimal_number(match[1]) * _UNITS[match[2] or "s"] if match else 0.0
        if not 0 < seconds <= WEEK_SECONDS:
            raise OptionError(
                f"--budget {self.budget!r} is not a time of at most a week",
                remedy="write --budget 60s or 2min",
            )
        return seconds
