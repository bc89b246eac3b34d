"""Measures this machine for a check, until all of its paths are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from waywiser.analysis.comparison.read_subject import read_subject, subject_of
from waywiser.curves.subject import Subject
from waywiser.health.check import References
from waywiser.health.early_stop import baseline_times, path_times, settled
from waywiser.health.kept_profiles import kept_baselines, new_check_file
from waywiser.measure.plan.preset import CHECK, Request
from waywiser.measure.scope import MachineSelection
from waywiser.measure.survey_run import Survey, Watcher, prepare, require_free_host, start
from waywiser.profile import Profile

USUAL_SECONDS = 30
"""Seconds that a check takes at most, by default."""

BESIDE_SECONDS = 4
"""Seconds of a check that pass before and after it measures."""


class MachineCheck:
    """A measurement that ends as soon as all is decided."""

    def __init__(self, references: References, within: int = USUAL_SECONDS) -> None:
        """Looks at the machine and plans. Raises `waywiser.words.WaywiserError`: fewer GPUs than
        expected, a baseline that cannot be read, another survey runs here."""
        seconds = float(max(within - BESIDE_SECONDS, 1))
        request = Request(preset=CHECK.name).of_paths((), seconds)
        expected = references.expect_gpus
        self._threshold = references.threshold
        self.survey: Survey = prepare(request, MachineSelection(), expect_gpus=expected)
        names = references.baseline or kept_baselines(self.survey.machine)
        self._before = [read_subject(each) for each in names]
        for each in references.repeat:
            read_subject(each)
        require_free_host()
        self.file = new_check_file(self.survey.machine.hostname)

    def measure(self, watcher: Watcher, command: Sequence[str]) -> str:
        """Measures, and returns the profile. Raises `waywiser.words.WaywiserError`; what is
        finished by then is in the profile."""
        looks = EarlyStop(self.file, self._before, self._threshold)
        start(self.survey, self.file, watcher, command=command, settle=looks)
        return str(self.file)


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
