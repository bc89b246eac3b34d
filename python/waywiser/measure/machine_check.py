"""A survey of this machine for a check, which ends as soon as all of its paths are decided."""

from __future__ import annotations

from waywiser.measure.plan.preset import CHECK, Request
from waywiser.measure.scope import MachineSelection
from waywiser.measure.survey_run import Survey, prepare, require_free_host

USUAL_SECONDS = 30
"""Seconds that a check takes at most, by default."""

BESIDE_SECONDS = 4
"""Seconds of a check that pass before and after it measures."""


def prepare_check(within: int = USUAL_SECONDS, expect_gpus: int = 0) -> Survey:
    """Looks at the machine and plans a survey of at most ``within`` seconds. Raises
    `waywiser.words.WaywiserError`: fewer GPUs than expected, another survey runs here."""
    seconds = float(max(within - BESIDE_SECONDS, 1))
    request = Request(preset=CHECK.name).of_paths((), seconds)
    survey = prepare(request, MachineSelection(), expect_gpus=expect_gpus)
    require_free_host()
    return survey
