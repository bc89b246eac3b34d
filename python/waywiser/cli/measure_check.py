"""Measures this machine for a check, until all of its paths are decided."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from waywiser.analysis.comparison.read_subject import read_subject, subject_of
from waywiser.analysis.health.early_stop import baseline_times, path_times, settled
from waywiser.analysis.health.kept_profiles import kept_baselines, new_check_file
from waywiser.cli.progress import watcher
from waywiser.cli.signals import stopped_by_signals
from waywiser.cli.streams import say
from waywiser.curves.subject import Subject
from waywiser.machine.machine import machine_line
from waywiser.measure.plan.preset import CHECK, Request
from waywiser.measure.scope import MachineSelection
from waywiser.measure.survey_run import prepare, require_free_host, start
from waywiser.profile import Profile
from waywiser.words.number_format import format_seconds

BESIDE_SECONDS = 4
"""Seconds of a check that pass before and after it measures."""


def measure_check(baseline: Sequence[str], threshold: float, within: int, expect_gpus: int) -> str:
    """The profile of this machine, measured now in at most ``within`` seconds. Raises
    `waywiser.words.WaywiserError`; what is finished by then is in the profile."""
    seconds = float(max(within - BESIDE_SECONDS, 1))
    request = Request(preset=CHECK.name).of_paths((), seconds)
    survey = prepare(request, MachineSelection(), expect_gpus=expect_gpus)
    names = baseline or kept_baselines(survey.machine)
    before = [read_subject(each) for each in names]
    require_free_host()
    file = new_check_file(survey.machine.hostname)
    say(f"{machine_line(survey.machine)}\n")
    say(f"measuring for at most {format_seconds(within)}, less if all is decided\n")
    looks = EarlyStop(file, before, threshold)
    with stopped_by_signals(), closing(watcher()) as watching:
        start(survey, file, watching, command=("waywiser", *sys.argv[1:]), settle=looks)
    say(f"profile: {file}\n")
    return str(file)


class EarlyStop:
    """Looks at a profile that is being measured, after each round of processes."""

    def __init__(self, file: Path, baseline: Sequence[Subject], threshold: float) -> None:
        self._file = file
        self._before = baseline_times(each.points for each in baseline)
        self._threshold = threshold

    def __call__(self, rounds: int) -> Mapping[str, str]:
        with Profile.open(self._file) as profile:
            points = subject_of(profile).points
        times = path_times(points, self._before)
        return settled(times, rounds, CHECK.processes, self._threshold)
