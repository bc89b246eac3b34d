"""The tables of TransferBench's presets: where they begin and end, and how they were made.

``p2p`` and ``a2a`` are matrices; ``scaling`` has a row for each number of compute units, ``schmoo``
likewise, ``one2all`` a row for each set of destinations, ``healthcheck`` a line for each GPU. What
a table does not say of itself is among the settings above it; if it is not there either, it is the
preset's default, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from waywiser.exchange.imports.benchmark_ids import NoCounterpart
from waywiser.exchange.imports.foreign_file import clipped
from waywiser.exchange.imports.transferbench_figures import BadFigure, rate_of
from waywiser.exchange.imports.transferbench_matrix import (
    GPU_LETTERS,
    HOST_LETTERS,
    NO_SETTINGS,
    Found,
    MatrixDevice,
    MatrixRow,
    PresetSetup,
    all_to_all,
    bidirectional,
    devices_of,
    matrix_row,
    set_of,
    unidirectional,
)
from waywiser.exchange.imports.transferbench_route import ToolRun, parse_route
from waywiser.exchange.imports.transferbench_tests import opens_test
from waywiser.words import Unsupported


class PresetTable(NamedTuple):
    """A table with its title, in the output of one run."""

    title: re.Match[str]
    above: Sequence[str]
    """The lines of the run before the title."""
    below: Sequence[str]
    """The lines up to the next title."""


Reader = Callable[[PresetTable, ToolRun], Iterator[Found]]

P2P_TITLE = (
    r"^\W*(?P<way>Uni|Bi)directional copy peak bandwidth GB/s \[(?P<read>Local|Remote) read"
    r"[^\]]*\](?: \(GPU-Executor: (?P<executor>\w+)\))?"
)
_BYTES = re.compile(
    r"Bytes Per Direction[\s,]+(\d{1,18})\b|copies in each direction of (\d{1,18}) bytes"
    r"|Copying (\d{1,18}) bytes|\[(\d{1,18}) bytes per Transfer\]"
)
_OLD_COUNTS = re.compile(r"Using (\d{1,6}) (CUs per transfer|threads per NUMA node)")
_UNITS = re.compile(r"using (\d{1,6}) CUs \((\d{1,9}) Transfers\)")
_SUMMARY = re.compile(r"^\s*Summary:.*?\[(GFX|DMA)")
_READS = re.compile(r"\[(\d+) Read\(s\) (\d+) Write\(s\)\]")
_OF_ALL = re.compile(
    r"^(?P<rates>[\s,\d.]*?)\s(?P<many>\d+) (?P<count>\d+)(?P<sets>(?: \(\w+ \w+ \w+\))+)\s*$"
)
_LIMITED = re.compile(r"^\s*GPU (\d{1,4}): Measured:?\s+([\d.]+)\b")

DEFAULT_BYTES = 64 * 2**20
HEALTH_BYTES = 256 * 2**20
MOST_ABOVE = 200
"""Lines above a title that are read: the size, and how many sub-executors there were."""


def bytes_before(lines: Sequence[str], run: ToolRun) -> tuple[int, tuple[str, ...]]:
    """The size that the last of the lines with one names, and what to say of it."""
    for line in reversed(lines):
        if found := _BYTES.search(line):
            return int(next(filter(None, found.groups()))), ()
    usual = DEFAULT_BYTES if run.release < (1, 60) else 4 * DEFAULT_BYTES
    return usual, (
        f"its size is not in the file: {usual // 2**20} MiB, the tool's default, is assumed",
    )


def peer_to_peer(section: PresetTable, run: ToolRun) -> Iterator[Found]:
    """The size stands above the title."""
    title = section.title
    size, notes = bytes_before(section.above, run)
    columns, rows, has_more = _matrix(section.below)
    if not columns or not rows:
        yield Unsupported("p2p", "its table has no rows: it is cut off")
        return
    if has_more:
        yield Unsupported("p2p, a second table", "its title is missing, so its kind is unknown")
    counts, assumed = _counts(section.above, run)
    executor = title["executor"] or ("DMA" if run.is_set("USE_HIP_CALL") else "GFX")
    preset = PresetSetup(
        run, size, executor, title["read"] == "Remote", _letters(run), counts, (*notes, *assumed)
    )
    both = title["way"] == "Bi"
    if both:
        preset = preset._replace(
            notes=(
                "its bytes are those of one direction, and as many move in the other",
                *preset.notes,
            )
        )
    read = bidirectional if both else unidirectional
    yield from read(columns, rows, preset)


def _matrix(lines: Sequence[str]) -> tuple[list[MatrixDevice], list[MatrixRow], bool]:
    """(columns, rows, whether another table follows without a title of its own)."""
    columns: list[MatrixDevice] = []
    rows: list[MatrixRow] = []
    for line in lines:
        if row := matrix_row(line):
            rows.append(row)
        elif re.search(r"SRC|D/D", line):
            if rows:
                return columns, rows, True
            columns = columns or devices_of(line)
    return columns, rows, False


def _letters(run: ToolRun) -> tuple[str, str]:
    """The kinds of memory of the host and of GPUs."""
    if run.is_set("USE_FINE_GRAIN"):
        return "B", "F"
    found = []
    for name, letters in (("CPU_MEM_TYPE", HOST_LETTERS), ("GPU_MEM_TYPE", GPU_LETTERS)):
        value = run.settings.get(name, "0")
        number = int(value) if value.isdigit() else 0
        found.append(letters[number] if number < len(letters) else "?")
    return found[0], found[1]


def _counts(lines: Sequence[str], run: ToolRun) -> tuple[tuple[str, str], tuple[str, ...]]:
    """Threads and compute units, and what was assumed of them."""
    old = {what: number for number, what in _OLD_COUNTS.findall("\n".join(lines))}
    threads = run.settings.get("NUM_CPU_SE") or old.get("threads per NUMA node")
    units = run.settings.get("NUM_GPU_SE") or old.get("CUs per transfer")
    known = (threads or "4", units or "all")
    counts = tuple(value if value.isdigit() or value == "all" else "0" for value in known)
    return (counts[0], counts[1]), () if threads and units else (NO_SETTINGS,)


def all_pairs(section: PresetTable, run: ToolRun) -> Iterator[Found]:
    """The summary of ``a2a``: of use if the test that it sums up is not in the file."""
    lines = [section.title.string, *section.below]
    if any(map(opens_test, lines)):
        return
    text = "\n".join(lines)
    columns, rows, _ = _matrix(lines)
    if not columns:
        yield Unsupported("a2a", "its summary is missing: the output is cut off")
        return
    reads = _READS.search(text)
    if run.is_set("A2A_MODE") or (reads and reads.groups() != ("1", "1")):
        yield Unsupported("a2a", "its transfers only read, only write, or have several ends")
        return
    size, notes = bytes_before(lines, run)
    units = _UNITS.search(text)
    stated = next(filter(None, map(_SUMMARY.match, lines)), None)
    executor = stated[1] if stated else "DMA" if run.is_set("USE_DMA_EXEC") else "GFX"
    kind = run.settings.get("MEM_TYPE", "")
    fine = {"1": "F", "0": "G"}.get(run.settings.get("USE_FINE_GRAIN", ""))
    letter = fine or (GPU_LETTERS[int(kind)] if kind in ("0", "1", "2", "3") else "X")
    if letter == "X":
        notes += ("the file does not say which kind of a GPU's memory it was",)
    preset = PresetSetup(run, size, executor, run.is_set("USE_REMOTE_READ"), ("C", letter),
                    ("4", units[1] if units else "unknown"), notes, decimals=3)  # fmt: skip
    yield all_to_all(columns, rows, int(units[2]) if units else 0, preset)


def scaling(section: PresetTable, run: ToolRun) -> Iterator[Found]:
    """A row for each number of compute units of one GPU."""
    lines = section.below
    own = re.search(r"bytes from GPU (\d{1,4}) to", "\n".join(lines))
    header = next((line for line in lines if "NumCUs" in line), "")
    columns = [MatrixDevice(k, int(n)) for k, n in re.findall(r"(CPU|GPU)(\d{1,4})", header)]
    if own is None or not columns:
        yield Unsupported("scaling", "its header is missing: the table is cut off")
        return
    size, notes = bytes_before(lines, run)
    for line in lines[lines.index(header) + 1 :]:
        cells = [cell for cell in re.split(r"[\s,]+", line) if cell]
        if not cells or not cells[0].isdigit():
            continue
        if len(cells) != len(columns) + 1:
            reason = f"it has {len(cells) - 1} figures for {len(columns)} columns: it is damaged"
            yield Unsupported(f"scaling, {cells[0]} compute units", reason)
            continue
        preset = PresetSetup(run, size, "GFX", False, _letters(run), ("4", cells[0]), notes)
        for to, cell in zip(columns, cells[1:], strict=True):
            yield _single(MatrixDevice("GPU", int(own[1])), to, cell, preset, "scaling")


def _single(
    source: MatrixDevice, to: MatrixDevice, rate: str, preset: PresetSetup, what: str
) -> Found:
    name = f"{what}, {preset.counts[1]} compute units, {source} -> {to}"
    try:
        return set_of(
            name, [preset.route(source, to)], [rate_of(rate, preset.decimals)], preset, what
        )
    except (NoCounterpart, BadFigure) as reason:
        return Unsupported(name, str(reason))
    except ValueError:
        return Unsupported(name, f"a figure of it is damaged: {clipped(rate, 60)}")


def schmoo(section: PresetTable, run: ToolRun) -> Iterator[Found]:
    """One of its six columns is a copy for certain: that to the other GPU."""
    title = section.title
    source, to = (MatrixDevice("GPU", int(title[name])) for name in ("own", "other"))
    yield Unsupported(
        "schmoo, local and remote reads and writes, local copies",
        "reads and writes alone move no bytes between two memories, and some versions of the tool "
        "time a write where its table says local copy",
    )
    letters = ("C", "F" if run.is_set("USE_FINE_GRAIN") else "G")
    for line in section.below:
        cells = line.split()
        if len(cells) == 7 and cells[0].isdigit():
            counts = ("4", cells[0])
            preset = PresetSetup(
                run, int(title["bytes"]), "GFX", False, letters, counts, decimals=3
            )
            yield _single(source, to, cells[6], preset, "schmoo")
        elif cells and cells[0].isdigit():
            reason = f"it has {len(cells) - 1} figures for 6 columns: it is damaged"
            yield Unsupported(f"schmoo, {cells[0]} compute units", reason)


def one_to_all(section: PresetTable, run: ToolRun) -> Iterator[Found]:
    """Each row names its transfers, whose rates are in the same order."""
    size, notes = bytes_before([], run)
    for line in section.below:
        found = _OF_ALL.match(line)
        if found is None:
            continue
        routes = re.findall(r"\((\w+) (\w+) (\w+)\)", found["sets"])
        rates = [cell for cell in re.split(r"[\s,]+", found["rates"]) if cell]
        name = clipped("one2all, " + "; ".join(" -> ".join(route) for route in routes), 200)
        try:
            if not len(routes) == len(rates) == int(found["many"]):
                raise BadFigure(f"it has {len(rates)} figures for {len(routes)} transfers")
            parsed = [parse_route(f"{source} -> {own}:{found['count']} -> {to}", run, True)
                      for source, own, to in routes]  # fmt: skip
            yield set_of(name, parsed, [rate_of(rate, 3) for rate in rates],
                         PresetSetup(run, size, notes=notes), "one2all")  # fmt: skip
        except (NoCounterpart, BadFigure) as reason:
            yield Unsupported(name, str(reason))
        except ValueError:
            yield Unsupported(name, "a figure of it is damaged")


def health_check(section: PresetTable, run: ToolRun) -> Iterator[Found]:
    """Copies by DMA between each GPU and the host memory on its node, of 256 MiB."""
    what = " ".join(section.title["what"].split())
    rows = {found[1]: found[2] for line in section.below if (found := _LIMITED.match(line))}
    if not what.startswith("unidirectional"):
        yield Unsupported(f"healthcheck, {what}", "it is a sum, or moves no bytes between two")
        return
    if not rows:
        yield Unsupported(f"healthcheck, {what}", "it has no figures (VERBOSE=1 shows them)")
    own = run._replace(settings={**run.settings, "USE_HSA_DMA": "1", "NUM_SUBITERATIONS": "1"})
    for gpu, rate in rows.items():
        ends = [f"P{gpu}", f"G{gpu}"] if "host to device" in what else [f"G{gpu}", f"P{gpu}"]
        name = f"healthcheck, {what}, GPU {gpu}"
        try:
            route = parse_route(f"{ends[0]} -> D{gpu}:1 -> {ends[1]}", own)
            yield set_of(
                name, [route], [rate_of(rate, 2)], PresetSetup(own, HEALTH_BYTES), "healthcheck"
            )
        except (NoCounterpart, BadFigure, ValueError) as reason:
            yield Unsupported(name, str(reason))


_SECTIONS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (re.compile(P2P_TITLE), peer_to_peer),
    (re.compile(r"^\s*(?:GPU-GFX All-To-All benchmark:|Summary:)"), all_pairs),
    (re.compile(r"^\s*GPU-GFX Scaling benchmark:"), scaling),
    (
        re.compile(
            r"^\s*Bytes to transfer: (?P<bytes>\d{1,15}) Local GPU: (?P<own>\d{1,4}) "
            r"Remote GPU: (?P<other>\d{1,4})"
        ),
        schmoo,
    ),
    (re.compile(r"^\s*Executing \(\w+\*? -> \w+ -> \w+\*?\)"), one_to_all),
    (
        re.compile(
            r"^\s*Testing (?P<what>(?:unidirectional|bidirectional|all-to-all XGMI|HBM performance)"
            r"[\w <>-]*)"
        ),
        health_check,
    ),
)
"""The title of a table, and what reads it."""


def opens_section(line: str) -> bool:
    """Whether a line is the title of a table."""
    return any(pattern.match(line) for pattern, _ in _SECTIONS)


def read_sections(lines: Sequence[str], run: ToolRun) -> Iterator[Found]:
    """What the tables of presets in the output of one run say. ``a2a`` has two titles."""
    titles: list[tuple[int, re.Match[str], Reader]] = []
    for n, line in enumerate(lines):
        for pattern, reader in _SECTIONS:
            if found := pattern.match(line):
                summed_up = titles and titles[-1][2] is reader is all_pairs
                if not (summed_up and "Summary" in line and "Summary" not in titles[-1][1][0]):
                    titles.append((n, found, reader))
    ends = [*(n for n, _, _ in titles[1:]), len(lines)]
    for (n, title, reader), end in zip(titles, ends, strict=False):
        above = lines[max(0, n - MOST_ABOVE) : n]
        yield from reader(PresetTable(title, above, lines[n + 1 : end]), run)
