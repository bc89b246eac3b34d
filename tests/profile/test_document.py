from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path
from statistics import median

import msgspec
import pytest

import profiles
from waywiser.profile import Profile
from waywiser.profile.document import QUERIES, SAMPLES_IN_PYTHON, document
from waywiser.profile.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES

PAGE = Path(__file__).parents[2] / "docs" / "profile-schema.md"


def test_the_page_is_current() -> None:
    remedy = "python -m waywiser.profile.document > docs/profile-schema.md"
    assert PAGE.read_text() == document(), remedy


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


@pytest.mark.parametrize(("question", "sql"), QUERIES)
def test_each_question_of_the_page_has_an_answer(tmp_path: Path, question: str, sql: str) -> None:
    connection = sqlite3.connect(profiles.write(tmp_path / "a.wwp"))
    assert connection.execute(sql).fetchall(), question
    connection.close()


def test_the_lines_of_python_read_the_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len([line for line in SAMPLES_IN_PYTHON.splitlines() if line]) == 5
    with Profile.open(profiles.write(tmp_path / "host.wwp")) as profile:
        measured = [visit for visit in profile.visits() if len(visit.samples)]
    monkeypatch.chdir(tmp_path)
    exec(SAMPLES_IN_PYTHON, {})
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
