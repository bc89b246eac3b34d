"""What the command of an OSU table says, held against the table: buffers, GPUs, and the test.

The table is the witness. Its title names a runtime of GPUs (``MPI-CUDA``) only if a buffer is on a
GPU or an option of the command says so, and no host memory has the bandwidth of a GPU's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.commands.transcript import shown_commands
from waywiser.exchange.imports.foreign_file import Malformed, clipped
from waywiser.exchange.imports.text_runs import TextRun
from waywiser.exchange.imports.visible_gpus import visible_gpus
from waywiser.words import Value, format_rate

_BUFFERS = re.compile(
    r"^\s*#\s*Send Buffer on \w+ \((?P<send>[DHM])\w?\) "
    r"and Receive Buffer on \w+ \((?P<to>[DHM])\w?\)"
)
_PAIR = re.compile(
    r"(?<![\w-])(?P<send>[DHM])(?:[\s,/]+|\s*-+>\s*|2|[\s_-]+to[\s_-]+)(?P<to>[DHM])(?![\w-])"
)

_PAIR_IN_WORDS = re.compile(
    r"\b(?P<send>host|device|managed)[ -]to[ -](?P<to>host|device|managed)\b", re.IGNORECASE
)

PROGRAMS = {
    "latency": "osu_latency",
    "bandwidth": "osu_bw",
    "bi-directional bandwidth": "osu_bibw",
    "multi latency": "osu_multi_lat",
    "multi-threaded latency": "osu_latency_mt",
    "multiple bandwidth / message rate": "osu_mbw_mr",
    "allreduce latency": "osu_allreduce",
    "reduce latency": "osu_reduce",
    "reduce_scatter latency": "osu_reduce_scatter",
    "broadcast latency": "osu_bcast",
    "allgather latency": "osu_allgather",
    "gather latency": "osu_gather",
    "scatter latency": "osu_scatter",
    "all-to-all personalized exchange latency": "osu_alltoall",
}
"""What the title names -> the program that prints it."""
_KNOWN = frozenset(PROGRAMS.values())

LINES_ABOVE = 4
"""Lines above a title in which a heading may stand."""

MOST_OF_HOST = 200e9
"""Bytes per second of one message in host memory: more than the copies of any one core."""


class Buffers(Value, frozen=True):
    """Where the buffers of a table are."""

    send: str
    """``H``, ``D`` or ``M``."""
    to: str
    note: str = ""
    """What that rests on, if the table does not state it."""


def is_made_by(command: CommandLine, title: str) -> bool:
    """Whether a command can have made the table with this title."""
    found = re.search(r"#\s*OSU\s+\S+\s+(.+?)\s+Test\b", title, re.IGNORECASE)
    program = PROGRAMS.get(found[1].lower(), "") if found else ""
    if command.format != "osu" or command.is_bare:
        return False
    return command.program == program or not (program and command.program in _KNOWN)


def buffers_of(
    lines: Sequence[str], above: Sequence[str], mpi: str, run: TextRun, where: str
) -> Buffers:
    """The buffers of a message: as the table says, else its command, else a heading, else the
    title. Raises `Malformed` if two of these contradict each other."""
    stated = next((match for line in lines if (match := _BUFFERS.match(line))), None)
    command = run.command
    pair = _of_command(command)
    if stated is not None:
        found = Buffers(stated["send"], stated["to"])
        if pair and pair != (found.send, found.to):
            raise _contradiction(
                f"the table says {found.send} {found.to}", f"its command {' '.join(pair)}", where
            )
        return found
    of_gpus = "-" in mpi
    if pair:
        if not of_gpus and pair != ("H", "H"):
            raise _contradiction(
                f"its command has {' '.join(pair)}", f"its title names no GPU ({mpi})", where
            )
        return Buffers(*pair)
    if command is not None and of_gpus:
        text = clipped(command.text, 120)
        raise Malformed(
            f"where its buffers were is unknown: the title says {mpi}, and its command, {text!r}, "
            "names no buffers such as D D",
            where=where,
        )
    if command is None and of_gpus and run.contested:
        raise Malformed(f"where its buffers were is unknown: {run.contested}", where=where)
    if command is None and of_gpus:
        return _of_heading(above) or Buffers(
            "D", "D", "the place of the buffers is unknown: GPUs are assumed, as the title suggests"
        )
    return Buffers("H", "H")


def _of_command(command: CommandLine | None) -> tuple[str, ...]:
    """The buffers that a command names; empty if it names none."""
    if command is None:
        return ()
    if len(command.words) == 2:
        return tuple(word[0] for word in command.words)
    return ("M", "M") if command.value_of("-d", "--accelerator") == "managed" else ()


def _of_heading(above: Sequence[str]) -> Buffers | None:
    """What a line above says that is no command: ``--- osu_latency (D D) ---``."""
    near = [line for line in above if line.strip()][-LINES_ABOVE:]
    for line in reversed(near):
        found = _PAIR.search(line) or _PAIR_IN_WORDS.search(line)
        if found and not shown_commands([line]):
            note = f"where its buffers are is taken from the line {clipped(line, 60)!r}"
            return Buffers(found["send"][0].upper(), found["to"][0].upper(), note)
    return None


def require_possible(buffers: Buffers, mpi: str, rate: float, where: str) -> None:
    """Raises `Malformed` for buffers of the host that are as fast as a GPU's; ``rate`` is in bytes
    per second, of one direction."""
    if "-" in mpi and "H" in (buffers.send, buffers.to) and rate > MOST_OF_HOST:
        raise _contradiction(
            f"a buffer is in host memory ({buffers.send} {buffers.to})",
            f"{format_rate(rate)} GB/s is more than host memory has",
            where,
        )


def _contradiction(one: str, other: str, where: str) -> Malformed:
    return Malformed(f"{one}, and {other}: one of them is not of this table", where=where)


def collective_buffers(mpi: str, command: CommandLine | None) -> Buffers:
    """The memory of a collective, which is the same at each rank: as the command says, else the
    title."""
    if command is not None and command.value_of("-d", "--accelerator") == "managed":
        return Buffers("M", "M")
    return Buffers("D", "D") if "-" in mpi else Buffers("H", "H")


class RankGpus(Value, frozen=True):
    """The GPUs of the first two ranks."""

    gpus: tuple[int, int] = (0, 1)
    variable: str = ""
    """The variable that names them; empty if they are numbered by rank."""


def rank_gpus(command: CommandLine | None) -> RankGpus:
    """By the variable that lists the GPUs of both ranks: only of ranks of one node."""
    if command is None or not _is_on_one_node(command):
        return RankGpus()
    visible = visible_gpus(command)
    if len(visible.gpus) < 2:
        return RankGpus()
    return RankGpus((visible.gpus[0], visible.gpus[1]), visible.variable)


_FILLS_NODES = ("mpirun", "mpiexec", "orterun", "prun", "prterun")
"""Launchers that start ranks on one node until it is full, if nothing else is said."""
_SPREADS = re.compile(
    r"file=|ranks-of-node=1$|(?:map-by|rank-by)=(?:node|ppr:1:node)|bynode|rankfile="
)
"""Settings that can put two ranks on two nodes."""


def _is_on_one_node(command: CommandLine) -> bool:
    """Whether its command shows that the ranks are on one node."""
    if command.nodes > 1 or len(set(command.hosts)) > 1:
        return False
    if command.nodes == 1 or command.hosts:
        return True
    if any(map(_SPREADS.match, command.settings)):
        return False
    return not command.launcher or command.launcher.startswith(_FILLS_NODES)
