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
    from waywiser.analysis.node import Node

MOST_PATHS = 16
"""Suspected paths that are named in a command; more are measured by the whole preset."""


def measure_again(file: str, node: Node, curves: Sequence[str]) -> tuple[Node | None, str]:
    """Surveys ``curves`` again by the plan of ``file``, into a profile beside it.

    Returns the new profile's node, or None and why it could not be measured here; no reason if the
    profile is of another machine or of another tool. Raises `Interrupted`.
    """
    from waywiser.analysis.node import read_node
    from waywiser.cli.progress import watcher
    from waywiser.cli.streams import say
    from waywiser.profile import Profile
    from waywiser.scope import live_machine
    from waywiser.survey import (
        Interrupted,
        SurveyError,
        commission_of,
        prepare,
        require_same,
        start,
    )
    from waywiser.words.number_format import count

    if node.tools:
        return None, ""
    try:
        with Profile.open(file) as profile:
            commission = commission_of(profile)
        require_same(node.machine, live_machine(), Path(file))
    except SurveyError:
        return None, ""
    try:
        request = msgspec.structs.replace(commission.request, only=tuple(curves))
        survey = prepare(request, commission.wishes)
        target = _free_name(Path(file))
        say(f"waywiser: measuring {count(len(curves), 'suspected path')} again, into {target}\n")
        with closing(watcher()) as watching:
            start(survey, target, watching, command=("waywiser", *sys.argv[1:]))
        return read_node(target), ""
    except Interrupted:
        raise
    except WaywiserError as error:
        return None, str(error)


def commands(node: Node, file: str, curves: Sequence[str], baseline: Sequence[str]) -> str:
    """The two commands that measure ``curves`` again on the node and check the result."""
    only = [word for curve in curves[:MOST_PATHS] for word in ("--only", curve)]
    chosen = only if 0 < len(curves) <= MOST_PATHS else []
    asked = _preset(node)
    survey = ["waywiser", "survey", *asked, *chosen, "-o", "again.wwp"]
    check = ["waywiser", "check", file or "FILE", "--repeat", "again.wwp"]
    check += [word for each in baseline for word in ("--baseline", each)]
    return f"on {node.name}: {shlex.join(survey)}; {shlex.join(check)}"


def _preset(node: Node) -> list[str]:
    from waywiser.profile.planned import Asked

    try:
        asked = msgspec.json.decode(node.asked, type=Asked)
    except msgspec.MsgspecError:
        return ["--preset", "check"]
    return ["--preset", asked.preset] if asked.preset else ["--preset", "check"]


def _free_name(file: Path) -> Path:
    """``NAME-again.wwp`` beside the file, with a number if that exists."""
    stem = file.name.removesuffix(".wwp")
    names = (file.with_name(f"{stem}-again{n or ''}.wwp") for n in range(1000))
    return next(name for name in names if not name.exists())
