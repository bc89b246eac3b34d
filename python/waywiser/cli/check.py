"""``waywiser check``: whether one node is as it was, for every night."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from waywiser.cli.percent import parse_fraction

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.analysis.comparison.checkup import Checkup
    from waywiser.analysis.comparison.node import Node

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
    output, and the text goes to standard error).

    ``repeat`` are profiles in which suspected paths were measured again. With ``measure``, they are
    measured again now if the profile is of this machine. Returns 0, 1 or 3. Raises `ProfileError`,
    `NotWritable`, `WordError`; `ExistingFile` for a file of ``prometheus`` that no check wrote.
    """
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        require_one_output,
        require_output,
        write_output,
    )

    limit = parse_fraction(threshold, "threshold")
    require_one_output(json=json, prometheus=prometheus)
    if prometheus:
        from waywiser.cli.prometheus import METRICS_FILE

        require_output(prometheus, METRICS_FILE)
    from waywiser.analysis.comparison.checkup import check_up
    from waywiser.analysis.comparison.node import read_node

    before = [read_node(each, links=True) for each in baseline]
    node = read_node(file, links=True)
    again = [read_node(each) for each in repeat]
    found = check_up(node, before, limit, again)
    failure = ""
    if found.suspects and measure:
        from waywiser.cli.remeasure import measure_again

        measured, failure = measure_again(file, node, found.suspects, repeat)
        if measured is not None:
            again.append(measured)
            found = check_up(node, before, limit, again)
    if prometheus:
        from waywiser.cli.prometheus import exposition

        write_output(prometheus, exposition(found, node).encode(), METRICS_FILE)
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
    else:
        from waywiser.cli.picture import plain_console

        console = plain_console(to_errors=prometheus == STANDARD_OUTPUT)
        print_checkup(found, console, node, failure)
    return EXIT_CODES[found.status]


def print_checkup(found: Checkup, console: Console, node: Node, failure: str = "") -> None:
    """Prints the status, then why, and the commands that measure on the ``node`` what is not
    decided; ``failure`` says why that was not done here."""
    from waywiser.analysis.comparison.comparison_text import (
        NOT_DECIDED,
        detectable_text,
        figures_before_and_now,
        label,
        to_decide,
    )
    from waywiser.cli.lines import say
    from waywiser.cli.remeasure import print_commands
    from waywiser.words.sizes_in_text import size_of, with_units

    say(console, str(found), "bold")
    for line in (*found.findings, *found.undecided):
        say(console, line, indent=2)
    if found.undecided or found.comparison.another_machine:
        print_commands(console, node, found.comparison, "check")
    if failure:
        say(console, f"it could not be measured again here: {failure}", indent=2)
    if found.drops:
        say(console, "largest drops:", indent=2)
    for drop in found.drops:
        loss = detectable_text(
            drop.detectable,
            hides=drop.verdict == NOT_DECIDED,
            has_changed=drop.verdict != "no change",
        )
        say(console, f"{drop.ratio - 1:+.1%}  {drop.verdict}: {with_units(drop.name)}", indent=4)
        before, now = figures_before_and_now(drop.size)
        at = f" at {size}" if (size := size_of(drop.size.series)) else ""
        say(console, f"{before} before, {now} now{at}; {loss}", indent=12)
    named = {drop.name for drop in found.drops if drop.verdict == NOT_DECIDED}
    if unclear := [path for path in found.comparison.measured if label(path) in named]:
        say(console, to_decide(found.comparison, unclear), indent=4)
    for note in found.notes:
        say(console, f"note: {note}", indent=2)
