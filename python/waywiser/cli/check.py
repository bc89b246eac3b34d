"""``waywiser check``: whether one node is as it was, for every night."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waywiser.cli import streams
from waywiser.cli.percent import parse_fraction
from waywiser.visible import visible

if TYPE_CHECKING:
    from waywiser.analysis.checkup import Checkup
    from waywiser.analysis.node import Node

EXIT_CODES = {"ok": 0, "failed": 1, "inconclusive": 3}


def run_check(
    file: str,
    baseline: Sequence[str],
    threshold: str,
    prometheus: str = "",
    json: bool = False,
    repeat: Sequence[str] = (),
    measure: bool = True,
) -> int:
    """Prints one line with the status, then why; writes metrics to ``prometheus`` (``-``: standard
    output, and the status goes to standard error).

    ``repeat`` are profiles in which suspected paths were measured again. With ``measure``, they are
    measured again now if the profile is of this machine. Returns 0, 1 or 3. Raises `ProfileError`,
    `NotWritten`, `WordError`.
    """
    limit = parse_fraction(threshold, "threshold")
    from waywiser.analysis.checkup import check_up
    from waywiser.analysis.node import read_node

    before = [read_node(each, links=True) for each in baseline]
    node = read_node(file, links=True)
    again = [read_node(each) for each in repeat]
    found = check_up(node, before, limit, again)
    failure = ""
    if found.suspects and measure:
        from waywiser.cli.remeasure import measure_again

        measured, failure = measure_again(file, node, found.suspects)
        if measured is not None:
            again.append(measured)
            found = check_up(node, before, limit, again)
    if prometheus:
        from waywiser.cli.prometheus import exposition
        from waywiser.cli.replacing import write_over

        text = exposition(found, node)
        if prometheus == "-":
            sys.stdout.write(text)
        else:
            write_over(prometheus, text.encode())
    if prometheus == "-":
        streams.say(f"{visible(str(found))}\n")
    elif json:
        import msgspec

        document = msgspec.json.format(msgspec.json.encode(found), indent=2)
        sys.stdout.write(document.decode() + "\n")
    else:
        _print(found, node, failure)
    return EXIT_CODES[found.status]


def _print(found: Checkup, node: Node, failure: str) -> None:
    from waywiser.cli.compare import detectable_text
    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console

    console = plain_console()
    say(console, str(found), "bold")
    for line in (*found.findings, *found.unsettled):
        say(console, line, indent=2)
    if found.unsettled:
        say(console, f"to settle it: {_command(found, node)}", indent=2)
    if failure:
        say(console, f"it could not be measured again here: {failure}", indent=2)
    if found.drops:
        say(console, "largest drops:", indent=2)
    for drop in found.drops:
        loss = detectable_text(drop.detectable)
        say(console, f"{drop.ratio - 1:+.1%}  {drop.name} ({loss})", indent=4)
    for note in found.notes:
        say(console, f"note: {note}", indent=2)


def _command(found: Checkup, node: Node) -> str:
    """The command that measures again what is not settled."""
    from waywiser.cli.remeasure import commands

    return commands(node, found.file, found.suspects, found.baseline)
