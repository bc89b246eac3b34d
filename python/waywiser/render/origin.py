"""When a profile was measured, and by whom: surveys know, imported files may say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from waywiser.render.entry import Entry
from waywiser.render.parts import Fold, Sheet
from waywiser.words import count

MOST_FILES = 200
"""Files of an import that are listed; the rest is counted."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_KNOWN_FIELDS = ("file", "tool", "version", "date", "hostname", "left_out")
_COLUMNS = ("file", "tool", "version", "date in it", "host in it", "skipped because")


def when(entry: Entry) -> str:
    """``measured 2026-11-20``, to the day; empty if it was not recorded. Of other tools' files what
    they say themselves: the day of their import is not that of any measurement."""
    seen = entry.subject.overview
    day = (seen.runs[0].started if seen.runs else seen.created)[:10]
    files = _files(entry)
    if not files:
        how = "simulated" if entry.subject.machine.simulated else "measured"
        return f"{how} {day}" if day else ""
    files_dates = (_DAY.match(str(file.get("date", ""))) for file in files)
    days = sorted({found.group() for found in files_dates if found})
    if not days:
        return f"imported {day}, unknown when it was measured"
    return f"measured {days[0]}{f' to {days[-1]}' if days[1:] else ''}, imported {day}"


def imported_files(entries: Sequence[Entry]) -> Iterator[Fold]:
    """The files of each machine whose profile other tools wrote, with what these say."""
    for entry in entries:
        if files := _files(entry):
            whose = f" of {entry.name}" if len(entries) > 1 else ""
            yield Fold(f"Imported{whose}: {count(len(files), 'file')}", (_sheet(files),))


def _sheet(files: Sequence[dict[str, Any]]) -> Sheet:
    shown, more = files[:MOST_FILES], len(files) - MOST_FILES
    rows = ([str(file.get(key, "")) for key in _KNOWN_FIELDS] for file in shown)
    caption = f"{more} more are not shown." if more > 0 else ""
    return Sheet.of("Files that were imported", _COLUMNS, rows, caption)


def _files(entry: Entry) -> list[dict[str, Any]]:
    sources = entry.subject.environment.get("imported")
    return [file for file in sources if isinstance(file, dict)] if isinstance(sources, list) else []
