"""``waywiser compare``: is it as it was?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import waywiser
from waywiser.cli.app import (
    USUAL_THRESHOLD,
    Json,
    Only,
    Repeat,
    Threshold,
    given_of,
    print_verb,
    verb,
)
from waywiser.cli.command_help import Verb
from waywiser.words import WaywiserError

SEPARATOR = "\0"
"""What stands for ``--`` between the sides after parsing: a word that no file is named by."""


class CompareError(WaywiserError):
    """A comparison that cannot be made as asked."""


class _Sides(Verb):
    """A verb with two sides: ``--`` divides its words, and options may follow the second."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        return super().parse_args(ctx, [SEPARATOR if word == "--" else word for word in args])


@verb("Compare profiles path by path, the headline first.", cls=_Sides)
def compare(
    files: list[str],
    repeat: Repeat = None,
    threshold: Threshold = USUAL_THRESHOLD,
    fail_on: str = "regression",
    only: Only = None,
    json: Json = False,
    junit: str = "",
    all: bool = False,
) -> int:
    """Compare profiles path by path: regressions, missing paths, improvements, or no change, with
    the smallest change that would have been found.

    BASE... -- NEW...: Profiles from before and from now; two files need no --. Three on a side show
        the noise between surveys; with fewer, a loss is suspected until a second file from now, or
        --repeat, shows it again.
    --fail-on WORD: What ends with 1: regression (and a missing path; the default), suspected (and
        these), or never (then it ends with 0 or 2).
    --junit FILE: It has a test for each path.
    --all: All paths, not only those that changed.

    waywiser compare before.wwp now.wwp
        find what changed between two profiles
    waywiser compare before.wwp now.wwp --only p2p --threshold 5% --all
        list all P2P paths; changes of up to 5 % do not matter
    """
    given = given_of(locals())
    del given["files"], given["json"]
    from waywiser.profile import STANDARD_OUTPUT, require_one_output

    require_one_output(json=json, junit=junit)
    base, new = sides_of(files)
    found = waywiser.compare(base, new, **given)
    return print_verb(found, json=json, to_errors=junit == STANDARD_OUTPUT)


def sides_of(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Raises `CompareError` if it is not clear which file is on which side."""
    if SEPARATOR in words:
        at = words.index(SEPARATOR)
        before, after = list(words[:at]), list(words[at + 1 :])
    else:
        before, after = list(words[:1]), list(words[1:])
        if len(words) != 2:
            raise CompareError(
                "one file has nothing to be compared with"
                if len(words) == 1
                else f"{len(words)} files, and it is not said which are the base",
                remedy="write BASE NEW, or BASE... -- NEW...",
            )
    if not before or not after or SEPARATOR in after:
        raise CompareError("a side is empty", remedy="write BASE... -- NEW...")
    return before, after
