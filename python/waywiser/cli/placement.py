"""``waywiser advise --placement``: where to put buffers and threads, which GPUs to use together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from waywiser.words import WaywiserError

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.curves.answer import Table


def require_options(of_copies: Mapping[str, object], *, placement: bool, table: bool) -> None:
    """Raises `WaywiserError` for an option of copies with ``--placement``, and if one that a copy
    needs is missing without it. ``of_copies`` has what each option was given. A table of all sizes
    needs no ``--bytes``."""
    if placement:
        given = [name for name, value in of_copies.items() if value]
        if given:
            raise WaywiserError(f"{given[0]} says nothing about a placement", remedy="leave it out")
        return
    if table and not of_copies["--bytes"]:
        of_one_size = [name for name in ("--max-threads", "--polite") if of_copies[name]]
        if of_one_size:
            raise WaywiserError(
                f"{of_one_size[0]} says nothing about a table of all sizes", remedy="add --bytes"
            )
    needed = ("--from", "--to") if table else ("--from", "--to", "--bytes")
    missing = [name for name in needed if not of_copies[name]]
    if missing:
        raise WaywiserError(
            f"{' and '.join(missing)} missing",
            remedy="write --from, --to and --bytes as in the examples of its help, or --placement",
        )


def run_placement(file: str, *, tables: bool = False, json: bool = False) -> int:
    """Prints the sentences, and with ``tables`` all costs. Returns 0. Raises the `ProfileError` of
    a bad profile."""
    from waywiser.analysis.questions.placement_answer import placement
    from waywiser.analysis.questions.placement_text import placement_tables
    from waywiser.curves.subject import Subject
    from waywiser.profile import Profile

    with Profile.open(file) as profile:
        found = placement(Subject.of(profile))
        simulated = profile.machine.simulated
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
        return 0
    from waywiser.cli.lines import say
    from waywiser.cli.printing import plain_console

    console = plain_console()
    if simulated:
        say(console, f"Simulated {simulated}: nobody measured this machine.")
    for sentence in found.sentences:
        say(console, sentence)
    for name in found.unanswered:
        say(console, f"Not determined: {name}.")
    for table in placement_tables(found) if tables else ():
        _print_answer_table(table, console)
    return 0


def _print_answer_table(table: Table, console: Console) -> None:
    """The marks as words before the texts of their cells."""
    from waywiser.cli.lines import say
    from waywiser.cli.text_table import TextColumn, print_table

    columns = [TextColumn(name, left=True, folds=n > 0) for n, name in enumerate(table.columns)]
    marks = {"": "", "yes": "yes", "no": "no", "unclear": "?"}
    rows = [tuple(f"{marks[c.mark]} {c.text}".strip() for c in row) for row in table.rows]
    say(console, "")
    say(console, table.title, "bold")
    say(console, table.caption)
    print_table(console, columns, rows)
