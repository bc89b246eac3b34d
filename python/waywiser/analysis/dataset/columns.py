"""The columns of a data set. A reader takes those that it knows, and ignores all others."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 1
"""The version of the columns: another one gives a column another meaning. New columns do not."""

MARK = b"waywiser"
"""The name of the version in the metadata of a file: a file without it is foreign."""

STEPS = 20_000
"""Steps of `deviations` in a unit of the natural logarithm: a step is 0.005 %."""


class RowColumn(NamedTuple):
    """One column of all files."""

    name: str
    type: str
    """As Arrow spells it."""
    unit: str
    meaning: str
    of_run: bool = False
    """Whether all rows of a run have the same value."""


COLUMNS = (
    RowColumn("run", "string", "", "the survey: of the rows of one run those with the latest "
           "`file_modified` count", True),
    RowColumn("host", "string", "", "the name of the machine", True),
    RowColumn("measured", "timestamp[ms, UTC]", "", "when the survey began", True),
    RowColumn("class", "string", "", "models of GPUs and CPUs: machines with equal ones have equal "
           "paths", True),
    RowColumn("driver", "string", "", "the version of the driver of the GPUs", True),
    RowColumn("kernel", "string", "", "the release of the kernel", True),
    RowColumn("waywiser", "string", "", "the version of Waywiser that measured", True),
    RowColumn("simulated", "string", "", "what simulated the machine; empty for a real one", True),
    RowColumn("number", "int32", "", "the place of the row in its run"),
    RowColumn("path", "string", "", "the curve: ends, executor and settings, without a size"),
    RowColumn("name", "string", "", "a headline path in short, `H2D gpu:3`; else empty"),
    RowColumn("group", "string", "", "the group of headline paths, `H2D`; else empty"),
    RowColumn("bytes", "int64", "B", "bytes of all transfers together; 0 for an operation"),
    RowColumn("followed", "bool", "", "whether nights are compared at this size of the path"),
    RowColumn("metric", "string", "", "what `seconds` is: `time` of one execution"),
    RowColumn("processes", "int32", "", "processes that measured it; 0 if none did"),
    RowColumn("seconds", "float", "s", "the median over processes, without outliers, of the median "
           "of each; null if nothing was measured"),
    RowColumn("fastest", "float", "s", "the median of the fastest process"),
    RowColumn("noise", "float", "", "the standard deviation of processes, relative, in two digits"),
    RowColumn("deviations", "list<int32>", f"1/{STEPS}", "of each process, the natural logarithm "
           "of its median over `seconds`"),
    RowColumn("shift", "float", "", "the relative size of a level that shifted among the samples "
           "and returned"),
    RowColumn("failure", "string", "", "the kind of the reason why a path was not measured"),
    RowColumn("reason", "string", "", "why a path was not measured"),
    RowColumn("workload", "string", "", "the path with its size, as `survey --workload` takes it"),
    RowColumn("gpus", "string", "", "JSON: index, UUID and PCI address of each GPU", True),
    RowColumn("facts", "string", "", "JSON: what could explain a change, by name", True),
    RowColumn("record", "string", "", "JSON, in the first row of a run: the machine, its "
           "environment, links under load, and error counters"),
    RowColumn("first_visit", "string", "", "when the first path was measured: UTC, ISO 8601", True),
    RowColumn("file", "string", "", "the name of the profile", True),
    RowColumn("file_bytes", "int64", "B", "the size of the profile", True),
    RowColumn("file_modified", "int64", "ns", "when the profile was changed last", True),
)  # fmt: skip
"""In the order of the files. Times are in seconds: the bandwidth is `bytes / seconds`."""

NAMES = tuple(column.name for column in COLUMNS)


def columns_table() -> str:
    """The columns as a table of Markdown."""
    rows = (f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} |" for c in COLUMNS)
    return "\n".join(("| column | type | unit | meaning |", "|---|---|---|---|", *rows)) + "\n"
