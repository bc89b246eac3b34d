"""``waywiser report``: profiles as one page, as Markdown, or single figures of them."""

from __future__ import annotations

import waywiser
from waywiser.cli.app import given_of, print_verb, verb


@verb("Make a page of profiles: status, findings, figures.")
def report(
    files: list[str],
    output: str = "",
    format: str = "",
    figure: str = "",
    profile: str = "",
    all: bool = False,
) -> None:
    """Make a page of profiles: status, findings, figures, everything that was measured.

    FILE...: Profiles (.wwp), side by side; or the folder of a cluster survey, or a trace (.wwt).
    -o, --output FILE: By default report.html, and standard output for md; - for standard output. A
        former report is replaced.
    --format FORMAT: html (one page that needs no network), md (a summary of at most 8 KB), or svg,
        pdf or png of one figure, or perfetto (the worst second of a trace, for ui.perfetto.dev);
        without it, what the name of FILE says, else html.
    --figure NAME: The figure of svg (the default with it), pdf and png; list names all of them.
    --profile FILE: By default the one that it was traced with.
    --all: Of md the whole report, not the summary; a page has everything.

    waywiser report node.wwp -o report.html
        make a page of one machine
    waywiser report before.wwp now.wwp -o both.html
        show two profiles together
    """
    given = given_of(locals())
    from waywiser.profile import STANDARD_OUTPUT, write_output

    found = waywiser.report(*given.pop("files"), **given)
    if figure != "list" and not found.document["output"]:
        write_output(STANDARD_OUTPUT, found.result)
    print_verb(found)
