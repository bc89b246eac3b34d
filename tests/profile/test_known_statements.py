"""What a file says of its tables is compared before SQLite runs any of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import profiles
from waywiser.profile import DamagedProfile, NotWritable, Profile, WritableProfile
from waywiser.profile.known_statements import plain_statement, unknown_entry
from waywiser.profile.schema import TABLE, create_sql

HEAVY = "length(hex(zeroblob(300000000))) > 0"
"""An expression that takes GBs, if it runs."""


def with_statement(path: Path, table: str, before: str, after: str) -> Path:
    """A whole profile with a table of another statement."""
    profiles.write(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    query = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?"
    assert connection.execute(query, (before, after, table)).rowcount == 1
    connection.close()
    return path


def run(path: Path, statement: str) -> Path:
    profiles.write(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()
    return path


@pytest.mark.parametrize(
    ("table", "before", "after"),
    [
        ("run", "\n)", f",\n CHECK ({HEAVY})\n)"),
        ("health", "checksum INTEGER NOT NULL", f"checksum INTEGER CHECK ({HEAVY}) NOT NULL"),
        ("plan", "one = 1", f"one = 1 AND {HEAVY}"),
        ("environment", "json TEXT NOT NULL", f"json TEXT DEFAULT ({HEAVY}) NOT NULL"),
    ],
)
def test_a_statement_of_somebody_else_runs_neither_when_read_nor_when_written(
    tmp_path: Path, table: str, before: str, after: str
) -> None:
    path = with_statement(tmp_path / "a.wwp", table, before, after)
    with pytest.raises(NotWritable, match=f"its table {table} was made by another statement"):
        WritableProfile.resume(path, {})


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (f"CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT {HEAVY}; END", "trigger t"),
        (f"CREATE VIEW v AS SELECT {HEAVY}", "view v"),
        ("CREATE INDEX i ON visit(length(series))", "index i"),
        ("CREATE TABLE more (a)", "unknown table more"),
    ],
)
def test_what_no_survey_makes_is_read_past_and_not_written_to(
    tmp_path: Path, statement: str, kind: str
) -> None:
    path = run(tmp_path / "a.wwp", statement)
    with Profile.open(path) as profile:
        assert len(list(profile.visits())) == len(list(profiles.visits()))
    with pytest.raises(NotWritable, match=kind):
        WritableProfile.resume(path, {})


def test_a_column_that_is_computed_is_not_read(tmp_path: Path) -> None:
    path = run(tmp_path / "a.wwp", "ALTER TABLE refusal RENAME COLUMN reason TO other")
    run_on(path, f"ALTER TABLE refusal ADD COLUMN reason TEXT AS ({HEAVY})")
    for opened in (Profile.open, Profile.open_snapshot):
        with pytest.raises(DamagedProfile, match=r"refusal\.reason is missing"):
            opened(path)


def run_on(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_a_virtual_table_is_not_read(tmp_path: Path) -> None:
    path = run(tmp_path / "a.wwp", "DROP TABLE locality")
    try:
        run_on(
            path, "CREATE VIRTUAL TABLE locality USING fts5(locality, run, process, memory, json)"
        )
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no fts5, a virtual table")
    with pytest.raises(DamagedProfile, match=r"locality"):
        Profile.open(path)


def test_every_table_that_waywiser_makes_is_known() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(create_sql())
    for name in ("model", "lanes", "alone"):
        connection.execute(TABLE[name].sql())
    assert unknown_entry(connection) == ""


spaces = st.sampled_from([" ", "\n  ", "\t", " -- a comment (with words)\n"])


@given(st.sampled_from(sorted(TABLE)), st.data())
def test_comments_and_spaces_are_no_difference(table: str, data: st.DataObject) -> None:
    plain = plain_statement(TABLE[table].sql().rstrip(";"))
    other = "".join(data.draw(spaces) if c == " " else c for c in plain)
    assert plain_statement(other) == plain


@given(st.sampled_from(sorted(TABLE)), st.data())
def test_any_other_character_is_a_difference(table: str, data: st.DataObject) -> None:
    plain = plain_statement(TABLE[table].sql().rstrip(";"))
    at = data.draw(st.integers(0, len(plain) - 1))
    character = data.draw(st.sampled_from("abz019_'\"`[;=<>/*+|"))
    assert plain_statement(plain[:at] + character + plain[at:]) != plain
