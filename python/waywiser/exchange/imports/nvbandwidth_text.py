"""What nvbandwidth prints without ``-j``: the devices, and below each running case its matrices.

Figures have two decimals. The three matrices of a bidirectional case between GPUs are printed one
after the other and are put below each other, as the JSON has them. What the meaning of a case is,
`waywiser.exchange.imports.nvbandwidth_cases` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, Malformed, clipped
from waywiser.exchange.imports.nearby import MOST_GPUS
from waywiser.exchange.imports.nvbandwidth import (
    NO_MEANS,
    CaseEntry,
    FoundCases,
    address_of,
    cell_of,
    cuda_version,
    file_of,
)
from waywiser.exchange.imports.nvbandwidth_cases import Matrix, why_no_matrix
from waywiser.exchange.imports.nvbandwidth_command import with_command
from waywiser.exchange.imports.result_titles import NVBANDWIDTH
from waywiser.exchange.imports.text_runs import TextRun, commands_of, mixed, of_format, text_runs

TITLE = re.compile(
    r"^nvbandwidth Version:"
    r"|^Running [a-z0-9_]+\.[ \t]*\n(?:memcpy|memory latency|Device to Device)",
    re.MULTILINE,
)
"""How a text shows that it is of this format."""

_VERSION = re.compile(r"^nvbandwidth Version:\s*(\S+)")
_STATED = re.compile(
    r"^(CUDA (?:Runtime|Driver) Version|Driver Version)(?: \(API\))?:\s*(?:\S+ \()?([\w.]+)\)?\s*$"
)
"""Since 0.10 a version of CUDA stands in both forms: ``13.3 (13030)``."""
_DEVICE = re.compile(
    r"^(?:Process\s+[0-9]+\s+\((?P<host>[^)]*)\):\s*)?[Dd]evice\s+(?P<index>[0-9]{1,4}):\s*"
    r"(?P<name>.*?)\s*(?:\((?P<pci>[0-9a-fA-F:.]+)\))?\s*(?::\s*\((?P<at>[^()]*)\))?\s*$"
)
_RUNNING = re.compile(r"^Running\s+(?P<name>[A-Za-z0-9_]{1,80})\.?\s*$")
_DESCRIPTION = re.compile(
    r"^(?:memcpy|memory|Device to Device|.*\bGPU\().*?(?:\s\((?P<unit>[^()\s]{1,12})\))?\s*$"
)
_HEAD = re.compile(r"^\s*(?:[0-9]{1,4}\s+)*[0-9]{1,4}\s*$")
_ROW = re.compile(r"^\s*(?P<row>[0-9]{1,4})\s+(?P<cells>(?:(?:[0-9]+\.[0-9]+|N/A|nan|inf)\s*)+)$")
_LABELLED = re.compile(r"^\s*(?P<row>[0-9]{1,4})\s+\S")
_SUM = re.compile(r"^SUM\s+(?P<name>\S+)(?:\s+(?P<sum>[0-9]+\.[0-9]+)\s*$)?")
_HOST = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
_WAIVED = re.compile(r"^(?:\S.*\s)?waived\b:?\s*(?P<reason>.*)$", re.IGNORECASE)
_FAILED = re.compile(
    r"^(?:\[?ERROR\]?|\[CU\w*_ERROR\w*\]|Error|\S*Error)(?!\w)[: ]*(?P<reason>.*)$"
)


def read(text: str, where: str) -> list[ForeignFile]:
    """Each run of the text. Raises `Malformed` if it has no case."""
    lines = text.splitlines()
    runs = _runs(text, lines, where)
    if any(run.is_mixed for run in runs):
        first = next(run for run in runs if run.is_mixed)
        raise mixed(where, first, "two titles stand one below the other")
    files = [
        with_command(_file(lines[run.above if n == 0 else run.start : run.end],
                           run.above if n == 0 else run.start, where), run.command, run.said)
        for n, run in enumerate(runs)
    ]  # fmt: skip
    if not any(each.measured or each.unsupported_paths for each in files):
        raise Malformed(
            "no case of nvbandwidth: no line that begins with Running",
            where=where,
            remedy="run the benchmark again",
        )
    return files


def _runs(text: str, lines: Sequence[str], where: str) -> list[TextRun]:
    """The runs of a text; all of it is one if it has no title."""
    if any(map(_VERSION.match, lines)):
        return text_runs(text, NVBANDWIDTH, where, "nvbandwidth Version", of_format("nvbandwidth"))
    shown = [each.command for each in commands_of(text) if each.command.format == "nvbandwidth"]
    return [TextRun(0, 0, len(lines), shown[-1] if len(shown) == 1 else None)]


def _file(lines: Sequence[str], start: int, where: str) -> ForeignFile:
    found = FoundCases()
    stated: dict[str, str] = {}
    version = ""
    for line in lines:
        if match := _STATED.match(line):
            stated[match[1]] = match[2]
        elif match := _VERSION.match(line):
            version = match[1]
    for entry in _entries(lines, start, where):
        found.enter(entry)
    gpus = tuple(_gpus(lines))
    return file_of(
        found,
        (),
        "",
        version=version,
        hostname=_host(lines),
        driver=stated.get("Driver Version", ""),
        cuda_driver=cuda_version(stated.get("CUDA Driver Version")),
        gpus=gpus,
        environment={"output": "text, with two decimals"},
    )


def _gpus(lines: Sequence[str]) -> Iterator[ForeignGpu]:
    seen: set[int] = set()
    for line in lines:
        match = _DEVICE.match(line)
        if match and int(match["index"]) not in seen and int(match["index"]) < MOST_GPUS:
            index = int(match["index"])
            seen.add(index)
            host = match["at"] or match["host"] or ""
            yield ForeignGpu(index, clipped(match["name"]), address_of(match["pci"] or ""), host)


def _host(lines: Sequence[str]) -> str:
    """The name that stands alone above the list of devices; empty without one."""
    first = next((n for n, line in enumerate(lines) if _DEVICE.match(line)), 0)
    above = next((line.strip() for line in reversed(lines[:first]) if line.strip()), "")
    return above if _HOST.match(above) else ""


def _entries(lines: Sequence[str], start: int, where: str) -> Iterator[CaseEntry]:
    """Each case: the lines from one that begins with Running to the next."""
    begins = [n for n, line in enumerate(lines) if _RUNNING.match(line)]
    yield from _without_beginning(lines[: begins[0]] if begins else lines, "")
    for begin, end in pairwise([*begins, len(lines)]):
        name = _RUNNING.match(lines[begin])["name"]  # type: ignore[index]
        below = lines[begin + 1 : end]
        yield _entry(name, _own(below, name), f"{where}:{start + begin + 1}")
        yield from _without_beginning(below, name)


def _own(lines: Sequence[str], name: str) -> Sequence[str]:
    """The lines of a case, without those of one whose beginning is damaged: a sum ends the figures
    of a case and names it."""
    sums = [(n, match["name"]) for n, line in enumerate(lines) if (match := _SUM.match(line))]
    own = [n for n, summed in sums if summed.startswith(name)]
    if len(own) == len(sums):
        return lines
    return lines[: own[-1] + 1] if own else ()


def _without_beginning(lines: Sequence[str], name: str) -> Iterator[CaseEntry]:
    """The cases that the sums among ``lines`` name, other than ``name``."""
    for line in lines:
        if (match := _SUM.match(line)) and not (name and match["name"].startswith(name)):
            yield CaseEntry(clipped(match["name"]), None, "the line that begins it is damaged")


def _entry(name: str, lines: Sequence[str], where: str) -> CaseEntry:
    units = [match["unit"] or "" for line in lines if (match := _DESCRIPTION.match(line))]
    matrix, damaged = _matrix(lines, where)
    if damaged:
        return CaseEntry(name, None, damaged)
    if matrix:
        if reason := why_no_matrix(name, matrix):
            return CaseEntry(name, None, reason)
        return CaseEntry(name, matrix, "", units[0] if units else "", _contradicted(lines, matrix))
    for line in lines:
        if match := _WAIVED.match(line):
            said = clipped(match["reason"]) or NO_MEANS
            return CaseEntry(name, None, f"nvbandwidth waived it: {said}")
        if match := _FAILED.match(line):
            return CaseEntry(name, None, f"it failed: {clipped(line)}")
    return CaseEntry(name, None, "it failed: it did not end")


def _contradicted(lines: Sequence[str], matrix: Matrix) -> str:
    """A note if the sums below the figures are not theirs, beyond what two decimals round."""
    sums = [match["sum"] for line in lines if (match := _SUM.match(line))]
    if not sums or None in sums:
        return ""
    cells = [cell for row in matrix for cell in row if cell is not None]
    stated, own = sum(map(float, sums)), sum(cells)
    if abs(stated - own) <= 0.01 * (len(cells) + len(sums)):
        return ""
    return (
        f"its figures add up to {own:.2f}, and its SUM is {stated:.2f}: one of them was changed or "
        "damaged"
    )


def _matrix(lines: Sequence[str], where: str) -> tuple[Matrix, str]:
    """(all rows below the heads of columns, what is wrong with them)."""
    matrix: Matrix = []
    columns = rows = 0
    for line in lines:
        if _HEAD.match(line) and line.strip():
            columns, rows = len(line.split()), 0
        elif _SUM.match(line):
            columns = 0
        elif columns and (labelled := _LABELLED.match(line)):
            match = _ROW.match(line)
            if int(labelled["row"]) != rows:
                return [], (
                    f"row {labelled['row']} stands where row {rows} is expected: it is damaged"
                )
            if match is None:
                return [], f"a row of it cannot be read: {clipped(line, 80)}"
            rows += 1
            cells = match["cells"].split()
            if len(cells) != columns:
                return [], (
                    f"a row has {len(cells)} figures below {columns} columns: it is damaged"
                )
            if any(cell in ("nan", "inf") for cell in cells):
                return [], "a figure is no number"
            matrix.append([cell_of(cell, where) for cell in cells])
    return matrix, ""
