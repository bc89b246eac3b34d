"""Is this machine, or the one of a profile, fit to be measured? `waywiser.doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from waywiser import __version__
from waywiser.curves import Finding, at_least
from waywiser.fitness.situation import Situation
from waywiser.machine import lost_text
from waywiser.notebook.verb_result import CLEAN, FINDING, FileName, VerbResult
from waywiser.profile import Profile
from waywiser.render.parts import Words
from waywiser.render.views.doctor import finding_parts
from waywiser.words.status import parse_severity

if TYPE_CHECKING:
    from waywiser.render.parts import Block, Section


def diagnose_machine(
    file: FileName | None = None,
    *,
    severity: str = "warning",
    cluster: bool = False,
    mpi: bool = False,
    try_: bool = False,
    mpicc: FileName | None = None,
    launcher: str = "",
) -> VerbResult:
    """As `waywiser.doctor`. Raises `WaywiserError`."""
    from waywiser.fitness.diagnosis import diagnose

    least, compiler = parse_severity(severity), os.fspath(mpicc or "")
    situation, created = _situation(file)
    findings = diagnose(situation)
    document, parts = _described(findings, situation, file, created)
    beside: Iterable[Block | Section] = ()
    if mpi or try_ or mpicc or launcher:
        from waywiser.notebook.mpi_answer import mpi_answer

        document["mpi_library"], beside = mpi_answer(compiler, launcher, tries=try_)
    lacks_needs = False
    if cluster:
        from waywiser.cluster.surveys.survey_needs import missing_here, needs_text

        lacks = missing_here(compiler, launcher)
        lacks_needs = bool(lacks.always)
        document |= {"missing": lacks.always, "missing_for_mpi": lacks.for_mpi}
        lines = [*needs_text(*lacks)] or ["a survey of a cluster lacks nothing here"]
        beside = chain(map(Words, lines), beside)
    shown = (*parts, *beside)
    code = FINDING if lacks_needs or at_least(findings, least) else CLEAN
    return VerbResult(findings, lambda: document, lambda: shown, exit_code=code)


def _situation(file: FileName | None) -> tuple[Situation, str]:
    """What is known of the machine, and when its profile was made."""
    from waywiser.fitness.diagnosis import live_situation, stored_situation

    if file is None:
        return live_situation(), ""
    with Profile.open(file) as profile:
        return stored_situation(profile), profile.created


def _described(
    findings: Sequence[Finding], situation: Situation, file: FileName | None, created: str
) -> tuple[dict[str, object], list[Block | Section]]:
    """The JSON form and the text of what was found."""
    from waywiser.fitness.diagnosis import unchecked

    machine, missing = situation.machine, unchecked(situation)
    hostname = machine.hostname
    document: dict[str, object] = {"schema": 2, "hostname": hostname, "findings": findings}
    parts: list[Block | Section] = [*finding_parts(findings, missing)]
    if situation.build:
        driver = f"{machine.driver} supports CUDA {machine.cuda_driver}" if machine.driver else ""
        document |= {"version": __version__, "build": situation.build, "driver": driver}
        parts.insert(
            0, Words(f"waywiser {__version__}: {situation.build}; driver: {driver or 'none'}")
        )
    if file is not None:
        document |= {"profile": os.fspath(file), "created": created, "not_checked": missing}
        when = f"as the profile of {created[:16]} UTC describes it"
        lost = lost_text(machine)
        parts.insert(0, Words(f"{hostname or os.fspath(file)}, {when}: {lost}".rstrip(), "lead"))
    return document, parts
