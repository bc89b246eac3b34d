"""``waywiser survey``: says what will be done, does it, and shows what was found."""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import waywiser
from waywiser.cli.app import print_verb
from waywiser.cli.progress import following, show_rest
from waywiser.cli.streams import print_json, put_line, say
from waywiser.fitness.situation import Situation
from waywiser.machine import (
    Machine,
    SystemFiles,
    format_list,
    lost_text,
    machine_line,
    present_load,
    unusable_notes,
)
from waywiser.measure.option import given
from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.points import Priority
from waywiser.measure.plan.preset import FULL
from waywiser.measure.plan.tally import Tally
from waywiser.measure.plan.who_copies import LONGEST_SECONDS, observed_gpus
from waywiser.measure.survey_options import SurveyOptions
from waywiser.measure.survey_request import (
    request_of,
    require_agreement,
    require_sense,
    selection_of,
)
from waywiser.measure.survey_run import Survey, SurveyError, kept_plan_of, prepare
from waywiser.profile import require_output
from waywiser.render.views.doctor import disturbance_words
from waywiser.render.views.unsupported import reasons_of, unsupported_words
from waywiser.words import LIMIT, Visit, count, format_bytes, format_seconds, grouped, with_units

_MIB = 2**20
MOST_OF_REASON = 160
"""Characters of a reason in the line of an error."""


def run_survey(
    options: SurveyOptions, *, dry_run: bool, everything: bool = False, json: bool
) -> None:
    """The verb. Raises `WaywiserError`; what is finished by then is in the profile."""
    if dry_run:
        survey, stored = _planned(options)
        _say_plan(survey, json=json)
        show_rest(Tally(survey.plan, stored), sys.stderr)
        return
    with following(_begin) as watching:
        profile = waywiser.survey(**given(options), progress=watching)
    print_verb(profile.shown(all=everything), json=json)
    say(f"profile: {profile.path}\n")
    require_measured(Path(profile.path))


def _planned(options: SurveyOptions) -> tuple[Survey, list[Visit]]:
    """What would be measured, and what of it is stored already."""
    from waywiser.profile import Profile

    require_sense(options)
    request, selection, stored = request_of(options), selection_of(options), list[Visit]()
    if options.resume and options.output and os.path.lexists(options.output):
        require_agreement(options, Path(options.output))
        with Profile.open(options.output) as profile:
            kept, stored = kept_plan_of(profile), list(profile.visits())
        request, selection = kept.request, kept.selection
    elif options.output:
        require_output(options.output)
    return prepare(request, selection, expect_gpus=options.expect_gpus), stored


def _begin(what: Survey | Path) -> None:
    """Says what will be measured, and what disturbs it now."""
    if isinstance(what, Path):
        lines = [*_disturbances(_machine_of(what))]
    else:
        lines = [*_before(what), *_disturbances(what.machine)]
    say("".join(f"{line}\n" for line in lines))


def _before(survey: Survey) -> Iterator[str]:
    """What is said before long work starts."""
    if lost := lost_text(survey.machine):
        yield f"error: {lost}"
    yield machine_line(survey.machine)
    yield from unusable_notes(survey.machine.unusable_gpus)
    for unsupported in survey.scope.unsupported_paths:
        yield f"{unsupported.path} is skipped: {unsupported.reason}"
    yield from survey.scope.notes
    yield from survey.plan.notes
    yield from _file_lines(survey)
    yield from _occupied(survey)
    yield from _total(survey)
    if survey.plan.skipped:
        thorough = survey.plan.preset.name == FULL.name
        whom = "--only or --sizes" if thorough else "a more thorough --preset, or to --only"
        yield f"{survey.plan.skipped} series more are left to {whom}"


def _machine_of(file: Path) -> Machine:
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        return profile.machine


def _disturbances(machine: Machine) -> Iterator[str]:
    """What disturbs a survey now, as ``waywiser doctor`` says it; nothing of a simulated machine,
    which is none."""
    if machine.simulated:
        return
    situation = Situation(machine, SystemFiles(), load_now=present_load())
    yield from (words.text for words in disturbance_words(situation))


def _file_lines(survey: Survey) -> Iterator[str]:
    """What will be read, and what is written beside the profile."""
    used = {place.file for point in survey.plan.points for place in point.workload.places}
    for file in survey.machine.files:
        if file.name not in used:
            continue
        size, kind = format_bytes(file.bytes), file.filesystem or "unknown file system"
        if file.scratch:
            yield f"scratch files of at most {size} together in {file.path} ({kind}), then gone"
        else:
            yield f"{file.path} ({size}, {kind}) is read, never written"


def _occupied(survey: Survey) -> Iterator[str]:
    """Which GPUs a kernel occupies to see who copies."""
    gpus = observed_gpus(survey.machine, survey.plan.points)
    if free := tuple(gpu.index for gpu in gpus if not gpu.processes):
        yield (
            f"who copies: each kind of copy is made while a kernel occupies all multiprocessors of "
            f"gpu:{format_list(free)}, for less than {LONGEST_SECONDS * 1e3:.0f} ms at a time"
        )
    if used := tuple(gpu.index for gpu in gpus if gpu.processes):
        yield f"who copies is not observed on gpu:{format_list(used)}: other processes use it"


def _total(survey: Survey) -> Iterator[str]:
    """How much is planned, how long it is expected to take, and what has no time."""
    plan, expected = survey.plan, survey.outlook
    visits = str(expected.visits)
    # Those of equal paths, and of sizes at which a rate has saturated, may not be needed.
    if expected.visits < plan.visits and not expected.skipped:
        visits += f" to {plan.visits}"
    yield (
        f"{plan.preset.name}: {len(plan.points)} series in {visits} visits by "
        f"{count(expected.processes, 'process')}, "
        f"up to {format_bytes(-(-plan.buffer_bytes // _MIB) * _MIB)} of memory, "
        f"about {format_seconds(expected.seconds)} (seed {plan.request.seed})"
    )
    if plan.deadline_seconds:
        short = [
            f"{expected.skipped[priority.name.lower()]} {_PRIORITIES[priority]}"
            for priority in reversed(Priority)
            if priority.name.lower() in expected.skipped
        ]
        fit = f"no time is expected for {', '.join(short)}" if short else "all is expected to fit"
        order = ", ".join(_PRIORITIES[priority] for priority in reversed(Priority))
        yield (
            f"deadline after {format_seconds(plan.deadline_seconds)}: {fit}; if time runs out, "
            f"these are skipped first: {order}"
        )


_PRIORITIES = {
    Priority.CONDITIONAL: "other sizes of equal paths that differ",
    Priority.REST: "sizes that one process measures",
    Priority.REPRESENTATIVE: "repeated sizes",
    Priority.HEADLINE: "repeated sizes of the main paths",
}


def _say_plan(survey: Survey, *, json: bool) -> None:
    plan = survey.plan
    if json:
        said = {
            "schema": 1,
            "request": plan.request,
            "estimate": survey.estimate,
            "left_out": plan.skipped,
            "notes": plan.notes,
            "deadline_seconds": plan.deadline_seconds,
            "outlook": survey.outlook,
            "series": [
                {
                    "identity": point.workload.identity,
                    "workload": str(point.workload),
                    "name": point.curve.name,
                    "bytes": point.workload.bytes,
                    "buffer_bytes": point.buffer_bytes,
                    "processes": point.processes,
                    "priority": point.priority.name.lower(),
                    "seconds": point.processes * point.unmeasured_seconds,
                }
                for point in plan.points
            ],
            "unsupported_paths": [*survey.scope.unsupported_paths, *plan.unsupported_paths],
        }
        print_json(said)
        return
    reasons = reasons_of(plan.unsupported_paths).items()
    missing = unsupported_words(reasons, survey.machine, "--dry-run --json")
    for line in (*_before(survey), *_curves(plan), *(words.text for words in missing)):
        put_line(line)


def _curves(plan: Plan) -> Iterator[str]:
    """One line per curve: how many sizes, from where to where, how long."""
    curves = grouped(
        (point.curve.name, (point.size, point.processes * point.unmeasured_seconds))
        for point in plan.points
    )
    for text, sizes in curves.items():
        first, last = format_bytes(min(sizes)[0]), format_bytes(max(sizes)[0])
        count = f"{len(sizes)} sizes, {first} to {last}" if len(sizes) > 1 else first
        if not max(sizes)[0]:
            count = "no bytes"
        seconds = sum(of_one for _, of_one in sizes)
        time = format_seconds(seconds) if seconds >= 0.5 else "under 1 s"
        yield f"  {with_units(text)}: {count}, {time}"


def require_measured(file: Path) -> None:
    """Raises `SurveyError` if more than half of the visits that were to measure failed."""
    from waywiser.curves.reasons import UNSUPPORTED
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        failures = [
            visit.failure
            for visit in profile.visit_rows()
            if visit.stop != "skipped"
            and (visit.failure is None or visit.failure.kind != UNSUPPORTED)
        ]
    failed = Counter((each.kind, each.reason) for each in failures if each is not None)
    if 2 * failed.total() <= len(failures):
        return
    (((kind, reason), _),) = failed.most_common(1)
    what = f"{failed.total()} of {count(len(failures), 'visit')} failed, most often: "
    if kind == LIMIT:
        raise SurveyError(f"{what}{reason}", where=str(file), remedy="raise it, then --resume")
    raise SurveyError(
        f"{what}{textwrap.shorten(reason, MOST_OF_REASON)}",
        where=str(file),
        remedy="if the native module is older than the Python files, build it again; "
        f"waywiser show {file} lists the reasons",
    )
