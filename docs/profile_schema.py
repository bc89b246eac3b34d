"""Writes ``docs/profile-schema.md`` from the schema:

python docs/profile_schema.py > docs/profile-schema.md
"""

from __future__ import annotations

from waywiser.profile.columns import NUMBER_BYTES
from waywiser.profile.schema import (
    APPLICATION_ID,
    OPTIONAL_TABLES,
    SCHEMA_VERSION,
    TABLES,
    SchemaTable,
)

QUERIES = (
    (
        "How often each series was sampled, and why sampling stopped",
        """SELECT series.text, visit.block, visit.stop, visit.samples
FROM series JOIN visit ON visit.series = series.identity
ORDER BY series.curve, series.bytes, visit.block;""",
    ),
    (
        "What each worker process measured, and how long that took",
        """SELECT process, count(*) AS visits, sum(samples), sum(elapsed_seconds)
FROM visit GROUP BY process;""",
    ),
    (
        "What failed, and why",
        """SELECT text, block, failure_kind, failure_reason
FROM visit JOIN series ON series.identity = visit.series WHERE failure_kind IS NOT NULL;""",
    ),
    (
        "The GPUs of the machine",
        """SELECT json_extract(gpu.value, '$.index'), json_extract(gpu.value, '$.name')
FROM machine, json_each(machine.json, '$.gpus') AS gpu;""",
    ),
)
"""Examples of the page; a test runs each."""

SAMPLES_IN_PYTHON = """\
import sqlite3, zlib, numpy

found = "SELECT text, block, span FROM visit JOIN series ON series = identity WHERE samples > 0"
for text, block, span in sqlite3.connect("host.wwp").execute(found):
    seconds = numpy.frombuffer(zlib.decompress(span), "<f8")
    print(text, block, len(seconds), numpy.median(seconds))
"""
"""The page's example of reading samples; a test runs it."""


def _table(table: SchemaTable) -> str:
    rows = [f"| `{c.name}` | {c.type} | {c.about} |" for c in table.columns]
    lines = [f"## `{table.name}`", "", table.about, "", "| column | type | what |", "|---|---|---|"]
    lines += rows
    if table.constraints:
        lines += ["", "Constraints: " + ", ".join(f"`{text}`" for text in table.constraints) + "."]
    return "\n".join(lines)


def document() -> str:
    """The whole page, as Markdown."""
    queries = "\n\n".join(f"{what}:\n\n```sql\n{sql}\n```" for what, sql in QUERIES)
    tables = map(_table, (*TABLES, *OPTIONAL_TABLES))
    parts = [_head(), *tables, "## Questions it answers\n\n" + queries]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _head() -> str:
    """What holds for all tables."""
    return f"""# The profile file

<!-- Made by `python docs/profile_schema.py > docs/profile-schema.md`; a test checks it. -->

A profile (`.wwp`) is one SQLite database with a rollback journal, readable with the `sqlite3`
program or any library: `application_id` is {APPLICATION_ID} (`0x{APPLICATION_ID:X}`, the bytes
`WAYW`), `user_version` is the version of this schema, now {SCHEMA_VERSION}. A reader
reports an error for any other version. A profile that is compressed by xz, gzip or bzip2, and by
Zstandard with Python 3.14 or later, is read as it is: Waywiser unpacks it in memory, up to 1 GiB.

Each finished visit is committed in one transaction with all its samples, so a killed survey loses
none that was finished. A visit that was interrupted is replaced when the survey is resumed; every
other visit is final, whether it has samples or the reason for having none. Columns named `json`
and the lists in `visit` hold JSON, which SQLite's `json_extract` and `json_each` read.

## Samples

A visit has one row. Each of its columns of samples holds one number per sample, in the order taken,
as zlib of little-endian 8-byte numbers: floats or signed integers. The column `samples` says how
many numbers there are; `transfers` has `width` times as many, those of one sample after those of
the sample before. The seconds in `lanes` are laid out in the same way, of each GPU of each
transfer, as many as `counts` says; those in `alone` as those in `transfers`. A column that was not
taken is NULL. Times are seconds, and NaN is a time that was not taken. Statistics are not stored:
they follow from the samples. The table `model` says which samples it follows from.

```python
{SAMPLES_IN_PYTHON}```

A reader of files from elsewhere gives `zlib.decompressobj().decompress` a limit of
{NUMBER_BYTES} times `samples` bytes, because a small value can expand to a large one.

## Checksums

The last column of every table is `checksum`: CRC-32 (`zlib.crc32`) of the row's other values, in
the order of the columns, as one MessagePack array. Each number, text and blob has its shortest
MessagePack form, floats have 8 bytes, and NULL is nil. Readers report a row whose checksum is
wrong as damage, and a table with fewer rows than `meta` says. No table has an index besides its
key, so that every reader sees every row.
"""


if __name__ == "__main__":
    print(document(), end="")
