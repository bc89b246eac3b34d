"""A profile whose visits are all there from the start: written at once, or not at all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waywiser.profile import writing
from waywiser.profile.beside import beside
from waywiser.profile.opening import explained
from waywiser.profile.schema import create_sql
from waywiser.records import Refusal, Summary, Visit
from waywiser.topology.machine import Machine


def write_profile(
    path: str | os.PathLike[str],
    machine: Machine,
    environment: Mapping[str, Any],
    visits: Iterable[Visit],
    *,
    summarise: Callable[[Visit], Summary] | None = None,
    plan_json: str | bytes = "{}",
    refusals: Sequence[Refusal] = (),
    command: Sequence[str] = (),
) -> None:
    """Writes a profile of one run in one transaction; thousands of visits in a second.

    ``summarise`` is `waywiser.stats.summary.summary_of`; without it readers of
    `waywiser.profile.digest` make the summaries each time.

    The file gets its name when it is complete. Raises `ExistingFile`, `NotWritable`, and whatever
    ``visits`` raises; then nothing is left.
    """
    plan = plan_json if isinstance(plan_json, str) else plan_json.decode()
    with beside(Path(path)) as part, explained(part):
        connection = sqlite3.connect(part, isolation_level=None)
        try:
            connection.executescript("BEGIN;" + create_sql())
            writing.fill(connection, machine, plan, refusals)
            run = writing.begin_run(connection, environment, command)
            for visit in visits:
                writing.insert_visit(
                    connection, visit, run, summarise(visit) if summarise else None
                )
            connection.execute("UPDATE run SET ended = ? WHERE run = ?", (writing.now(), run))
            connection.execute("COMMIT")
        finally:
            connection.close()
