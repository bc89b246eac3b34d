"""Writes ``docs/profile-schema.md`` from the schema: ``python -m waywiser.profile.document``."""

from __future__ import annotations

from waywiser.profile.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES, Table

QUERIES = (
    (
        "How often each series was sampled, and why sampling stopped",
        """SELECT series.text, visit.block, visit.stop, count(sample.n) AS samples
FROM series JOIN visit ON visit.series = series.identity
LEFT JOIN sample ON sample.visit = visit.visit
GROUP BY visit.visit ORDER BY series.curve, series.bytes, visit.block;""",
    ),
    (
        "The best rate of each curve, in GB/s",
        """SELECT curve, max(bytes / span) / 1e9 AS gb_per_s
FROM series JOIN visit ON visit.series = series.identity JOIN sample USING (visit)
WHERE unit = 'GB/s' AND flags & 1 = 0 GROUP BY curve;""",
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


def _table(table: Table) -> str:
    rows = [f"| `{c.name}` | {c.type} | {c.about} |" for c in table.columns]
    lines = [f"## `{table.name}`", "", table.about, "", "| column | type | what |", "|---|---|---|"]
    lines += rows
    if table.constraints:
        lines += ["", "Constraints: " + ", ".join(f"`{text}`" for text in table.constraints) + "."]
    return "\n".join(lines)


def document() -> str:
    """The whole page, as Markdown."""
    head = f"""# The profile file

<!-- Made by `python -m waywiser.profile.document > docs/profile-schema.md`; a test checks it. -->

A profile (`.wwp`) is one SQLite database with a rollback journal, readable with the `sqlite3`
program or any library: `application_id` is {APPLICATION_ID} (`0x{APPLICATION_ID:X}`, the bytes
`WAYW`), `user_version` is the version of this schema, now {SCHEMA_VERSION}. A reader refuses a
version newer than its own.

Each finished visit is committed in one transaction with all its samples, so a killed survey loses
none that was finished. A visit that was interrupted is replaced when the survey is resumed; every
other visit is final, whether it has samples or the reason for having none. Columns named `json`
and the lists in `visit` hold JSON, which SQLite's `json_extract` and `json_each` read.
"""
    queries = "\n\n".join(f"{what}:\n\n```sql\n{sql}\n```" for what, sql in QUERIES)
    parts = [head, *map(_table, TABLES), "## Questions it answers\n\n" + queries]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    print(document(), end="")
