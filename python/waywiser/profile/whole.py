"""A profile whose visits are all there from the start: written at once, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waywiser.profile import writing
from waywiser.profile.beside import beside
from waywiser.profile.opening import explained
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
    with (
        beside(Path(path)) as part,
        explained(part),
        writing.new_database(part, machine, plan_json, refusals) as connection,
    ):
        run = writing.begin_run(connection, environment, command)
        for visit in visits:
            writing.insert_visit(connection, visit, run, summarise(visit) if summarise else None)
        writing.end_run(connection, run)
