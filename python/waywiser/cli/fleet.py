"""``waywiser fleet``: which nodes differ from their peers?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from waywiser.cli.percent import parse_fraction

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.analysis.comparison.fleet import Fleet, HostVerdict

CLEAN, FINDING, FAILED, INCONCLUSIVE = 0, 1, 2, 3

STYLES = {"bad": "bold red", "suspect": "yellow", "not determined": "dim", "fine": "green"}


def run_fleet(files: Sequence[str], threshold: str, json: bool = False, page: str = "") -> int:
    """Returns 1 if a node is bad or suspect, 3 if nothing can be said of any, 2 if no
    file could be read, else 0. Files that cannot be read are listed. ``page`` names a file that
    takes it all as a page, ``-`` standard output; raises what `write_page` raises."""
    from waywiser.cli.pages import require_page
    from waywiser.profile.output_file import STANDARD_OUTPUT, require_one_output

    limit = parse_fraction(threshold, "threshold")
    require_one_output(json=json, page=page)
    require_page(page)
    found = read_fleet(files, limit)
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
    else:
        from waywiser.cli.picture import plain_console

        print_fleet(found, plain_console(to_errors=page == STANDARD_OUTPUT))
    if page:
        _write(found, page)
    if not found.hosts:
        return FAILED
    if found.of("bad", "suspect"):
        return FINDING
    return CLEAN if found.of("fine") else INCONCLUSIVE


def _write(found: Fleet, page: str) -> None:
    from waywiser.cli.pages import write_page
    from waywiser.report.fleet import fleet_document
    from waywiser.report.page import page as made

    write_page(page, made(fleet_document(found)).encode())


def read_fleet(files: Sequence[str], threshold: float) -> Fleet:
    """Assesses the readable profiles; the others are listed with the reason. A folder stands
    for the profiles in it."""
    import os

    from waywiser.analysis.comparison.fleet import assess_fleet
    from waywiser.analysis.comparison.node import Node, read_node
    from waywiser.profile import ProfileError
    from waywiser.profile.name import SUFFIX

    nodes: list[Node] = []
    unreadable: dict[str, str] = {}
    for file in dict.fromkeys(name for each in files for name in _profiles_of(each)):
        try:
            nodes.append(read_node(file, links=True))
        except ProfileError as error:
            is_folder = os.path.isdir(file)
            unreadable[file] = f"no *{SUFFIX} is in this folder" if is_folder else error.what
    return assess_fleet(nodes, threshold, unreadable)


def _profiles_of(name: str) -> list[str]:
    """The profiles of a folder; the folder itself if it has none; a file is its own profile."""
    import os
    from pathlib import Path

    from waywiser.profile.name import SUFFIX

    if not os.path.isdir(name):  # no error for a name that is too long
        return [name]
    return sorted(str(each) for each in Path(name).glob(f"*{SUFFIX}")) or [name]


def print_fleet(found: Fleet, console: Console | None = None) -> None:
    """The counts, the nodes that something is wrong with, and what could not be read."""
    from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console
    from waywiser.words.number_format import count

    console = console or plain_console()
    say(console, _headline(found), "bold")
    for each in found.classes:
        too_few = "" if each.assessed else f" (not determined: fewer hosts than {FEWEST_HOSTS})"
        say(console, f"class: {each.name}: {count(each.hosts, 'host')}{too_few}")
    for host in found.of("bad", "suspect"):
        _print_host(console, host)
    noted = [host for host in found.hosts if host.notes and host.status not in ("bad", "suspect")]
    for host in noted:
        say(console, f"note: {host.host}: {'; '.join(host.notes)}")
    for file, why in found.unreadable.items():
        say(console, f"not read: {file}: {why}")


def _headline(found: Fleet) -> str:
    from waywiser.words.number_format import count

    statuses = ("bad", "suspect", "not determined", "fine")
    counts = [(sum(h.status == status for h in found.hosts), status) for status in statuses]
    summary = ", ".join(f"{number} {status}" for number, status in counts if number)
    unread = f"; {count(len(found.unreadable), 'file')} not read" if found.unreadable else ""
    if not found.hosts:
        return f"no host{unread}"
    return f"{summary} of {count(len(found.hosts), 'host')}{unread}"


def _print_host(console: Console, host: HostVerdict) -> None:
    from rich.text import Text

    from waywiser.cli.lines import say

    files = "" if len(host.files) == 1 else f" ({len(host.files)} surveys)"
    console.print(Text(f"{host.status:<8}", STYLES[host.status]).append(f"{host.host}{files}"))
    for fault in host.faults:
        say(console, fault.statement, indent=4)
        devices = ", ".join(map(str, fault.devices))
        if devices:
            say(console, f"on {devices}", "dim", indent=6)
        if fault.again and not fault.verdict:
            say(console, f"measure again: {fault.again}", indent=6)
    for note in host.notes:
        say(console, f"note: {note}", indent=4)
