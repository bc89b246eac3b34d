"""Measures the paths of a profile again in fresh processes, before a change of theirs counts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from waywiser.profile import resume_command
from waywiser.render.parts import Block, Code, Words
from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.analysis.comparison.path_change import ProfileComparison
    from waywiser.curves import Subject
    from waywiser.machine import Machine
    from waywiser.measure.plan.preset import Request
    from waywiser.measure.scope import MachineSelection
    from waywiser.notebook.survey_call import SurveyWatcher


class NotContinued(WaywiserError):
    """A profile that is in the way of the new one, and cannot be continued or used as it is."""


MOST_PATHS = 16
"""Suspected paths that are named in a command; more are measured by the whole preset."""

MOST_WORKLOADS = 5
"""Paths of workloads that a person named, which no preset measures: the worst are named."""


def measure_again(
    watcher: SurveyWatcher,
    file: str,
    node: Subject,
    curves: Sequence[str],
    repeats: Sequence[str] = (),
) -> tuple[Subject | None, str]:
    """Surveys ``curves`` again by the plan of ``file``, into a profile beside it.

    A profile that an earlier call began there is continued, and one that it finished is used;
    ``repeats`` are used already. Returns the profile's node, or None and why there is none; no
    reason if ``file`` is of another machine or of another tool. Raises `Interrupted`.
    """
    from waywiser.curves import read_subject
    from waywiser.measure.scope import live_machine
    from waywiser.measure.survey_run import Interrupted, SurveyError, kept_plan_of, require_same
    from waywiser.profile import Profile

    if node.tools:
        return None, ""
    try:
        with Profile.open(file) as profile:
            kept = kept_plan_of(profile)
        live = live_machine()
        require_same(node.machine, live, Path(file))
    except SurveyError:
        return None, ""
    try:
        request = kept.request.of_paths(curves)
        target = _target(Path(file), repeats)
        if not target.exists():
            _start(request, kept.selection, target, watcher)
        else:
            is_unfinished = _require_fitting(target, request, node, live)
            _continue(target, watcher, is_unfinished=is_unfinished)
        return read_subject(target), ""
    except Interrupted:
        raise
    except WaywiserError as error:
        return None, str(error)


def _start(
    request: Request, selection: MachineSelection, target: Path, watcher: SurveyWatcher
) -> None:
    from waywiser.measure.survey_run import prepare, start
    from waywiser.words import count

    survey = prepare(request, selection)
    paths = count(len(request.only), "suspected path")
    watcher.note(f"waywiser: measuring {paths} again, into {target}")
    start(survey, target, watcher, command=watcher.command)


def _continue(target: Path, watcher: SurveyWatcher, *, is_unfinished: bool) -> None:
    from waywiser.measure.survey_run import resume

    watcher.note(f"waywiser: {'going on with' if is_unfinished else 'using'} {target}")
    if is_unfinished:
        resume(target, watcher, command=watcher.command)


def _require_fitting(target: Path, request: Request, node: Subject, live: Machine) -> bool:
    """Returns whether the profile is unfinished. Raises `NotContinued` if it is none that a former
    check of ``node`` made for all paths of ``request``."""
    from waywiser.curves import read_subject
    from waywiser.measure.survey_run import SurveyError, kept_plan_of, require_same
    from waywiser.profile import Profile, ProfileError

    try:
        with Profile.open(target) as profile:
            stored = kept_plan_of(profile).request
        found = read_subject(target)
        require_same(found.machine, live, target)
    except (ProfileError, SurveyError) as error:
        raise _not_continued(target, error.what) from error
    if found.created < node.created:
        raise _not_continued(target, f"it is older than {node.called}")
    if _without_paths(stored) != _without_paths(request):
        raise _not_continued(target, "it was measured with other options")
    if not set(request.only) <= set(stored.only):
        raise _not_continued(target, "it has not measured all suspected paths")
    return found.unfinished


def _not_continued(target: Path, why: str) -> NotContinued:
    return NotContinued(
        f"is in the way of the new measurement: {why}",
        where=str(target),
        remedy="move it away, or use it with --repeat",
    )


def _without_paths(request: Request) -> Request:
    """What has to be equal: a survey sets the memory itself."""
    return msgspec.structs.replace(request, only=(), memory_bytes=0)


def command_parts(
    node: Subject, found: ProfileComparison, verb: str, options: Sequence[str] = ()
) -> Iterator[Block]:
    """What measures on the node what ``found`` leaves undecided, and then ``verb`` as it was
    called."""
    measured = f" measure again with {', '.join(node.tools)}, then:" if node.tools else ""
    for purpose, lines in commands(node, found, verb, options):
        yield Words(f"to {purpose}, on {node.name}:{measured}", indent=2)
        yield Code("\n".join(lines), indent=4)


def commands(
    node: Subject, found: ProfileComparison, verb: str, options: Sequence[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yields the commands of `command_parts` with their purpose.

    Suspected paths are measured again. If a check could miss too much, the side that scatters is
    measured again: the baseline, also if both do, or the new survey. A baseline of another machine
    is made anew. If there is nothing of these to decide, the new survey is continued, or made
    again.
    """
    names = [path.name for path in found.of("suspected")]
    if names:
        target = _unused("again")
        again = _verb(found, verb, options, repeats=(*found.repeats, target))
        yield "confirm or refute what is suspected", [_measure(node, names, target), again]
    hidden = found.undecided if verb == "check" else ()
    other = bool(found.another_machine) and verb == "check"
    if names and not hidden and not other:
        return
    if node.unfinished and not hidden:
        yield "complete the survey", [resume_command(node.called), _verb(found, verb, options)]
        return
    sides = [found.noisy_sides(path) for path in hidden]
    others = () if any(path.headline for path in hidden) else [path.name for path in hidden]
    if other or any(before for before, _ in sides):
        # Alone: a node that is checked against a baseline of the same hour shows no loss.
        kind = "baseline of this machine" if other else "quieter baseline"
        purpose = f"have a {kind} for later checks, while the machine is healthy"
        yield purpose, [_measure(node, () if other else others, _unused("baseline"))]
        return
    target = _unused("new")
    again = _verb(found, verb, options, new=(target,))
    yield (
        "find smaller losses" if sides else "compare again",
        [_measure(node, others, target), again],
    )


def _unused(name: str) -> str:
    from waywiser.profile import unused_file
    from waywiser.profile.file_name import SUFFIX

    return str(unused_file(Path(f"{name}{SUFFIX}")))


def _verb(
    found: ProfileComparison,
    verb: str,
    options: Sequence[str],
    new: Sequence[str] = (),
    repeats: Sequence[str] = (),
) -> str:
    """``verb`` as it was called, but for the files that are given."""
    from waywiser.stats import THRESHOLD

    base, new = found.base, new or found.new
    if verb == "check":
        words = [*new, *(word for each in base for word in ("--baseline", each))]
    elif len(base) == len(new) == 1:
        words = [*base, *new]
    else:
        words = [*base, "--", *new]
    words += [word for each in repeats for word in ("--repeat", each)]
    if found.threshold != THRESHOLD:
        words += ["--threshold", f"{found.threshold:.9g}"]
    return shlex.join(["waywiser", verb, *words, *options])


def _measure(node: Subject, names: Sequence[str], target: str) -> str:
    """The command that measures the paths ``names``, or all headline paths, into ``target``."""
    from waywiser.machine import launch_options

    launch = launch_options(node.machine, node.environment)
    words = ["import", "RESULT"] if node.tools else ["survey", *launch, *_options(node, names)]
    return shlex.join(["waywiser", *words, "-o", target])


def _options(node: Subject, names: Sequence[str]) -> list[str]:
    """Those of a survey that measures the paths ``names`` as ``node`` did, but in several
    processes: one process shows no noise, and confirms nothing."""
    from waywiser.measure.plan.preset import PRESETS
    from waywiser.profile import stored_request
    from waywiser.profile.planned import StoredRequest
    from waywiser.words import with_units, without_sizes

    former = stored_request(node.request)
    if not names or former is None or former.preset not in PRESETS:
        return StoredRequest(preset="check", only=tuple(names)).options
    several = PRESETS[former.preset].processes > 1
    if former.workloads:
        # The names have no sizes: those of the preset are measured, unless the survey named others.
        had_sizes = any(without_sizes(each) != each for each in former.workloads)
        return StoredRequest(
            preset=former.preset if several else "standard",
            workloads=tuple(map(with_units, names[:MOST_WORKLOADS])),
            sizes="" if had_sizes else former.sizes,
        ).options
    only = tuple(names) if len(names) <= MOST_PATHS else former.only
    repeated = msgspec.structs.replace(
        former, preset=former.preset if several else "standard", only=only
    )
    return repeated.options


def _target(file: Path, repeats: Sequence[str]) -> Path:
    """``NAME-again.wwp`` beside the file; with a number if that is one of ``repeats``."""
    from waywiser.profile import unused_file
    from waywiser.profile.file_name import SUFFIX

    used = {Path(each).resolve() for each in repeats}
    again = file.with_name(f"{file.name.removesuffix(SUFFIX)}-again{SUFFIX}")
    return unused_file(again, lambda name: name.resolve() in used)
