"""Measures the paths of a profile again in fresh processes, before a change of theirs counts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from waywiser.comparison.node import Node
    from waywiser.plan.plan import Request
    from waywiser.scope import Wishes
    from waywiser.topology.machine import Machine


class NotContinued(WaywiserError):
    """A profile that is in the way of the new one, and cannot be continued or used as it is."""


MOST_PATHS = 16
"""Suspected paths that are named in a command; more are measured by the whole preset."""


def measure_again(
    file: str, node: Node, curves: Sequence[str], repeats: Sequence[str] = ()
) -> tuple[Node | None, str]:
    """Surveys ``curves`` again by the plan of ``file``, into a profile beside it.

    A profile that an earlier call began there is continued, and one that it finished is used;
    ``repeats`` are used already. Returns the profile's node, or None and why there is none; no
    reason if ``file`` is of another machine or of another tool. Raises `Interrupted`.
    """
    from waywiser.comparison.node import read_node
    from waywiser.profile import Profile
    from waywiser.scope import live_machine
    from waywiser.survey import Interrupted, SurveyError, commission_of, require_same

    if node.tools:
        return None, ""
    try:
        with Profile.open(file) as profile:
            commission = commission_of(profile)
        live = live_machine()
        require_same(node.machine, live, Path(file))
    except SurveyError:
        return None, ""
    try:
        request = msgspec.structs.replace(
            commission.request, only=tuple(curves), deadline_seconds=0.0
        )
        target = _target(Path(file), repeats)
        if not target.exists():
            _start(request, commission.wishes, target)
        else:
            _continue(target, is_unfinished=_require_fitting(target, request, node, live))
        return read_node(target), ""
    except Interrupted:
        raise
    except WaywiserError as error:
        return None, str(error)


def _start(request: Request, wishes: Wishes, target: Path) -> None:
    from waywiser.cli.progress import watcher
    from waywiser.cli.streams import say
    from waywiser.survey import prepare, start
    from waywiser.words.number_format import count

    survey = prepare(request, wishes)
    paths = count(len(request.only), "suspected path")
    say(f"waywiser: measuring {paths} again, into {target}\n")
    with closing(watcher()) as watching:
        start(survey, target, watching, command=("waywiser", *sys.argv[1:]))


def _continue(target: Path, *, is_unfinished: bool) -> None:
    from waywiser.cli.progress import watcher
    from waywiser.cli.streams import say
    from waywiser.survey import resume

    say(f"waywiser: {'going on with' if is_unfinished else 'using'} {target}\n")
    if not is_unfinished:
        return
    with closing(watcher()) as watching:
        resume(target, watching, command=("waywiser", *sys.argv[1:]))


def _require_fitting(target: Path, request: Request, node: Node, live: Machine) -> bool:
    """Returns whether the profile is unfinished. Raises `NotContinued` if it is none that a former
    check of ``node`` made for all paths of ``request``."""
    from waywiser.comparison.node import read_node
    from waywiser.profile import Profile, ProfileError
    from waywiser.survey import SurveyError, commission_of, require_same

    try:
        with Profile.open(target) as profile:
            asked = commission_of(profile).request
        found = read_node(target)
        require_same(found.machine, live, target)
    except (ProfileError, SurveyError) as error:
        raise _not_continued(target, error.what) from error
    if found.created < node.created:
        raise _not_continued(target, f"it is older than {node.called}")
    if _without_paths(asked) != _without_paths(request):
        raise _not_continued(target, "it was measured with other options")
    if not set(request.only) <= set(asked.only):
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


def commands(node: Node, file: str, curves: Sequence[str], baseline: Sequence[str]) -> str:
    """The two commands that measure on the node what is not decided, and check the result: the
    suspected ``curves`` again, or all headline paths in several processes if none is suspected."""
    from waywiser.profile.planned import Asked, asked_from

    former = asked_from(node.asked) or Asked()
    target = "again.wwp" if curves else "new.wwp"
    asked = Asked(preset="check")
    if curves:
        only = tuple(curves) if len(curves) <= MOST_PATHS else former.only
        preset = former.preset or asked.preset
        asked = msgspec.structs.replace(former, preset=preset, only=only)
    survey = ["waywiser", "survey", *asked.options, "-o", target]
    checked = [file or "FILE", "--repeat", target] if curves else [target]
    options = [word for each in baseline for word in ("--baseline", each)]
    check = ["waywiser", "check", *checked, *options]
    return f"on {node.name}: {shlex.join(survey)}; {shlex.join(check)}"


def _target(file: Path, repeats: Sequence[str]) -> Path:
    """``NAME-again.wwp`` beside the file; with a number if that is one of ``repeats``."""
    stem = file.name.removesuffix(".wwp")
    used = {Path(each).resolve() for each in repeats}
    names = (file.with_name(f"{stem}-again{n or ''}.wwp") for n in range(len(used) + 1))
    return next(name for name in names if name.resolve() not in used)
