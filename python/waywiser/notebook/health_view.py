"""A check as a text and as a table of references: `waywiser.check`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waywiser.analysis.health.check import (
    CheckError,
    References,
    check_by_dask,
    check_hosts,
    check_part,
    check_profile,
    read_values,
    require_seconds,
)
from waywiser.analysis.health.check import keep as keep_profile
from waywiser.analysis.health.early_stop import EarlyStop
from waywiser.analysis.health.health_check import HealthCheck, health_of
from waywiser.analysis.health.kept_profiles import NotKept, new_check_file
from waywiser.analysis.history.labels import first_day
from waywiser.machine import machine_line
from waywiser.notebook.check_outputs import Outputs, health_document
from waywiser.notebook.comparison_view import valid_threshold
from waywiser.notebook.data_table import DataTable
from waywiser.notebook.verb_result import FileName, VerbResult, exit_code_of
from waywiser.notebook.without_effect import require_effect
from waywiser.stats import THRESHOLD
from waywiser.words import STATUSES, Reason, compress_hosts
from waywiser.words.numbers import parse_fraction

if TYPE_CHECKING:
    from waywiser.analysis.comparison.checkup import Checkup
    from waywiser.curves import NormalPath, Subject
    from waywiser.notebook.survey_call import OnSurveyProgress, SurveyWatcher
    from waywiser.render.parts import Block, Section

RESULT_TYPES: dict[str, type] = {
    "host": str,
    "reference": str,
    "status": str,
    "statement": str,
    "remedy": str,
}


class HealthView(VerbResult):
    """Whether machines are healthy, as ``waywiser check`` says it."""

    result: HealthCheck
    """What ``waywiser check --json`` writes, but for paths that are not decided: there their
    verdict is "not decided"."""

    def __init__(
        self,
        result: HealthCheck,
        node: Subject | None = None,
        details: Iterable[Block] = (),
        *,
        everything: bool = False,
        said: Sequence[str] = (),
        written: str = "",
    ) -> None:
        """``written`` is the file of one step of a check in parts, which has no answer yet."""
        shown = tuple(details)
        seen = _seen(result, node)
        step = {"schema": 1, "written": written}
        super().__init__(
            result,
            lambda: step if written else health_document(result, seen),
            lambda: () if written else _parts(result, shown, seen, everything=everything),
            exit_code=0 if written else exit_code_of(STATUSES[result.status]),
            said=said,
        )

    @property
    def status(self) -> Reason:
        """``ok``, ``failed`` or ``inconclusive``."""
        return self.result.status

    @property
    def suspects(self) -> str:
        """The hosts to measure again, as a host list for Slurm; empty if there are none."""
        return compress_hosts(self.result.suspects)

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


def _seen(found: HealthCheck, node: Subject | None) -> Mapping[str, str]:
    """Known causes of a low bandwidth that the profile shows."""
    from waywiser.analysis.comparison.seen_causes import seen_causes

    is_below = any(path.verdict == "below" for path in found.other_machines)
    return seen_causes(node) if node is not None and is_below else {}


def _parts(
    found: HealthCheck, details: Sequence[Block], seen: Mapping[str, str], *, everything: bool
) -> Iterator[Block | Section]:
    from waywiser.render.views.health import health_parts

    yield from health_parts(found, details, everything=everything, seen=seen)


def check_health(
    files: Sequence[FileName],
    *,
    keep: bool = False,
    within: int | None = None,
    part: str = "",
    suspects: bool = False,
    all: bool = False,
    page: FileName | None = None,
    prometheus: FileName | None = None,
    junit: FileName | None = None,
    progress: OnSurveyProgress | SurveyWatcher | None = None,
    **compared: Any,
) -> HealthView:
    """As `waywiser.check`, of which ``compared`` are the arguments of `_references`. Raises
    `waywiser.words.WaywiserError`."""
    outputs = Outputs(*(os.fspath(each or "") for each in (page, prometheus, junit)))
    outputs.require()
    if within is not None:
        require_seconds(within)
    references, names = _references(**compared), _names(files)
    if not references.fleet and not any(map(os.path.isdir, names)):
        require_effect({"no folder is named": {"the second day of --since": references.first_day}})
    if part:
        _require_effect(references, outputs, part, is_kept=keep, shown=(all, suspects))
        return _of_parts(names, references, outputs, part, everything=all)
    if not names and within == 0:
        raise CheckError("--within 0 measures nothing", remedy="name a profile or a folder")
    if len(names) > 1 or (names and os.path.isdir(names[0])):
        if keep:
            raise CheckError("--keep is for one profile", remedy="name one, or none to measure")
        return _of_hosts(check_hosts(names, references), outputs, everything=all)
    from waywiser.notebook.survey_call import watcher_of  # files are read without it

    watcher = watcher_of(progress, ("waywiser.check()",))
    file = names[0] if names else _measured(references, within, watcher, is_kept=keep)
    again = None if within == 0 else watcher
    return _of_one(file, references, outputs, again, everything=all, is_kept=keep)


def _references(
    baseline: FileName | Sequence[FileName],
    repeat: FileName | Sequence[FileName],
    threshold: float | str | None,
    max_hidden: float | str | None,
    expect_gpus: int,
    values: FileName | Sequence[FileName],
    since: str,
) -> References:
    """What to compare with. Of the baselines a folder has profiles of other nodes and nights."""
    table, labels = read_values(_names(values))
    changes, _, looked_at = since.partition("/")
    base = _names(baseline)
    folders = [each for each in base if os.path.isdir(each)]
    if len(folders) > 1:
        raise CheckError(
            f"--baseline names {len(folders)} folders", remedy="name one, with all profiles in it"
        )
    if isinstance(max_hidden, str):
        max_hidden = parse_fraction(max_hidden, "loss")
    return References(
        baseline=tuple(each for each in base if each not in folders),
        fleet="".join(folders),
        repeat=_names(repeat),
        threshold=valid_threshold(threshold),
        expect_gpus=expect_gpus,
        since=first_day(changes),
        first_day=first_day(looked_at),
        values=table,
        max_hidden=max_hidden,
        labels=labels,
    )


def _of_hosts(found: HealthCheck, outputs: Outputs, *, everything: bool) -> HealthView:
    """The hosts of many profiles. Raises `WaywiserError` if there are none."""
    from waywiser.notebook.unread_files import none_read

    notes = outputs.write(found)
    if not found.hosts:
        first = found.nights.first_day_text if found.nights else ""
        error = none_read(found.unreadable, f"no host to check{first}")
        error.document = health_document(found)
        raise error
    return HealthView(found, everything=everything, said=notes)


def _of_parts(
    names: Sequence[str], references: References, outputs: Outputs, part: str, *, everything: bool
) -> HealthView:
    """A data set by parts: all by Dask, or one step."""
    if len(names) != 1:
        raise CheckError("--part is for one data set", remedy="name its folder")
    found = (
        check_by_dask(names[0], references, part)
        if "://" in part
        else check_part(names[0], references, part)
    )
    if isinstance(found, Path):
        return HealthView(health_of([]), said=(str(found),), written=str(found))
    return HealthView(found, everything=everything, said=outputs.write(found))


def _require_effect(
    references: References,
    outputs: Outputs,
    part: str,
    *,
    is_kept: bool,
    shown: tuple[bool, bool],
) -> None:
    """Raises `WaywiserError` for an option that changes nothing of a check in parts, or of this
    step of one."""
    idle: dict[str, dict[str, object]] = {
        "--part checks all hosts of a data set": {
            "--baseline": references.baseline or references.fleet,
            "--repeat": references.repeat,
            "--max-hidden": references.max_hidden is not None,
            "--keep": is_kept,
        }
    }
    is_step = "://" not in part
    if is_step and not part.startswith("references"):
        idle["all parts have that of --part references/N"] = {
            "--threshold": references.threshold != THRESHOLD,
            "--since": references.since or references.first_day,
        }
    if is_step and part != "join":
        idle["this step writes a file, and --part join has the answer"] = {
            "--page": outputs.page,
            "--prometheus": outputs.prometheus,
            "--junit": outputs.junit,
            "--all": shown[0],
            "--suspects": shown[1],
        }
    require_effect(idle)


def _of_one(
    file: str,
    references: References,
    outputs: Outputs,
    watcher: SurveyWatcher | None,
    *,
    everything: bool,
    is_kept: bool,
) -> HealthView:
    """One profile."""
    from waywiser.notebook.remeasure import measure_again

    checked = check_profile(
        file, references, None if watcher is None else partial(measure_again, watcher)
    )
    node, found = checked.node, checked.found
    details: tuple[Block, ...] = ()
    if found.baseline is not None:
        details = tuple(checkup_parts(found.baseline, node, checked.failure, found.other_machines))
    notes = [*outputs.write(found, node, details)]
    if is_kept:
        try:
            notes.append(f"waywiser: kept as a baseline: {keep_profile(checked, file)}")
        except NotKept as error:
            notes.append(f"waywiser: {error}")
    return HealthView(found, node, details, everything=everything, said=notes)


def _measured(
    references: References, within: int | None, watcher: SurveyWatcher, *, is_kept: bool
) -> str:
    """The profile of this machine, measured now."""
    from waywiser.measure.machine_check import USUAL_SECONDS, prepare_check
    from waywiser.measure.survey_run import start

    seconds = USUAL_SECONDS if within is None else within
    survey = prepare_check(seconds, references.expect_gpus)
    file = new_check_file(survey.machine.hostname)
    looks = survey.plan.preset.processes
    stop = EarlyStop(file, survey.machine, references, looks, series=survey.plan.series_of_curves,
                     is_kept=is_kept)  # fmt: skip
    watcher.note(machine_line(survey.machine))
    watcher.note(f"measuring for at most {seconds} s, less if all is decided")
    start(survey, file, watcher, command=watcher.command, settle=stop)
    watcher.note(f"profile: {file} (waywiser show has its numbers)")
    return str(file)


def _names(
    given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[str, ...]:
    if isinstance(given, str | os.PathLike):
        return (os.fspath(given),)
    return tuple(os.fspath(each) for each in given)


def checkup_parts(
    found: Checkup, node: Subject, failure: str = "", beside: Sequence[NormalPath] = ()
) -> Iterator[Block]:
    """Why, and the commands that measure on the ``node`` what is not decided;
    ``failure`` says why that was not done here. Drops show what is normal for their link."""
    from waywiser.analysis.comparison.comparison_text import (
        NOT_DECIDED,
        change_text,
        detectable_text,
        figures_before_and_now,
        label,
        sizes_text,
        to_decide,
        verdict_text,
    )
    from waywiser.analysis.comparison.part_change import one_value_text
    from waywiser.notebook.remeasure import command_parts
    from waywiser.render.parts import Words
    from waywiser.words import by_wording, with_units

    if found.reasons:
        yield Words(found.tested, indent=2)
    for line in found.reasons[1:]:
        yield Words(line, indent=2)
    if found.undecided or found.comparison.another_machine:
        yield from command_parts(node, found.comparison, "check")
    if failure:
        yield Words(f"it could not be measured again here: {failure}", indent=2)
    if found.drops:
        yield Words("largest drops:", indent=2)
    normal = {path.workload: path for path in beside if path.range is not None}
    verdicts = [verdict_text(found.comparison, path) for path in found.drops]
    for path, verdict in zip(found.drops, verdicts, strict=True):
        drop = path.size
        assert drop is not None
        loss = detectable_text(
            drop.decision.detectable,
            hides=verdict == NOT_DECIDED,
            has_changed=verdict != "no change",
            of_time=drop.is_time,
        )
        yield Words(f"{change_text(drop)}  {verdict}: {with_units(label(path))}", indent=4)
        if drop.verdict == NOT_DECIDED:
            loss = one_value_text(drop)
        before, now = figures_before_and_now(drop)
        at = f" at {size}" if (size := sizes_text(drop)) else ""
        own = normal.get(drop.series)
        usual = f"; {own.verdict_text}" if own is not None else ""
        yield Words(f"{before} before, {now} now{at}; {loss}{usual}", indent=12)
    undecided = zip(found.drops, verdicts, strict=True)
    named = {label(path) for path, verdict in undecided if verdict == NOT_DECIDED}
    if unclear := [path for path in found.comparison.measured if label(path) in named]:
        yield Words(to_decide(found.comparison, unclear), indent=4)
    for line, _ in by_wording(found.notes):
        yield Words(f"note: {line}", indent=2)
