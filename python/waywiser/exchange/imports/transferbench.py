"""The text and the CSV of TransferBench: tests of configuration files, and tables of presets.

Each figure is of the bytes of one transfer, in GB/s of 10^9 and in ms. What Waywiser has no word
for (null memory, several ends, network adapters, an executor at neither end) is listed with the
reason, and so is what is damaged; the rest is imported. The text names no model of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, Malformed, clipped
from waywiser.exchange.imports.result_titles import TRANSFERBENCH
from waywiser.exchange.imports.text_runs import TextRun, of_format, text_runs
from waywiser.exchange.imports.transferbench_csv import add_csv_row, columns_of, is_row, test_of
from waywiser.exchange.imports.transferbench_matrix import Found, MatrixDevice, PresetSetup, pair_of
from waywiser.exchange.imports.transferbench_presets import opens_section, read_sections
from waywiser.exchange.imports.transferbench_route import ToolRun
from waywiser.exchange.imports.transferbench_tests import (
    TestTable,
    add_row,
    is_last,
    opens_test,
    read_table,
    test_name,
)
from waywiser.exchange.imports.visible_gpus import with_settings
from waywiser.words import Unsupported

TITLE = re.compile(
    r"^[ \t]{0,20}(?:TransferBench (?:Client )?v[0-9]|EnvVar,Value,Description,\(TransferBench"
    r"|Test#,Transfer#,NumBytes|SRC,DST,Direction,ReadMode,|Bytes Per Direction[ ,]"
    r"|(?:Uni|Bi)directional copy peak bandwidth GB/s \[|GPU-GFX (?:All-To-All|Scaling) benchmark"
    r"|SRC(?:\+EXE)?\\{1,2}(?:EXE\+)?DST[ ,]"
    r"|Executor: {1,3}(?:Rank [0-9]{1,6} )?(?:CPU|GPU|DMA|NIC) ?[0-9])",
    re.MULTILINE,
)
"""What shows a text to be TransferBench's."""

_VERSION = re.compile(r"TransferBench (?:Client )?v([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})")
_SETTING = re.compile(
    r"^\s{0,20}([A-Z][A-Z0-9_]{2,40})\s*[=,]\s*([^\s,:]{1,200})\s*(?:[:,]\s*(.*))?$"
)
_PRESET = re.compile(r"^\s*\[(.{1,60}?) Related\]")
_MESSAGE = re.compile(r"^\s*\[(ERROR|WARN)\]\s*(.*)$")
_OLD_PAIR = re.compile(
    r"^\s*(CPU|GPU) (\d{1,4}),(CPU|GPU) (\d{1,4}),(uni|bi)directional,(Local|Remote)"
    r"(?:,(GFX|DMA))?,([^,\s]+),(\d{1,15})\s*$"
)

MOST_SETTINGS = 100
MOST_COLUMNS = 1000
"""Characters of a line that are read."""


def read(text: str, where: str) -> ForeignFile:
    """Raises `Malformed` for a text without one line of TransferBench's results."""
    measured: list[ForeignSeries] = []
    unsupported: dict[str, Unsupported] = {}
    runs: list[ToolRun] = []
    for run, lines, made in _runs(text, where):
        runs.append(run)
        of_run: list[ForeignSeries] = []
        for found in _found(lines, run):
            if isinstance(found, ForeignSeries):
                of_run.append(found)
            else:
                unsupported.setdefault(found.path, found)
        part = ForeignFile("transferbench", "TransferBench", measured=tuple(of_run))
        measured += with_settings(part, made.command, made.said).measured
    if not measured and not unsupported:
        raise Malformed(
            "no result of TransferBench is in it: tests, and the tables of p2p, a2a, one2all, "
            "scaling, schmoo and healthcheck are read",
            where=where,
            remedy="keep the whole output",
        )
    return ForeignFile(
        format="transferbench",
        tool="TransferBench",
        runtime="hip",
        version=next((run.version for run in runs if run.version), ""),
        environment=_environment(runs),
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported.values()),
    )


def _plain_lines(text: str) -> list[str]:
    """Lines of ASCII: of other characters only the lines of tables mean anything."""
    text = text.replace("│", "|").encode("ascii", "replace").decode("ascii")
    return [line[:MOST_COLUMNS].rstrip() for line in text.splitlines()]


def _runs(text: str, where: str) -> Iterator[tuple[ToolRun, list[str], TextRun]]:
    """Each run of the tool with its lines and its command: settings are printed once at its
    start."""
    lines = _plain_lines(text)
    titled: list[TextRun] = []
    if any(map(TRANSFERBENCH.match, lines)):
        whose = of_format("transferbench")
        plain = "\n".join(lines)
        titled = text_runs(plain, TRANSFERBENCH, where, "TransferBench v", whose)
    first = titled[0].start if titled else len(lines)
    untitled = TextRun(0, 0, first)
    for each in (untitled, *titled):
        part = list(lines[each.start : each.end])
        settings: dict[str, str] = {}
        described: dict[str, str] = {}
        for line in part:
            if (found := _SETTING.match(line)) and len(settings) < MOST_SETTINGS:
                settings[found[1]], described[found[1]] = found[2], found[3] or ""
        version = _VERSION.search(part[0]) if part else None
        if part:
            yield ToolRun(version[1] if version else "", settings, described), part, each


def _found(lines: Sequence[str], run: ToolRun) -> Iterator[Found]:
    """Everything that the lines of one run say."""
    yield from _tests(lines, run)
    yield from _csv_tests(lines, run)
    yield from _old_pairs(lines, run)
    yield from read_sections(lines, run)
    yield from _errors(lines)
    known = any(opens_test(line) or opens_section(line) for line in lines)
    preset = next(filter(None, map(_PRESET.match, lines)), None)
    if preset and not known:
        yield Unsupported(f"the preset {preset[1]}", "its table is not read")


def _tests(lines: Sequence[str], run: ToolRun) -> Iterator[Found]:
    """Tables with a line for each transfer. Some have no title: the total ends them."""
    table: TestTable | None = None
    count = 0
    warnings: list[str] = []
    for line in lines:
        message = _MESSAGE.match(line)
        if message and message[1] == "WARN":
            warnings.append(clipped(message[2]))
        elif message and table is not None:
            table.error = table.error or clipped(message[2])
        elif table is not None and (test_name(line) or opens_section(line)):
            yield from read_table(table, run)
            table = None
        if message or not opens_test(line):
            continue
        if table is None:
            count += 1
            table = TestTable(test_name(line) or str(count))
        add_row(table, line)
        if is_last(line):
            table.notes += warnings
            yield from read_table(table, run)
            table, warnings = None, []
    if table is not None:
        yield from read_table(table, run)


def _csv_tests(lines: Sequence[str], run: ToolRun) -> Iterator[Found]:
    """Tables with a row for each transfer, below a header with its columns."""
    columns: list[str] | None = None
    table: TestTable | None = None
    for line in lines:
        columns = columns_of(line) or columns
        if columns is None or not is_row(line):
            continue
        if table is not None and table.name != test_of(line):
            yield from read_table(table, run)
            table = None
        table = table or TestTable(test_of(line))
        if add_csv_row(table, line, columns):
            yield from read_table(table, run)
            table = None
    if table is not None:
        yield from read_table(table, run)


def _old_pairs(lines: Sequence[str], run: ToolRun) -> Iterator[Found]:
    """Rows of p2p in the CSV of old versions."""
    for line in lines:
        found = _OLD_PAIR.match(line)
        if found is None:
            continue
        one = MatrixDevice(found[1], int(found[2]))
        other = MatrixDevice(found[3], int(found[4]))
        way, read, executor, rate, size = found.groups()[4:]
        by_runtime = run.is_set("USE_HIP_CALL")
        preset = PresetSetup(run, int(size), executor or ("DMA" if by_runtime else "GFX"),
                        read == "Remote")  # fmt: skip
        if rate not in ("0.00", "N/A") or way == "uni":
            yield pair_of(one, other, way == "bi", rate, preset)


def _errors(lines: Sequence[str]) -> Iterator[Unsupported]:
    """Errors of the tool; of those in a row, the first."""
    last = False
    for line in lines:
        message = _MESSAGE.match(line)
        error = bool(message and message[1] == "ERROR")
        if message and error and not last:
            yield Unsupported(f"[ERROR] {clipped(message[2], 150)}", "the tool failed there")
        last = error


def _environment(runs: Sequence[ToolRun]) -> dict[str, object]:
    found: dict[str, object] = {}
    for run in runs:
        for name, value in run.settings.items():
            found.setdefault(name, clipped(value))
    if len(runs) > 1:
        found["runs"] = sum(bool(run.version) for run in runs)
    return found
