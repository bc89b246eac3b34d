"""The columns of a data set. A reader takes those that it knows, and ignores all others."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 1
"""The version of the columns: another one gives a column another meaning. New columns do not."""

MARK = b"waywiser"
"""The name of the version in the metadata of a file: a file without it is foreign."""

STEPS = 20_000
"""Steps of `deviations` in a unit of the natural logarithm: a step is 0.005 %."""


class Column(NamedTuple):
    """One column of all files."""

    name: str
    type: str
    """As Arrow spells it."""
    unit: str
    meaning: str
    of_run: bool = False
    """Whether all rows of a run have the same value."""


COLUMNS = (
    Column("run", "string", "", "the survey: of the rows of one run those with the latest "
           "`file_modified` count", True),
    Column("host", "string", "", "the name of the machine", True),
    Column("measured", "timestamp[ms, UTC]", "", "when the survey began", True),
    Column("class", "string", "", "models of GPUs and CPUs: machines with equal ones have equal "
           "paths", True),
    Column("driver", "string", "", "the version of the driver of the GPUs", True),
    Column("kernel", "string", "", "the release of the kernel", True),
    Column("waywiser", "string", "", "the version of Waywiser that measured", True),
    Column("simulated", "string", "", "what simulated the machine; empty for a real one", True),
    Column("path", "string", "", "the curve: ends, executor and settings, without a size"),
    Column("name", "string", "", "a headline path in short, `H2D gpu:3`; else empty"),
    Column("group", "string", "", "the group of headline paths, `H2D`; else empty"),
    Column("bytes", "int64", "B", "bytes of all transfers together; 0 for an operation"),
    Column("followed", "bool", "", "whether nights are compared at this size of the path"),
    Column("metric", "string", "", "what `seconds` is: `time` of one execution"),
    Column("processes", "int32", "", "processes that measured it; 0 if none did"),
    Column("seconds", "float", "s", "the median over processes, without outliers, of the median of "
           "each; null if nothing was measured"),
    Column("fastest", "float", "s", "the median of the fastest process"),
    Column("noise", "float", "", "the standard deviation of processes, relative"),
    Column("deviations", "list<int32>", f"1/{STEPS}", "of each process, the natural logarithm of "
           "its median over `seconds`"),
    Column("shift", "float", "", "the relative size of a level that shifted among the samples and "
           "returned"),
    Column("failure", "string", "", "the kind of the reason why a path was not measured"),
    Column("reason", "string", "", "why a path was not measured"),
    Column("workload", "string", "", "the path with its size, as `survey --workload` takes it"),
    Column("gpus", "string", "", "JSON: index, UUID and PCI address of each GPU", True),
    Column("facts", "string", "", "JSON: what could explain a change, by name", True),
    Column("record", "string", "", "JSON: the machine, its environment, links under load, and "
           "error counters", True),
    Column("first_visit", "string", "", "when the first path was measured: UTC, ISO 8601", True),
    Column("file", "string", "", "the name of the profile", True),
    Column("file_bytes", "int64", "B", "the size of the profile", True),
    Column("file_modified", "int64", "ns", "when the profile was changed last", True),
)  # fmt: skip
"""In the order of the files. Times are in seconds: the bandwidth is `bytes / seconds`."""

NAMES = tuple(column.name for column in COLUMNS)

OF_RUN = tuple(column.name for column in COLUMNS if column.of_run)


def columns_table() -> str:
    """The columns as a table of Markdown."""
    rows = (f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} |" for c in COLUMNS)
    return "\n".join(("| column | type | unit | meaning |", "|---|---|---|---|", *rows)) + "\n"
