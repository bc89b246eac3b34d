"""``waywiser compare``: is it as it was?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from waywiser.cli.app import (
    CLEAN,
    FINDING,
    INCONCLUSIVE,
    USUAL_THRESHOLD,
    Json,
    Only,
    Repeat,
    Threshold,
    parse_fraction,
    print_result,
    verb,
)
from waywiser.cli.command_help import Verb
from waywiser.words import STATUSES, Status, WaywiserError

if TYPE_CHECKING:
    from waywiser.analysis.comparison.path_change import ProfileComparison
    from waywiser.report.parts import Block

SEPARATOR = "\0"
"""What stands for ``--`` between the sides after parsing: a word that no file is named by."""

FAILING = {"regression": Status.FAILED, "suspected": Status.SUSPECTED, "never": None}
"""What ``--fail-on`` takes, and from which status on a path is a finding then."""


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
    everything: bool = False,
) -> int:
    """Compare profiles path by path: regressions, missing paths, improvements, or no change, with
    the smallest change that would have been found.

    BASE... -- NEW...: Profiles from before and from now; two files need no --. Three on a side show
        the noise between surveys; with fewer, a loss is suspected until a second file from now, or
        --repeat, shows it again.
    --fail-on WORD: What ends with 1: regression (and a missing path; the default), suspected (and
        these), or never (then it ends with 0 or 2).
    --junit FILE: Also write JUnit XML with a test for each path; - for standard output: the text
        then goes to standard error.
    --all: List all paths, not only those that changed.

    waywiser compare before.wwp now.wwp
        find what changed between two profiles
    waywiser compare before.wwp now.wwp --only p2p --threshold 5% --all
        list all P2P paths; changes of up to 5 % do not matter
    """
    from waywiser.analysis.comparison.comparison import compare as compared
    from waywiser.curves import read_subject
    from waywiser.profile import STANDARD_OUTPUT, require_one_output, require_output, write_output

    limit = parse_fraction(threshold, "threshold")
    failing = failing_status(fail_on)
    require_one_output(json=json, junit=junit)
    if junit:
        from waywiser.exchange.exports.junit import JUNIT_FILE, junit_xml

        require_output(junit, JUNIT_FILE)
    base, new = ([read_subject(file) for file in side] for side in sides_of(files))
    again = [read_subject(file) for file in repeat or ()]
    found = compared(base, new, limit, only or (), again)
    if junit:
        write_output(junit, junit_xml(found, failing), JUNIT_FILE)

    def parts() -> Iterator[Block]:
        from waywiser.cli.remeasure import command_parts
        from waywiser.report.views.comparison import comparison_parts

        yield from comparison_parts(found, everything=everything)
        if found.counts["suspected"]:
            options = [word for each in only or () for word in ("--only", each)]
            options += ["--fail-on", fail_on] if fail_on != "regression" else []
            yield from command_parts(new[0], found, "compare", options)

    document = found.for_json() if json else None
    print_result(document, parts(), json=json, to_errors=junit == STANDARD_OUTPUT)
    return exit_code(found, failing)


def failing_status(word: str) -> Status | None:
    """Raises `CompareError` for a word that is none of them."""
    if word not in FAILING:
        raise CompareError(
            f"--fail-on does not know {word!r}", remedy=f"write {' or '.join(FAILING)}"
        )
    return FAILING[word]


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


def exit_code(found: ProfileComparison, failing: Status | None) -> int:
    worst = max((STATUSES[path.verdict] for path in found.paths), default=Status.NOT_COMPARED)
    if failing is None:
        return CLEAN
    if worst >= failing:
        return FINDING
    is_nothing_decided = all(path.verdict == "not decided" for path in found.measured)
    return INCONCLUSIVE if worst is Status.SUSPECTED or is_nothing_decided else CLEAN
