"""The CSV of TransferBench until 1.5x: a row for each transfer, and one for each test's total.

A header names the columns. The first two are numbers of test and transfer; ``ALL`` stands for the
transfers of an executor together, or of the test, whose row is its last. From 1.6x on the same
header stands above the table of `waywiser.exchange.imports.transferbench_tests`, with commas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from waywiser.exchange.imports.foreign_file import clipped
from waywiser.exchange.imports.transferbench_figures import NUMBER
from waywiser.exchange.imports.transferbench_tests import TestTable, TransferRow

_HEADER = re.compile(r"^\s*Test#\s*,\s*Transfer#\s*,")
_ROW = re.compile(r"^\s*\d{1,9}\s*,\s*(?:\d{1,6}|ALL)\b")

_NEEDED = ("Test#", "Transfer#", "NumBytes", "Src", "Exe", "Dst", "CUs", "BW(GB/s)", "Time(ms)")


def columns_of(line: str) -> list[str] | None:
    """The columns that a header names; None for any other line, and for one without those that are
    needed."""
    if not _HEADER.match(line):
        return None
    columns = [cell.strip() for cell in line.split(",")]
    return columns if set(_NEEDED) <= set(columns) else None


def is_row(line: str) -> bool:
    return bool(_ROW.match(line))


def test_of(line: str) -> str:
    """The number of the test that a row is of."""
    return line.partition(",")[0].strip()


def add_csv_row(table: TestTable, line: str, columns: Sequence[str]) -> bool:
    """Adds a row; returns whether it is the last of its test."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) < len(_NEEDED):
        table.damaged(f"a line of it is damaged: {clipped(line, 60)}")
        return False
    row = dict(zip(columns, cells, strict=False))
    figures = (row["BW(GB/s)"], row["Time(ms)"])
    numbers = all(re.fullmatch(NUMBER, figure) for figure in figures)
    is_counted = re.fullmatch(r"[0-9]{1,6}|ALL", row["Transfer#"])
    if not (numbers and is_counted and re.fullmatch(r"[0-9]{1,18}", row["NumBytes"])):
        table.damaged(f"a line of it is damaged: {clipped(line, 60)}")
        return False
    size = int(row["NumBytes"])
    if row["Transfer#"] != "ALL":
        route = f"{row['Src']} -> {row['Exe']}:{row['CUs']} -> {row['Dst']}"
        table.transfers.append(TransferRow(int(row["Transfer#"]), route, *figures, size, {}))
    elif row["Exe"] == "ALL":
        table.total = size
        return True
    else:
        table.executors.append((*figures, _bytes_of(table, row["Exe"])))
    return False


def _bytes_of(table: TestTable, executor: str) -> int:
    """Bytes of the transfers of an executor: its own row has those of the test."""
    return sum(row.bytes for row in table.transfers if f"-> {executor}:" in f"{row.route}")
