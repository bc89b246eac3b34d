from __future__ import annotations

import runpy
import sqlite3
import zlib
from pathlib import Path
from statistics import median

import msgspec
import pytest

import profiles
from waywiser.profile import Profile
from waywiser.profile.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES

DOCS = Path(__file__).parents[1] / "docs"
PAGE = runpy.run_path(str(DOCS / "profile_schema.py"))


def test_the_page_is_current() -> None:
    remedy = "python docs/profile_schema.py > docs/profile-schema.md"
    assert (DOCS / "profile-schema.md").read_text() == PAGE["document"](), remedy


def test_the_file_is_what_the_page_says(tmp_path: Path) -> None:
    connection = sqlite3.connect(profiles.write(tmp_path / "a.wwp"))
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert {table.name for table in TABLES} <= found
    for table in TABLES:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")]
        assert columns == [column.name for column in table.columns]
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


@pytest.mark.parametrize(("question", "sql"), PAGE["QUERIES"])
def test_each_question_of_the_page_has_an_answer(tmp_path: Path, question: str, sql: str) -> None:
    connection = sqlite3.connect(profiles.write(tmp_path / "a.wwp"))
    assert connection.execute(sql).fetchall(), question
    connection.close()


def test_the_lines_of_python_read_the_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines_of_page = PAGE["SAMPLES_IN_PYTHON"]
    assert len([line for line in lines_of_page.splitlines() if line]) == 5
    with Profile.open(profiles.write(tmp_path / "host.wwp")) as profile:
        measured = [visit for visit in profile.visits() if len(visit.samples)]
    monkeypatch.chdir(tmp_path)
    exec(lines_of_page, {})
    lines = capsys.readouterr().out.splitlines()
    expected = [
        f"{visit.workload} {visit.block} {len(visit.samples)} {median(visit.samples.span)}"
        for visit in measured
    ]
    assert sorted(lines) == sorted(expected)


def test_the_checksum_is_what_the_page_says(tmp_path: Path) -> None:
    connection = sqlite3.connect(profiles.write(tmp_path / "a.wwp"))
    for table in TABLES:
        for *values, checksum in connection.execute(f"SELECT * FROM {table.name}"):
            assert zlib.crc32(msgspec.msgpack.encode(values)) == checksum
    connection.close()
