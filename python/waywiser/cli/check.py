"""``waywiser check``: the nightly verdict of one node."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from waywiser.cli import streams
from waywiser.cli.percent import parse_fraction
from waywiser.visible import visible

EXIT_CODES = {"ok": 0, "failed": 1, "inconclusive": 3}


def run_check(
    file: str, baseline: Sequence[str], threshold: str, prometheus: str = "", json: bool = False
) -> int:
    """One line with the verdict, then why; metrics to ``prometheus`` (``-``: standard output, and
    the verdict goes to standard error). Returns 0, 1 or 3.

    Raises `ProfileError`, `NotWritten`, `WordError`.
    """
    limit = parse_fraction(threshold, "threshold")
    from waywiser.analysis.checkup import check_up
    from waywiser.analysis.node import read_node

    before = [read_node(each, links=True) for each in baseline]
    node = read_node(file, links=True)
    found = check_up(node, before, limit)
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
        _print(str(found), found.findings, found.notes)
    return EXIT_CODES[found.status]


def _print(verdict: str, findings: Sequence[str], notes: Sequence[str]) -> None:
    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console

    console = plain_console()
    say(console, verdict, "bold")
    for finding in findings:
        say(console, finding, indent=2)
    for note in notes:
        say(console, f"note: {note}", indent=2)
