"""``waywiser history``: what changed on the same nodes, and since when?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from waywiser.cli.app import USUAL_THRESHOLD, Json, Threshold, parse_fraction
from waywiser.cli.result import exit_code, print_result
from waywiser.cli.unread_files import none_read
from waywiser.cli.verb import verb
from waywiser.words import STATUSES, WaywiserError, WordError

if TYPE_CHECKING:
    from waywiser.analysis.history.history import History


_DAYS = re.compile(r"([0-9]{1,4})d")

LARGEST_LABELS = 16 * 2**20
"""Bytes of a file of labels that is read."""


class LabelsError(WaywiserError):
    """A file of labels that cannot be used."""


@verb("Find changes of the same nodes over many nights.")
def history(
    files: list[str],
    since: str = "",
    threshold: Threshold = USUAL_THRESHOLD,
    labels: str = "",
    json: Json = False,
    page: str = "",
    prometheus: str = "",
    junit: str = "",
    suspects: bool = False,
    everything: bool = False,
) -> int:
    """Follow the headline paths of each node over its nights: level, drift, changes of level with
    their date and size, and what is suspected.

    FILE...: Profiles of one node or of many; or their folder, beside which an index is kept.
    --since DAY: List changes from this day on, 2026-11-01, or of so many days, 14d.
    --labels FILE: Labels of nodes: lines of a host name or a GPU's UUID and NAME=VALUE pairs.
    --page FILE: Also write one HTML page that needs no network; - for standard output.
    --prometheus FILE: Also write metrics of all nodes for the textfile collector of Prometheus; -
        for standard output.
    --junit FILE: Also write JUnit XML with a test for each path; - for standard output.
    --suspects: Print only the hosts to measure again, as a host list for Slurm.
    --all: List all paths, not only those that changed.

    waywiser history nodes
        find what changed on each node, and since when
    waywiser history nodes --since 2026-11-01 --page history.html
        list the changes since a day, and write a page with charts
    """
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        require_one_output,
        require_output,
        write_output,
    )
    from waywiser.report.views.history import history_parts

    limit = parse_fraction(threshold, "threshold")
    first = first_day(since)
    require_one_output(json=json, page=page, prometheus=prometheus, junit=junit, suspects=suspects)
    named = read_labels(labels) if labels else {}
    if page:
        from waywiser.cli.pages import require_page

        require_page(page)
    if prometheus:
        from waywiser.exchange.exports.prometheus_nodes import HISTORY_METRICS, history_exposition

        require_output(prometheus, HISTORY_METRICS)
    if junit:
        from waywiser.exchange.exports.junit_nodes import HISTORY_JUNIT, history_junit

        require_output(junit, HISTORY_JUNIT)
    found = read_history(files, limit, first, named)
    nothing_read = not found.nodes and bool(found.unreadable)
    if prometheus:
        write_output(prometheus, history_exposition(found).encode(), HISTORY_METRICS)
    if junit:
        write_output(junit, history_junit(found), HISTORY_JUNIT)
    if page:
        from waywiser.cli.pages import write_page
        from waywiser.report.history import history_document
        from waywiser.report.page import page as made

        write_page(page, made(history_document(found)).encode())
    if suspects:
        print_suspects(found)
    else:
        to_errors = STANDARD_OUTPUT in (page, prometheus, junit)
        parts = history_parts(found, everything=everything)
        if not nothing_read or json:
            print_result(found, parts, json=json, to_errors=to_errors)
    if nothing_read:
        raise none_read(found.unreadable, "no path to follow")
    return exit_code(max(STATUSES[path.status] for path in found.paths)) if found.paths else 2


def read_history(
    files: list[str], threshold: float, since: str, labels: dict[str, dict[str, str]]
) -> History:
    """Follows the nodes of all profiles that can be read; the others are listed."""
    from waywiser.analysis.history.history import history_of
    from waywiser.analysis.history.index import read_nights

    read = read_nights(files)
    return history_of(read.nights, threshold, since, labels, read.unreadable)


def print_suspects(found: History) -> None:
    """A host list as Slurm takes it; nothing if nothing is suspected."""
    import typer

    from waywiser.words.host_list import compress_hosts

    if found.suspects:
        typer.echo(compress_hosts(found.suspects))


def first_day(text: str) -> str:
    """``2026-11-01`` of that, and of ``14d`` on 2026-11-15; empty without a text. Raises
    `WordError` for anything else."""
    if not text:
        return ""
    if days := _DAYS.fullmatch(text):
        return (datetime.now(UTC) - timedelta(days=int(days[1]))).date().isoformat()
    try:
        if len(text) == 10:
            return datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        pass
    raise WordError(f"--since {text!r} is no day", remedy="write 2026-11-01, or 14d for two weeks")


def read_labels(file: str) -> dict[str, dict[str, str]]:
    """The labels of each host or GPU. Raises `LabelsError` with the line."""
    from waywiser.words.regular_file import read_regular, why_not_read
    from waywiser.words.visible_text import single_line

    try:
        text = read_regular(file, LARGEST_LABELS).decode()
    except OSError as error:
        raise LabelsError(
            why_not_read(error), where=file, remedy="name a file of labels"
        ) from error
    except UnicodeDecodeError as error:
        raise LabelsError("is no text in UTF-8", where=file, remedy="save it as UTF-8") from error
    found: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = single_line(line.partition("#")[0]).split()
        if not words:
            continue
        where = f"{file}:{number}"
        own = found.setdefault(words[0], {})
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if not equals or not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) or name in RESERVED:
                raise LabelsError(
                    f"{word!r} is no label",
                    where=where,
                    remedy="write HOST NAME=VALUE; a name has letters, digits and _, and is none "
                    f"of {', '.join(sorted(RESERVED))}",
                )
            own[name] = value
    return found


RESERVED = frozenset({"host", "path", "bytes", "status", "kind", "confirmed"})
"""Names of labels that metrics have already."""
