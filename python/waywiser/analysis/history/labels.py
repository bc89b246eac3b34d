"""Labels of nodes, and the first day whose changes are listed: what a user says of a history."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from waywiser.words import (
    NotRegular,
    TooLarge,
    WaywiserError,
    WordError,
    read_regular,
    single_line,
    why_not_read,
)

_DAYS = re.compile(r"([0-9]{1,4})d")

LARGEST_LABELS = 16 * 2**20
"""Bytes of a file of labels that is read."""


Labels = Mapping[str, Mapping[str, str]]
"""The labels of each host or GPU."""


class LabelsError(WaywiserError):
    """A file of labels that cannot be used."""


VALUE_COLUMN = "gb_per_s"
"""The column that a table of values of machines has, and one of labels has not."""

RESERVED = frozenset({"host", "path", "bytes", "status", "kind", "confirmed"})
"""Names of labels that metrics have already."""


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


def has_labels(file: str) -> bool:
    """Whether a file has labels and no values of machines: the first line, but for empty ones and
    comments, has a label, or is the head of another table than one of values."""
    try:
        text = read_regular(file, LARGEST_LABELS).decode("utf-8-sig", errors="replace")
    except (OSError, NotRegular, TooLarge):
        return False
    head = next((line for line in text.splitlines() if line.strip()), "")
    if "," in head and "=" not in head:
        return VALUE_COLUMN not in head.split(",")
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return any("=" in word for word in next(filter(None, lines), ())[1:])


def read_labels(file: str) -> dict[str, dict[str, str]]:
    """The labels of each host or GPU: of lines ``n005 rack=r12``, or of a table (CSV) whose first
    column has hosts or UUIDs, and whose first line the names. Raises `LabelsError` with the
    line."""
    try:
        text = read_regular(file, LARGEST_LABELS).decode("utf-8-sig")
    except OSError as error:
        raise LabelsError(
            why_not_read(error), where=file, remedy="name a file of labels"
        ) from error
    except UnicodeDecodeError as error:
        raise LabelsError("is no text in UTF-8", where=file, remedy="save it as UTF-8") from error
    if "," in next((line for line in text.splitlines() if line.strip()), ""):
        return _labels_of_table(text, file)
    found: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = single_line(line.partition("#")[0]).split()
        if not words:
            continue
        where = f"{file}:{number}"
        own = found.setdefault(words[0], {})
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if not equals or not _is_name(name):
                raise LabelsError(
                    f"{word!r} is no label",
                    where=where,
                    remedy="write HOST NAME=VALUE; a name has letters, digits and _, and is none "
                    f"of {', '.join(sorted(RESERVED))}",
                )
            own[name] = value
    return found


def _is_name(name: str) -> bool:
    return bool(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name)) and name not in RESERVED


def _labels_of_table(text: str, file: str) -> dict[str, dict[str, str]]:
    lines = csv.reader(text.splitlines())
    try:
        rows = [(lines.line_num, cells) for cells in lines if any(map(str.strip, cells))]
    except csv.Error as error:
        raise LabelsError(
            f"is no table: {error}", where=f"{file}:{lines.line_num}", remedy="write host,NAME,NAME"
        ) from error
    if not rows:
        return {}
    (first, head), *others = rows
    names = [name.strip() for name in head]
    for name in names[1:]:
        if not _is_name(name):
            raise LabelsError(
                f"{name!r} is no name of a label",
                where=f"{file}:{first}",
                remedy="write host,NAME,NAME; a name has letters, digits and _, and is none of "
                f"{', '.join(sorted(RESERVED))}",
            )
    found: dict[str, dict[str, str]] = {}
    for line, cells in others:
        if len(cells) != len(names):
            raise LabelsError(
                f"{len(cells)} values for {len(names)} names",
                where=f"{file}:{line}",
                remedy="write a value for each name, or nothing between two commas",
            )
        own = zip(names[1:], map(str.strip, cells[1:]), strict=True)
        named = {name: single_line(value) for name, value in own if value}
        found.setdefault(cells[0].strip(), {}).update(named)
    return found
