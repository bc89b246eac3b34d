"""Collectives of the OSU micro-benchmarks: their titles, their sizes, and how many ranks they have.

A table does not say how many ranks it is of: the command above it does, if the text has it. Sizes
become those of `waywiser.words.collective`: of a gather, a scatter, an allgather and an alltoall
the tables have what each rank gives or takes, one part of as many as there are ranks.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from waywiser.exchange.imports.foreign_file import clipped
from waywiser.exchange.imports.text_runs import TextRun
from waywiser.words import COLLECTIVE, MOST_TOGETHER, Memory, Path, Place, Transfer, Workload


class OsuCollective(NamedTuple):
    """One of them."""

    name: str
    in_parts: bool
    """Whether the size of a table is one part of as many as there are ranks."""


COLLECTIVES = {
    "allreduce latency": OsuCollective("allreduce", False),
    "reduce latency": OsuCollective("reduce", False),
    "reduce_scatter latency": OsuCollective("reduce-scatter", False),
    "broadcast latency": OsuCollective("broadcast", False),
    "allgather latency": OsuCollective("allgather", True),
    "gather latency": OsuCollective("gather", True),
    "scatter latency": OsuCollective("scatter", True),
    "all-to-all personalized exchange latency": OsuCollective("alltoall", True),
}
"""By title."""

NO_COMMAND = (
    "the number of its ranks is unknown: keep the command (mpirun -n 8 osu_allreduce) above the "
    "table"
)

MEAN = "its times are means over the ranks: -f adds those of the slowest"

_LONGEST = re.compile(r"\bMax\s+Lat", re.IGNORECASE)
_COLUMN = re.compile(r"[A-Z]\w*\s+Lat\w*\s*\(us\)", re.IGNORECASE)


def why_not(run: TextRun) -> str:
    """Why the collective of a run is not imported; empty if it is."""
    if run.command is None:
        return (
            f"the number of its ranks is unknown: {run.contested}" if run.contested else NO_COMMAND
        )
    ranks = run.command.ranks
    if not ranks:
        command = clipped(run.command.text, 120)
        return (
            f"the number of its ranks is unknown: its command, {command!r}, does not say it "
            "(mpirun -n 8 would)"
        )
    if not 2 <= ranks <= MOST_TOGETHER:
        return f"it has {ranks} ranks, which are not imported: 2 to {MOST_TOGETHER} are"
    return ""


def longest_column(columns: str) -> int:
    """The number of the column with the time of the slowest rank, from 0; 0 if there is none."""
    names = _COLUMN.findall(columns)
    return next((n for n, name in enumerate(names) if _LONGEST.match(name)), 0)


def collective_workload(
    what: OsuCollective, kind: str, ranks: int, size: int, settings: dict[str, str]
) -> Workload:
    """The collective of a row, in memory of this kind at each rank."""
    together = Memory(kind, Place("rank", 0, last=ranks - 1))
    path = Path(together, together, "mpi")
    whole = size * ranks if what.in_parts else size
    return Workload((Transfer(path, whole, {COLLECTIVE: what.name, **settings}),))
