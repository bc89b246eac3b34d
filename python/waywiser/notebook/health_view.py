"""A check as a text and as a table of references."""

from __future__ import annotations

import html
import io
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from rich.console import Console

from waywiser.analysis.health.check import (
    CheckError,
    References,
    check_hosts,
    check_profile,
    keep,
    read_values,
    require_seconds,
)
from waywiser.analysis.health.early_stop import EarlyStop
from waywiser.analysis.health.health_check import HealthCheck
from waywiser.analysis.health.kept_profiles import new_check_file
from waywiser.analysis.history.labels import first_day
from waywiser.measure.machine_check import USUAL_SECONDS, prepare_check
from waywiser.measure.survey_run import start
from waywiser.notebook.comparison_view import valid_threshold
from waywiser.notebook.data_table import DataTable
from waywiser.notebook.survey_call import CallbackWatcher
from waywiser.report.terminal import print_parts
from waywiser.report.views.health import health_parts
from waywiser.words import Reason, visible

COLUMNS = 120
"""Width of the text."""

RESULT_TYPES: dict[str, type] = {
    "host": str,
    "reference": str,
    "status": str,
    "statement": str,
    "remedy": str,
}


class HealthView:
    """Whether machines are healthy, as ``waywiser check`` says it."""

    def __init__(self, result: HealthCheck) -> None:
        self.result = result
        """What ``waywiser check --json`` writes, but for paths that are not decided: there their
        verdict is "not decided"; and for the largest drops: here they are the paths."""

    @property
    def status(self) -> Reason:
        """``ok``, ``failed`` or ``inconclusive``."""
        return self.result.status

    @cached_property
    def references(self) -> DataTable:
        """One row per host and reference, the worst hosts and the best references first."""
        rows = (
            (host.host, each.reference, each.status, each.statement, each.remedy or None)
            for host in self.result.hosts
            for each in host.results
        )
        return DataTable.of("references", RESULT_TYPES, rows)

    def to_pandas(self) -> Any:
        """`references` as a `pandas.DataFrame`. Raises `MissingPackage`."""
        return self.references.to_pandas()

    def __repr__(self) -> str:
        text = io.StringIO()
        console = Console(file=text, width=COLUMNS, color_system=None, legacy_windows=False)
        print_parts(console, health_parts(self.result))
        return visible(text.getvalue().rstrip("\n"))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{html.escape(repr(self))}</pre>"


def check_health(
    files: Sequence[str | os.PathLike[str]],
    *,
    baseline: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    fleet: str | os.PathLike[str] | None = None,
    repeat: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    threshold: float | None = None,
    max_hidden: float | None = None,
    within: int | None = None,
    expect_gpus: int = 0,
    values: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    since: str = "",
    is_kept: bool = False,
) -> HealthView:
    """As `waywiser.check`. Raises `waywiser.words.WaywiserError`."""
    require_seconds(USUAL_SECONDS if within is None else within)
    table, labels = read_values(_names(values))
    references = References(
        baseline=_names(baseline),
        fleet=os.fspath(fleet) if fleet is not None else "",
        repeat=_names(repeat),
        threshold=valid_threshold(threshold),
        expect_gpus=expect_gpus,
        since=first_day(since),
        values=table,
        max_hidden=max_hidden,
        labels=labels,
    )
    names = _names(files)
    if not names and within == 0:
        raise CheckError("within=0 measures nothing", remedy="name a profile or a folder")
    if len(names) > 1 or (names and os.path.isdir(names[0])):
        return HealthView(_with_hosts(check_hosts(names, references)))
    file = names[0] if names else _measured(references, within, is_kept=is_kept)
    checked = check_profile(file, references)
    if is_kept:
        keep(checked, file)
    return HealthView(checked.found)


def _with_hosts(found: HealthCheck) -> HealthCheck:
    if not found.hosts:
        file, why = next(iter(found.unreadable.items()), ("", "no host to check"))
        raise CheckError(why, where=file, remedy="name profiles of nodes, or a folder of them")
    return found


def _measured(references: References, within: int | None, *, is_kept: bool) -> str:
    """The profile of this machine, measured now."""
    survey = prepare_check(USUAL_SECONDS if within is None else within, references.expect_gpus)
    path = new_check_file(survey.machine.hostname)
    looks = survey.plan.preset.processes
    stop = EarlyStop(path, survey.machine, references, looks, series=survey.plan.series_of_curves,
                     is_kept=is_kept)  # fmt: skip
    start(survey, path, CallbackWatcher(None), command=("waywiser.check()",), settle=stop)
    return str(path)


def _names(
    given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[str, ...]:
    if isinstance(given, str | os.PathLike):
        return (os.fspath(given),)
    return tuple(os.fspath(each) for each in given)
