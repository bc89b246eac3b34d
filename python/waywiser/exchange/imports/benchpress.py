"""The text of BenchPress: MPI messages between ranks, and copies between ranks and GPUs.

BenchPress is the program of Bienz, Olson, Gropp & Lockhart, *Modeling Data Movement Performance on
Heterogeneous Architectures* (HPEC 2021). Six kinds of file are read, each by the titles in it:

    ping_pong    one message between two ranks; a column for each size
    maxrate      n pairs of ranks of two nodes; a row for each size, a column for each n
    node_pong    the same, and the size is that of all messages together
    mult_pong    n messages of one rank to n ranks of the other node; rows and columns as maxrate
    memcpy       cudaMemcpyAsync between a rank and a GPU; a column for each size
    memcpy_mult  the same by k + 1 ranks of each GPU at once, below the line ``NP k``

What a reader must know: sizes by position are 4 * 2^i bytes; ``Size n`` counts floats of 4 bytes;
times of messages are half of a round trip; a process of ``node_pong`` sends the whole number of
floats that fits, so rows of small sizes have few columns; what precedes a title, and what follows a
line with the word ``app`` (the placement that the launcher prints), is not part of the results.

Memory is at ``rank:N``, with its node, socket and GPU as its variant, since the same rank of two
files need not be in the same node. `waywiser.exchange.imports.benchpress_places` finds them, and a
note says what they rest on. Every figure is a mean over iterations that the text does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from waywiser.exchange.imports.benchpress_places import NodePlaces, RankPlace, stated_places
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, Malformed, clipped
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.words import Memory, Path, Transfer, Unsupported, Value, Workload

FLOAT_BYTES = 4
MOST_SIZES = 30
"""Sizes of a row: more would be a message above 2 GiB, which an MPI count of that time has not."""
MOST_RANKS = 128
"""Ranks of one node that take part: more is no row of these benchmarks."""
ONE_WAY = "half of a round trip"
GAP = "the file does not place all ranks: which of them the table is of is unknown"
SPLIT = "the sizes of the table are those of all messages together, by the sizes that it has"
ALL_GPUS = "every GPU of the node made such copies at the same time; the text does not count them"

Kind = Literal["pairs", "counts", "copies", "peers", "shared copies"]
"""What the rows of a section are about."""


class BenchPressSection(Value, frozen=True):
    """One table: the lines below one title."""

    title: str
    kind: Kind
    on_gpus: bool
    """The messages are in memory of GPUs."""
    rows: tuple[tuple[int, tuple[int, ...], tuple[float, ...]], ...]
    """(line, numbers of its label, seconds)"""


_TITLES: tuple[tuple[str, Kind, bool], ...] = (
    ("Profiling Standard CPU Ping-Pongs", "pairs", False),
    ("Profiling GPU Ping-Pongs", "pairs", True),
    ("Timing Max-Rate CPU Ping-Pongs", "counts", False),
    ("Timing GPU Max-Rate Ping Pongs", "counts", True),
    ("Timing CPU Multiple Messages", "counts", False),
    ("Timing GPU Multiple Messages", "counts", True),
    ("Memcpy Host To Device Mult", "shared copies", True),
    ("Memcpy Device To Host Mult", "shared copies", True),
    ("Memcpy Host To Device", "copies", True),
    ("Memcpy Device To Host", "copies", True),
    ("Memcpy Device To Device", "peers", True),
)
"""The beginnings of titles; what they begin with more comes first."""

TITLE = re.compile(rf"^(?:{'|'.join(re.escape(text) for text, _, _ in _TITLES)})", re.MULTILINE)
"""How a file shows that it is of this format."""

_LABELS: dict[Kind, re.Pattern[str]] = {
    "pairs": re.compile(
        r"(?:CPU ([0-9]{1,4}) and CPU ([0-9]{1,4})"
        r"|GPU on rank ([0-9]{1,4}) and GPU on rank ([0-9]{1,4})):$"
    ),
    "counts": re.compile(r"Size ([0-9]{1,10})$"),
    "copies": re.compile(r"CPU ([0-9]{1,4}), GPU ([0-9]{1,3}):$"),
    "peers": re.compile(r"CPU ([0-9]{1,4}), GPU ([0-9]{1,3}) <-> GPU ([0-9]{1,3}):$"),
    "shared copies": re.compile(r"NP ([0-9]{1,3})$"),
}
_FIGURE = re.compile(r"[0-9]\.[0-9]{6}e[-+][0-9]{2,3}")
_ROW = re.compile(r"^(?:CPU|GPU|Size|NP)\b|[0-9]\.[0-9]+e[-+]?[0-9]*\t")
"""A line of results, also a damaged one; others are what programs printed between."""
_PLACEMENT = re.compile(r"\bapp\b")


def read(text: str, where: str) -> list[ForeignFile]:
    """All tables as one run. Raises `Malformed` for a row that is not as the benchmark writes it,
    for a section without rows, and for sizes that show neither of the two meanings that they can
    have."""
    sections = list(_sections(text.splitlines(), where))
    if not sections:
        raise Malformed("no title of a BenchPress table", where=where)
    measured: list[ForeignSeries] = []
    unsupported: list[Unsupported] = []
    stated = stated_places(text, where)
    node = NodePlaces(_stated_ranks(stated) or _ranks_of_a_node(sections), 0, stated)
    has_gap = sorted(stated) != list(range(len(stated)))
    for section in sections:
        if has_gap and section.kind == "counts":
            unsupported.append(Unsupported(section.title, GAP))
            continue
        for series in _measured(section, node, where):
            reason = _unplaced(series.workload, stated)
            if not is_time(series.samples.span[0]):
                reason = "its figure is no time"
            if reason:
                unsupported.append(Unsupported(series.name, reason))
            else:
                measured.append(series)
    found = ForeignFile(
        format="benchpress",
        tool="BenchPress",
        environment={"sections": ", ".join(section.title for section in sections)},
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported),
    )
    return [found]


def _unplaced(workload: Workload, stated: Mapping[int, RankPlace]) -> str:
    """What a file that places ranks lacks; empty if nothing: what it states is no rule for the
    others."""
    ranks = {place.index for place in workload.places if place.kind == "rank"}
    missing = sorted(ranks - stated.keys())
    return f"the file places other ranks, and not rank {missing[0]}" if stated and missing else ""


def _sections(lines: Sequence[str], where: str) -> Iterator[BenchPressSection]:
    title, kind, on_gpus, start = "", None, False, 0
    rows: list[tuple[int, tuple[int, ...], tuple[float, ...]]] = []
    waiting: tuple[int, tuple[int, ...]] | None = None

    def closed() -> Iterator[BenchPressSection]:
        if kind is None:
            return
        if not rows or waiting is not None:
            raise Malformed(
                f"{title!r} has no row below it: the file is truncated" if not rows
                else "a row has no figures: the file is truncated",
                where=f"{where}:{waiting[0] if waiting else start}",
                remedy="run the benchmark again",
            )  # fmt: skip
        _require_complete(kind, rows, where)
        yield BenchPressSection(title, kind, on_gpus, tuple(rows))

    for n, line in enumerate(lines, 1):
        if found := _title(line):
            yield from closed()
            title, kind, on_gpus = found
            start, rows, waiting = n, [], None
        elif kind is None:
            continue  # what the shell and the launcher printed before
        elif _ROW.search(line):
            place = f"{where}:{n}"
            label, figures = _parts(line, kind, place, waiting is not None)
            if label is not None:
                if waiting is not None or any(label == other for _, other, _ in rows):
                    raise Malformed("the row occurs twice", where=place)
                waiting = (n, label)
            if figures:
                assert waiting is not None
                rows.append((*waiting, figures))
                waiting = None
        elif _PLACEMENT.search(line):
            break
    yield from closed()


def _title(line: str) -> tuple[str, Kind, bool] | None:
    for text, kind, on_gpus in _TITLES:
        if line.startswith(text):
            return text, kind, on_gpus
    return None


def _parts(
    line: str, kind: Kind, where: str, labelled: bool
) -> tuple[tuple[int, ...] | None, tuple[float, ...]]:
    """(numbers of the label, seconds): ``NP k`` stands above its figures, other labels before
    them."""
    head, *rest = line.rstrip("\t\r ").split("\t")
    alone = kind == "shared copies"
    if alone and labelled:
        return None, _figures([head, *rest], where)
    match = _LABELS[kind].match(head.strip())
    if match is None or (alone and rest):
        raise Malformed(f"{clipped(head, 60)!r} begins no row of this table", where=where)
    numbers = tuple(int(number) for number in match.groups() if number is not None)
    return numbers, () if alone else _figures(rest, where)


def _figures(cells: Sequence[str], where: str) -> tuple[float, ...]:
    if not cells:
        raise Malformed("the row has no figures", where=where)
    if len(cells) > MOST_RANKS:
        raise Malformed(f"the row has {len(cells)} figures, more than {MOST_RANKS}", where=where)
    for cell in cells:
        if not _FIGURE.fullmatch(cell.strip()):
            raise Malformed(
                f"{clipped(cell, 40)!r} where a time like 1.234567e-06 is expected",
                where=where,
                remedy="copy the file again, or run the benchmark again",
            )
    return tuple(float(cell) for cell in cells)


def _require_complete(
    kind: Kind, rows: Sequence[tuple[int, tuple[int, ...], tuple[float, ...]]], where: str
) -> None:
    """Raises `Malformed` for a row with fewer columns than its table has."""
    most = max(len(figures) for _, _, figures in rows)
    if kind != "counts" and most > MOST_SIZES:
        raise Malformed(f"a row of {most} sizes, more than {MOST_SIZES}", where=where)
    for line, label, figures in rows:
        expected: tuple[int, ...] = (most,)
        if kind == "counts":
            if label[0].bit_count() != 1 or label[0] >= 2**MOST_SIZES:
                raise Malformed(f"{label[0]} floats are no size of it", where=f"{where}:{line}")
            expected = (most, min(most, label[0]))
        if len(figures) not in expected:
            raise Malformed(
                f"the row has {len(figures)} figures where others have {most}: it is truncated",
                where=f"{where}:{line}",
                remedy="run the benchmark again",
            )


def _stated_ranks(stated: Mapping[int, RankPlace]) -> int:
    """Ranks of the first rank's node; 0 if the file does not place them."""
    return sum(each.node == stated[0].node for each in stated.values()) if 0 in stated else 0


def _ranks_of_a_node(sections: Sequence[BenchPressSection]) -> int:
    """Ranks of one node: with tables of counts, their most columns; else those that begin a pair,
    since these are all of the first node; else those that copy."""
    counts = [s for s in sections if s.kind == "counts" and not s.on_gpus]
    if counts:
        return max(len(figures) for section in counts for _, _, figures in section.rows)
    firsts = [
        label[0]
        for section in sections
        if section.kind in ("pairs", "copies", "peers")
        for _, label, _ in section.rows
    ]
    gpus = [len(f) for s in sections if s.kind == "counts" for _, _, f in s.rows]
    return max([*(first + 1 for first in firsts), *gpus], default=0)


def _measured(section: BenchPressSection, node: NodePlaces, where: str) -> Iterator[ForeignSeries]:
    match section.kind:
        case "pairs":
            yield from _pairs(section, node)
        case "counts":
            yield from _counts(section, node, where)
        case "copies" | "peers":
            yield from _copies(section, node)
        case "shared copies":
            yield from _shared_copies(section, node)


def _series(
    section: BenchPressSection,
    name: str,
    transfers: Sequence[Transfer],
    seconds: float,
    notes: tuple[str, ...],
    node: NodePlaces,
) -> ForeignSeries:
    ranks = {end.place.index for transfer in transfers
             for end in (transfer.path.source, transfer.path.destination)
             if end.place.kind == "rank"}  # fmt: skip
    return ForeignSeries(
        name=f"{section.title}, {name}, {transfers[0].bytes}",
        family=section.title,
        workload=Workload(tuple(transfers)),
        mode="host",
        samples=summary(seconds, (seconds,) if len(transfers) == 1 else ()),
        notes=(*notes, node.note(ranks)),
    )


def _pairs(section: BenchPressSection, node: NodePlaces) -> Iterator[ForeignSeries]:
    ranks = node.ranks
    known = sorted({rank for _, label, _ in section.rows for rank in label})
    local = [rank for rank in known if rank < ranks]
    step = local[1] - local[0] if section.on_gpus and len(local) > 1 else 1
    node = replace(node, gpus=len(local))
    for _, (one, other), figures in section.rows:
        if section.on_gpus:
            ends = [node.device_of(rank, rank % max(ranks, 1) // step) for rank in (one, other)]
        else:
            ends = [node.host(rank) for rank in (one, other)]
        path = Path(ends[0], ends[1], "mpi")
        for i, seconds in enumerate(figures):
            transfer = Transfer(path, FLOAT_BYTES * 2**i, {"test": "ping-pong"})
            yield _series(section, f"{one} and {other}", (transfer,), seconds, (ONE_WAY,), node)


def _counts(section: BenchPressSection, node: NodePlaces, where: str) -> Iterator[ForeignSeries]:
    """Tables of counts: the n-th column is of n pairs of ranks, or of n messages of rank 0."""
    most = max(len(figures) for _, _, figures in section.rows)
    is_one_sender = section.title.endswith("Multiple Messages")
    is_split = _is_split(section, most, is_one_sender, where)
    test = "messages" if is_one_sender else "node-pong" if is_split else "max-rate"
    ranks = node.ranks
    step = max(1, ranks // most) if section.on_gpus else 1
    notes = (ONE_WAY, SPLIT) if is_split else (ONE_WAY,)
    node = replace(node, gpus=most)

    def end(rank: int) -> Memory:
        if section.on_gpus:
            return node.device_of(rank, rank % max(ranks, 1) // step)
        return node.host(rank)

    for _, (floats,), figures in section.rows:
        for count, seconds in enumerate(figures, 1):
            size = FLOAT_BYTES * (floats // count if is_split else floats)
            transfers = []
            for i in range(count):
                sender = 0 if is_one_sender else i * step
                path = Path(end(sender), end(ranks + i * step), "mpi")
                transfers.append(Transfer(path, size, {"test": test}))
            yield _series(section, f"{count}", transfers, seconds, notes, node)


def _is_split(section: BenchPressSection, most: int, is_one_sender: bool, where: str) -> bool:
    """Whether sizes are those of all messages together. Then a row has no more columns than floats,
    and tables of one sender begin with the first size that all columns share."""
    short = any(len(figures) < most for _, _, figures in section.rows)
    least = min(label[0] for _, label, _ in section.rows)
    if short or most == 1:
        return short
    if least == 1:
        return False
    if is_one_sender and most <= least < 2 * most:
        return True
    raise Malformed(
        f"{section.title!r} begins with size {least}: without its first rows nothing shows whether "
        "sizes are those of one message or of all",
        where=where,
        remedy="import the whole file",
    )


def _copies(section: BenchPressSection, node: NodePlaces) -> Iterator[ForeignSeries]:
    gpus = 1 + max(gpu for _, label, _ in section.rows for gpu in label[1:])
    node = replace(node, gpus=gpus)
    for _, (rank, *named), figures in section.rows:
        if len(named) == 2:
            ends = [node.device(gpu) for gpu in named]
            parameters = {"submit": f"rank:{rank}"}
            name, note = f"{rank}, {named[0]} and {named[1]}", "half of a copy there and back"
        else:
            ends = [node.host(rank), node.device(named[0])]
            parameters = {}
            name, note = f"{rank} and {named[0]}", ""
        if section.title.startswith("Memcpy Device To Host"):
            ends.reverse()
        path = Path(ends[0], ends[1], "copy-engine")
        for i, seconds in enumerate(figures):
            transfer = Transfer(path, FLOAT_BYTES * 2**i, parameters)
            yield _series(section, name, (transfer,), seconds, (note,) if note else (), node)


def _shared_copies(section: BenchPressSection, node: NodePlaces) -> Iterator[ForeignSeries]:
    """The copies of one GPU's ranks, which are all on its socket: the text does not say how many
    GPUs did the same."""
    node = replace(node, ranks=0)
    parameters = {"test": "memcpy-mult"}
    for _, (last,), figures in section.rows:
        for i, seconds in enumerate(figures):
            transfers = []
            for rank in range(min(last, MOST_RANKS) + 1):
                ends = [node.host(rank), node.device(0)]
                if section.title.startswith("Memcpy Device To Host"):
                    ends.reverse()
                path = Path(ends[0], ends[1], "copy-engine")
                transfers.append(Transfer(path, FLOAT_BYTES * 2**i, parameters))
            yield _series(section, f"{last + 1}", transfers, seconds, (ALL_GPUS,), node)
