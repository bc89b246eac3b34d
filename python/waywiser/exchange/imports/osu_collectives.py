"""Collectives of the OSU micro-benchmarks: their titles, their sizes, and how many ranks they have.

A table does not say how many ranks it is of: the command above it does, if the text has it. Sizes
become those of `waywiser.words.collective`: of a gather, a scatter, an allgather and an alltoall
the tables have what each rank gives or takes, one part of as many as there are ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from waywiser.words import Memory, Path, Place, Transfer, Workload
from waywiser.words.collective import COLLECTIVE
from waywiser.words.memory import MOST_TOGETHER


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

NO_RANKS = (
    "the number of its ranks is unknown: keep the command (mpirun -n 8 osu_allreduce) above the "
    "table"
)

MEAN = "its times are means over the ranks: -f adds those of the slowest"

LOOK_BACK = 8
"""Lines above a title in which its command may stand."""

_RANKS = re.compile(r"(?:^|\s)(?:-n|-np|--np|--ntasks)[ =]?(?P<count>[0-9]{1,6})(?=\s|$)")
_NODES = re.compile(r"(?:^|\s)(?:-N|--nodes)[ =]?(?P<count>[0-9]{1,5})(?=\s|$)")
_EACH = re.compile(r"(?:^|\s)--ntasks-per-node[ =](?P<count>[0-9]{1,5})(?=\s|$)")
_LONGEST = re.compile(r"\bMax\s+Lat", re.IGNORECASE)
_COLUMN = re.compile(r"[A-Z]\w*\s+Lat\w*\s*\(us\)", re.IGNORECASE)


def launched_by(lines: Sequence[str], above: int, start: int) -> str:
    """The command in front of the program's name that stands above a title, whole where it goes
    over several lines; empty if none is there. ``above`` is where the run before begins."""
    first = max(above, start - LOOK_BACK)
    for n in range(start - 1, first - 1, -1):
        command, program, _ = lines[n].partition("osu_")
        if not program:
            continue
        while n > first and lines[n - 1].rstrip().endswith("\\"):
            n -= 1
            command = f"{lines[n].rstrip()[:-1]} {command}"
        return command
    return ""


def ranks_of(command: str) -> int:
    """The number of ranks that a command starts; 0 if it does not say."""
    if found := _RANKS.search(command):
        return int(found["count"])
    nodes, each = _NODES.search(command), _EACH.search(command)
    return int(nodes["count"]) * int(each["count"]) if nodes and each else 0


def why_not(ranks: int) -> str:
    """Why a collective of so many ranks is not imported; empty if it is."""
    if not ranks:
        return NO_RANKS
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
