"""Policies that are made from tunings."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.policy.candidates import candidates
from waywiser.curves.subject import Subject
from waywiser.measure.tune.run import tuned_results
from waywiser.profile import Profile

LIVE = RESULTS / "2026-11-23-tuning" / "live"


@pytest.mark.parametrize("name", ["h100-tuned", "h200-tuned"])
def test_only_reported_times_are_evidence(name: str, tmp_path: Path) -> None:
    file = unpacked(LIVE / f"{name}.wwp.xz", tmp_path / "tuned.wwp")
    with Profile.open(file) as profile:
        subject = Subject.of(profile)
    used = {
        str(time.transfer)
        for kind in candidates([subject])
        for candidate in kind.candidates
        for time in candidate.times.values()
    }
    targets = {str(result.default) for result in tuned_results(file)}
    searched = {
        str(point.workload.transfer)
        for curve in subject.curves
        for point in curve.measured
        if curve.transfer is not None and curve.transfer.parameters
    }
    assert used & searched, "no winner is used"
    assert len(searched - used) > 50, "the search measured nothing else"
    # The search's winner, which need not be faster than the defaults in the end.
    winners = [text.partition("[")[0] + text.partition("] of")[2] for text in used & searched]
    assert len(winners) == len(set(winners)) <= len(targets)
