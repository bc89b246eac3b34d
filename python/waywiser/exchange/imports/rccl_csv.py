"""The CSV of rccl-tests (``-Z csv -x FILE``): a row for each size, out of place or in place.

The columns name the collective and the number of GPUs. The bandwidths are the witness: bus over
algorithm bandwidth follows from the collective and its ranks. Several cycles of one process are
samples of one block. What a row means here is as in `waywiser.exchange.imports.nccl`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports import nccl
from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignSeries,
    Malformed,
    clipped,
    parse_good,
)
from waywiser.exchange.imports.run_commands import Titled
from waywiser.exchange.imports.text_runs import TextRun, of_format, runs_at
from waywiser.words import Samples, Unsupported, bus_factor, grouped

TITLE = re.compile(
    r"^(?:numCycle,collective|name),(?=[\w,#]*\bsize,)(?=[\w,#]*\btime,)[\w,#]*\bbusbw\b[\w,#]*\r?$",
    re.MULTILINE | re.IGNORECASE,
)
"""The head of the columns."""

NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "scatter": "scatter",
    "gather": "gather",
    "sendrecv": "sendrecv",
}
"""What the column calls a collective -> its name in `waywiser.exchange.imports.nccl`."""

RATIO = 0.02
"""Bus over algorithm bandwidth agrees this well with what follows from the ranks, where both have
three digits and more."""

ROOT = "the file does not name the root of its collective: rank 0, the tool's default, is assumed"

_Row = Mapping[str, str]


def read(text: str, where: str) -> ForeignFile:
    """Raises `Malformed` if no row is good."""
    lines = text.splitlines()
    runs = list(_runs(text, lines))
    numbered = [(run, row) for run in runs for row in run.rows]
    if not numbered:
        raise Malformed(
            "the table has no row: it is truncated",
            where=f"{where}:{runs[0].made.start + 1}",
            remedy="run the benchmark again",
        )
    series, errors = parse_good(
        numbered, lambda each: list(_measured(each[1][1], each[0], f"{where}:{each[1][0]}"))
    )
    damaged = tuple(Unsupported(f"line {n}", error.what) for (_, (n, _)), error in errors)
    of_runs: dict[int, list[ForeignSeries]] = defaultdict(list)
    for run, found in chain.from_iterable(series):
        of_runs[run].append(found)
    measured = tuple(chain.from_iterable(map(_with_cycles, of_runs.values())))
    return ForeignFile(
        format="rccl-csv", tool="rccl-tests", runtime="hip", measured=measured,
        unsupported_paths=damaged,
    )  # fmt: skip


class _CsvRun(NamedTuple):
    """The rows of one process, each with the number of its line."""

    number: int
    made: TextRun
    rows: list[tuple[int, dict[str, str]]]


def _runs(text: str, lines: Sequence[str]) -> Iterator[_CsvRun]:
    """The runs of a text: a head begins one, and a row of a cycle and a size that the run before
    has."""
    starts = [n for n, line in enumerate(lines) if TITLE.match(line)]
    above = [0, *(_last_row(lines, start, end) for start, end in pairwise(starts))]
    titles = [Titled(a, start) for a, start in zip(above, starts, strict=True)]
    number = 0
    for made, end in zip(
        runs_at(text, titles, of_format("nccl")), [*starts[1:], len(lines)], strict=True
    ):
        columns = [each.strip().lower().lstrip("#") for each in lines[made.start].split(",")]
        columns = ["collective" if each == "name" else each for each in columns]
        run, seen = _CsvRun(number, made, []), set[tuple[str, ...]]()
        for n, row in _rows(lines[made.start + 1 : end], columns, made.start + 2):
            key = tuple(row.get(each, "") for each in _OF_ROW)
            if key in seen and "damaged" not in row:
                yield run
                number += 1
                run, seen = _CsvRun(number, made, []), set[tuple[str, ...]]()
            seen.add(key)
            run.rows.append((n, row))
        yield run
        number += 1


_OF_ROW = ("numcycle", "collective", "size", "type", "redop", "inplace", "ranks", "gpus")
"""The columns that no two rows of a run have in common."""


def _last_row(lines: Sequence[str], start: int, end: int) -> int:
    """The line after the last row below a head."""
    return next((n + 1 for n in range(end - 1, start, -1) if lines[n].count(",") > 2), start + 1)


def _rows(
    lines: Sequence[str], columns: Sequence[str], first: int
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields each row with the number of its line. Lines of other programs have no columns."""
    for n, line in enumerate(lines, first):
        if "," not in line:
            continue
        cells = next(csv.reader(io.StringIO(line)), [])
        row = dict(zip(columns, (each.strip() for each in cells), strict=False))
        yield n, row if len(cells) == len(columns) else {"damaged": f"{len(cells)}"}


def _measured(row: _Row, run: _CsvRun, where: str) -> Iterator[tuple[int, ForeignSeries]]:
    if "damaged" in row:
        raise Malformed(
            f"the row has {row['damaged']} columns, and the head has another number of them",
            where=where,
        )
    name = NAMES.get(row.get("collective", "").lower().replace("_", ""), "")
    ranks = _ranks(row, where)
    if reason := nccl.why_not(name, ranks, 1):
        raise Malformed(f"{clipped(row.get('collective', ''), 40)!r}: {reason}", where=where)
    command = run.made.command
    program = command.program.removesuffix("_mpi").removesuffix("_perf") if command else name
    if program != name:
        raise Malformed(f"its command names {program}, and the row {name}", where=where)
    _require_ratio(row, nccl.COLLECTIVES.get(name, name), ranks, where)
    wrong = row.get("wrong", "N/A")
    result = {
        "time": _number(row, "time", where),
        "alg_bw": _number(row, "algbw", where),
        "nwrong": None if wrong.upper() == "N/A" else _number(row, "wrong", where),
    }
    placement = {"0": "out_of_place", "1": "in_place"}.get(row.get("inplace", ""))
    if placement is None:
        raise Malformed("it is neither in place nor out of place", where=where)
    size = int(_number(row, "size", where))
    known = {"size": size, "type": row.get("type", "float"), "redop": row.get("redop", "none")}
    unseen = () if command else (nccl.UNSEEN,)
    notes = (*unseen, *((ROOT,) if name in nccl.ROOTED else ()), *run.made.notes)
    average = command.value_of("-a", "--average") if command else ""
    config = {"statistic": nccl.STATISTICS.get(average, nccl.USUAL)}
    for each in nccl.measured_of({**known, placement: result}, name, ranks, config, where, notes):
        yield run.number, replace(each, settings=run.made.settings)


def _ranks(row: _Row, where: str) -> int:
    """The GPUs that take part: of a job with MPI all ranks, of one process its GPUs."""
    ranks = _number(row, "ranks", where) if "ranks" in row else 1.0
    each = "gpusperrank" if "gpusperrank" in row else "gpus"
    found = ranks * _number(row, each, where)
    if not 0 < found <= nccl.MOST_COUNT or not found.is_integer():
        raise Malformed(f"{found:g} is no number of ranks", where=where)
    return int(found)


def _require_ratio(row: _Row, collective: str, ranks: int, where: str) -> None:
    """Raises `Malformed` if the bandwidths are those of another number of ranks."""
    algorithm, bus = _number(row, "algbw", where), _number(row, "busbw", where)
    expected = bus_factor(collective, ranks)
    if algorithm <= 0 or bus <= 0:
        return
    digits = 0.5 * (_step(row["algbw"]) / algorithm + _step(row["busbw"]) / bus)
    if abs(bus / algorithm / expected - 1) > RATIO + digits:
        raise Malformed(
            f"{collective} of {ranks} ranks has {expected:.3g} times its algorithm bandwidth as "
            f"bus bandwidth, and the row has {bus / algorithm:.3g} times: its ranks are of "
            "another number",
            where=where,
            remedy="import the text that rccl-tests prints, which lists its ranks",
        )


def _step(text: str) -> float:
    """The last digit of a number: 0.001 of 0.053."""
    return 10.0 ** -len(text.partition(".")[2].lower().partition("e")[0])


def _number(row: _Row, column: str, where: str) -> float:
    try:
        found = float(row[column])
    except KeyError as error:
        raise Malformed(f"the head has no column {column}", where=where) from error
    except ValueError as error:
        raise Malformed(f"{clipped(row[column], 40)!r} is no number", where=where) from error
    if not math.isfinite(found):
        raise Malformed(f"{column} is not finite", where=where)
    return found


def _with_cycles(series: Sequence[ForeignSeries]) -> Iterator[ForeignSeries]:
    """The series, those of several cycles as one with a sample of each."""
    for same in grouped((each.workload.identity, each) for each in series).values():
        good = [each for each in same if each.failure is None]
        if len(good) < 2:
            yield same[0] if not good else good[0]
            continue
        samples = [each.samples for each in good]
        yield replace(
            good[0],
            samples=Samples(
                span=tuple(chain.from_iterable(each.span for each in samples)),
                repetitions=tuple(chain.from_iterable(each.repetitions for each in samples)),
                flags=tuple(chain.from_iterable(each.flags for each in samples)),
            ),
        )
