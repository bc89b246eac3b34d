"""Prints the result of a verb, as JSON or as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from waywiser.cli.streams import print_json
from waywiser.words import Status

if TYPE_CHECKING:
    from waywiser.report.parts import Block, Section

CLEAN, FINDING, INCONCLUSIVE = 0, 1, 3
"""Exit codes of what was compared."""


def exit_code(worst: Status) -> int:
    """The exit code for the worst status of all that was compared."""
    return {Status.OK: CLEAN, Status.FAILED: FINDING}.get(worst, INCONCLUSIVE)


def print_result(
    document: object,
    parts: Iterable[Block | Section],
    *,
    json: bool = False,
    to_errors: bool = False,
) -> None:
    """Prints the ``document`` as JSON, or the ``parts`` as text, to standard output or, the text,
    ``to_errors``."""
    if json:
        print_json(document)
        return
    from waywiser.cli.printing import plain_console
    from waywiser.report.terminal import print_parts

    print_parts(plain_console(to_errors=to_errors), parts)
