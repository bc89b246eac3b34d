"""The matrices of TransferBench's presets ``p2p`` and ``a2a``.

``p2p``: rows are sources and columns destinations; ``->`` is the row's device to the column's,
``<-`` the transfer back that ran at the same time, ``<->`` the sum of both, which older versions
give alone. ``a2a``: all pairs of GPUs at once, each with its own rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.exchange.imports.benchmark_ids import NoCounterpart
from waywiser.exchange.imports.foreign_file import ForeignSeries, clipped
from waywiser.exchange.imports.summary import summary
from waywiser.exchange.imports.transferbench_figures import NUMBER, BadFigure, rate_of
from waywiser.exchange.imports.transferbench_route import Route, ToolRun, parse_route
from waywiser.exchange.imports.transferbench_tests import route_notes
from waywiser.words import MOST_BYTES, Unsupported, Workload

Found = ForeignSeries | Unsupported

DEVICE = re.compile(r"\b(CPU|GPU)\s+(\d{1,4})\b")
_ROW = re.compile(r"^[\s|]*(CPU|GPU)\s+(\d{1,4})\s*(<->|->|<-|min|max|sd)?(.*)$")

HOST_LETTERS, GPU_LETTERS = "CBDKH", "GFVM"
"""Memories by the number that CPU_MEM_TYPE and GPU_MEM_TYPE name them with."""

UNIDIRECTIONAL, BIDIRECTIONAL = "p2p unidirectional", "p2p bidirectional"

NO_SETTINGS = "the settings of the preset are not in the file: its defaults are assumed"


class MatrixDevice(NamedTuple):
    """A row or a column: ``CPU 00`` is the host memory of the first NUMA node."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number:02d}"


class MatrixRow(NamedTuple):
    device: MatrixDevice
    arrow: str
    cells: list[str]


class PresetSetup(NamedTuple):
    """How the transfers of a table were made."""

    run: ToolRun
    bytes: int
    executor: str = "GFX"
    remote_read: bool = False
    letters: tuple[str, str] = ("C", "G")
    """The letters of host memory, and of a GPU's."""
    counts: tuple[str, str] = ("4", "all")
    """Threads of a CPU, and compute units."""
    notes: tuple[str, ...] = ()
    decimals: int = 2
    """How many the figures of its table have."""

    def route(self, source: MatrixDevice, to: MatrixDevice) -> Route:
        """Raises `NoCounterpart`."""
        own = to if self.remote_read else source
        count = self.counts[own.kind == "GPU"]
        if own.kind == "GPU" and self.executor == "DMA":
            count = "1"
        letter = {"CPU": "C", "GPU": "D" if self.executor == "DMA" else "G"}[own.kind]
        memory = [f"{self.letters[each.kind == 'GPU']}{each.number}" for each in (source, to)]
        return parse_route(f"{memory[0]} -> {letter}{own.number}:{count} -> {memory[1]}", self.run)


def devices_of(line: str) -> list[MatrixDevice]:
    """The devices that a header names."""
    return [MatrixDevice(kind, int(index)) for kind, index in DEVICE.findall(line)]


def matrix_row(line: str) -> MatrixRow | None:
    """A row of a matrix; None for any other line."""
    text = line.replace("\\", "").replace("│", "|")
    found = _ROW.match(text)
    if found is None or DEVICE.search(found[4]):
        return None
    cells = [cell for cell in re.split(r"[\s,|]+", found[4]) if cell]
    return MatrixRow(MatrixDevice(found[1], int(found[2])), found[3] or "", cells)


def unidirectional(
    columns: Sequence[MatrixDevice], rows: Sequence[MatrixRow], preset: PresetSetup
) -> Iterator[Found]:
    """Each cell is a workload; ``sd`` below a row is the deviation of its rates."""
    deviations = {row.device: row.cells for row in rows if row.arrow == "sd"}
    skipped = 0
    for row in rows:
        if row.arrow not in ("", "->"):
            continue
        if _is_damaged(row, columns):
            yield _damaged(UNIDIRECTIONAL, row, columns)
            continue
        for n, (to, cell) in enumerate(zip(columns, row.cells, strict=False)):
            if cell == "N/A":
                skipped += 1
                continue
            spread = deviations.get(row.device, [])
            deviation = spread[n] if n < len(spread) else ""
            yield _of_cell([(row.device, to)], [cell], preset, UNIDIRECTIONAL, deviation)
    if skipped:
        yield Unsupported(f"{UNIDIRECTIONAL}, {skipped} cells", "the tool did not run them (N/A)")


def bidirectional(
    columns: Sequence[MatrixDevice], rows: Sequence[MatrixRow], preset: PresetSetup
) -> Iterator[Found]:
    """Each cell, with that of the way back, is a workload of two transfers."""
    back = {row.device: row for row in rows if row.arrow == "<-"}
    both = {row.device: row for row in rows if row.arrow == "<->"}
    for row in rows:
        if row.arrow not in ("", "->"):
            continue
        other = back.get(row.device)
        parts = [each for each in (row, other, both.get(row.device)) if each is not None]
        if row.arrow and other is None:
            reason = "the row of the way back is missing: the table is cut off"
            yield Unsupported(f"{BIDIRECTIONAL}, row {row.device}", reason)
        elif damaged := next((each for each in parts if _is_damaged(each, columns)), None):
            yield _damaged(BIDIRECTIONAL, damaged, columns)
        else:
            for n, to in enumerate(columns):
                cells = [part.cells[n] for part in parts]
                if "N/A" not in cells:
                    yield _of_pair(row.device, to, cells, preset)


def pair_of(
    source: MatrixDevice, to: MatrixDevice, both: bool, rate: str, preset: PresetSetup
) -> Found:
    """A pair with one rate: that of both directions together, or of the way to ``to``."""
    if both:
        return _of_pair(source, to, [rate], preset)
    return _of_cell([(source, to)], [rate], preset, UNIDIRECTIONAL)


def _of_pair(
    source: MatrixDevice, to: MatrixDevice, cells: Sequence[str], preset: PresetSetup
) -> Found:
    pairs, rates = [(source, to), (to, source)], list(cells[:2])
    if (source.kind, source.number) > (to.kind, to.number):
        pairs, rates = pairs[::-1], rates[::-1]
    if len(cells) == 3:
        try:
            there, back, both = (rate_of(cell, preset.decimals) / 1e9 for cell in cells)
        except (BadFigure, ValueError) as reason:
            return Unsupported(_name(BIDIRECTIONAL, pairs), str(reason))
        if abs(there + back - both) > 0.02 + 1e-9 * both:
            what = f"{there:g} and {back:g} GB/s are not the {both:g} of both: one is damaged"
            return Unsupported(_name(BIDIRECTIONAL, pairs), what)
    return _of_cell(pairs, rates, preset, BIDIRECTIONAL)


def _of_cell(
    pairs: Sequence[tuple[MatrixDevice, MatrixDevice]],
    rates: Sequence[str],
    preset: PresetSetup,
    what: str,
    deviation: str = "",
) -> Found:
    """Several pairs with one rate: that is of all together."""
    name = _name(what, pairs)
    try:
        routes = [preset.route(*pair) for pair in pairs]
        figures = [rate_of(rate, preset.decimals) for rate in rates]
        return set_of(name, routes, figures, preset, what, _relative(deviation, figures))
    except (NoCounterpart, BadFigure) as reason:
        return Unsupported(name, str(reason))
    except ValueError:
        return Unsupported(name, f"a figure of it is damaged: {clipped(' '.join(rates), 60)}")


def set_of(
    name: str,
    routes: Sequence[Route],
    rates: Sequence[float],
    preset: PresetSetup,
    family: str,
    deviation: float = 0.0,
) -> ForeignSeries:
    """Transfers with their rates, or with that of all together. Raises `BadFigure`."""
    size = preset.bytes
    if not 0 < size <= MOST_BYTES:
        raise BadFigure(f"it is of {size:,} bytes")
    notes = [*route_notes(routes, preset.run), *preset.notes]
    if len(rates) < len(routes):
        notes.append("the file has only the rate of all its transfers together")
        samples = summary(len(routes) * size / rates[0])
    else:
        times = [size / rate for rate in rates]
        samples = summary(max(times), times)
    return ForeignSeries(
        name=name,
        family=family,
        workload=Workload(tuple(route.transfer(size) for route in routes)),
        mode="host" if any(route.mode == "host" for route in routes) else "device",
        samples=samples,
        notes=tuple(dict.fromkeys(notes)),
        deviation=deviation,
    )


def _relative(deviation: str, rates: Sequence[float]) -> float:
    if not deviation or not re.fullmatch(NUMBER, deviation) or len(rates) != 1:
        return 0.0
    return max(0.0, float(deviation)) * 1e9 / rates[0]


def all_to_all(
    columns: Sequence[MatrixDevice], rows: Sequence[MatrixRow], expected: int, preset: PresetSetup
) -> Found:
    """All pairs at once; two more columns of a row are its sum and its slowest times its number."""
    name = f"a2a, {len(columns)} GPUs"
    pairs: list[tuple[MatrixDevice, MatrixDevice]] = []
    rates: list[str] = []
    for row in rows:
        if len(row.cells) != len(columns) + 2:
            reason = (
                f"row {row.device} has {len(row.cells)} figures, and not {len(columns) + 2}: it is "
                "damaged, or has those of a network adapter"
            )
            return Unsupported(name, reason)
        for to, cell in zip(columns, row.cells, strict=False):
            if cell != "N/A":
                pairs.append((row.device, to))
                rates.append(cell)
    if len(rows) != len(columns) or expected not in (0, len(pairs)):
        many = f" of {expected}" if expected else ""
        return Unsupported(name, f"its matrix has {len(rows)} rows for {len(columns)} GPUs and "
                           f"{len(pairs)} transfers{many}: it is cut off")  # fmt: skip
    wrong = next(filter(None, (_wrong_sum(row, preset) for row in rows)), "")
    if wrong:
        return Unsupported(name, wrong)
    found = _of_cell(pairs, rates, preset, "a2a")
    return found if isinstance(found, ForeignSeries) else Unsupported(name, found.reason)


def _wrong_sum(row: MatrixRow, preset: PresetSetup) -> str:
    *cells, stated, _ = row.cells
    try:
        total = sum(rate_of(cell, preset.decimals) / 1e9 for cell in cells if cell != "N/A")
        if abs(total - float(stated)) <= 0.001 * (len(cells) + 1):
            return ""
    except (BadFigure, ValueError) as reason:
        return f"a figure of row {row.device} is none: {clipped(str(reason), 60)}"
    return f"row {row.device} adds up to {total:.3f} GB/s and not to {stated}: it is damaged"


def _name(what: str, pairs: Sequence[tuple[MatrixDevice, MatrixDevice]]) -> str:
    arrows = "; ".join(f"{source} -> {to}" for source, to in pairs)
    return clipped(f"{what}, {arrows}", 200)


def _is_damaged(row: MatrixRow, columns: Sequence[MatrixDevice]) -> bool:
    return len(row.cells) != len(columns)


def _damaged(what: str, row: MatrixRow, columns: Sequence[MatrixDevice]) -> Unsupported:
    return Unsupported(
        f"{what}, row {row.device} {row.arrow}".rstrip(),
        f"it has {len(row.cells)} figures for {len(columns)} columns: it is damaged or cut off",
    )
