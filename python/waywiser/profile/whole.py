"""A profile whose visits are all there from the start: written at once, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waywiser.machine.machine import Machine
from waywiser.profile import writing
from waywiser.profile.opening import explained
from waywiser.profile.output_file import new_output
from waywiser.words.records import Unsupported, Visit


def write_profile(
    path: str | os.PathLike[str],
    machine: Machine,
    environment: Mapping[str, Any],
    visits: Iterable[Visit],
    *,
    plan_json: str | bytes = "{}",
    unsupported_paths: Sequence[Unsupported] = (),
    command: Sequence[str] = (),
) -> None:
    """Writes a profile of one run in one transaction; thousands of visits in a second.

    The file gets its name when it is complete. Raises `ExistingFile`, `NotWritable`, and whatever
    ``visits`` raises; then nothing is left.
    """
    with (
        new_output(Path(path)) as part,
        explained(part),
        writing.new_database(part, machine, plan_json, unsupported_paths) as connection,
    ):
        row = writing.begin_run(connection, 1, environment, command)
        known: set[str] = set()
        number = 0
        for number, visit in enumerate(visits, start=1):
            if (identity := visit.workload.identity) not in known:
                writing.insert_series(connection, visit.workload)
                known.add(identity)
            writing.insert_visit(connection, number, visit, 1)
        writing.note_rows(connection, "visit", number)
        writing.end_run(connection, row)
