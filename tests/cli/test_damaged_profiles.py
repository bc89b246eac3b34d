"""Whatever a profile holds, every verb that reads it works, or says in one line what is wrong."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests import damaging

from waywiser.cli import run

Output = pytest.CaptureFixture[str]

DAMAGES = 20


class Files(NamedTuple):
    whole: str
    loose: Path
    bad: Path


def files_of(folder: Path, profile: Path) -> Files:
    whole, loose = damaging.recorded(folder, profile)
    return Files(str(whole), loose, folder / "bad.wwp")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files_of(tmp_path_factory.mktemp("damaged"), damaging.RECORDED)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files_of(tmp_path_factory.mktemp("earlier"), damaging.EARLIER)


def verbs(files: Files) -> dict[str, list[str]]:
    bad, whole = str(files.bad), files.whole
    return {
        "compare": ["compare", whole, bad],
        "compare back": ["compare", bad, whole],
        "check": ["check", bad, "--baseline", whole, "--prometheus", "-"],
        "check against": ["check", whole, "--baseline", bad],
        "fleet": ["fleet", whole, bad],
        "report": ["report", bad, "--format", "md", "-o", "-"],
        "show": ["show", bad],
        "export json": ["export", bad, "--format", "json", "-o", "-"],
        "export csv": ["export", bad, "--format", "csv", "-o", "-"],
        "export benchmark": ["export", bad, "--format", "google-benchmark", "-o", "-"],
    }


def answers(words: list[str], what: str, capsys: Output) -> int:
    """The exit code, of what was answered as promised."""
    capsys.readouterr()
    code = run(words)
    out, err = capsys.readouterr()
    about = f"{what}: {words[0]} said {err[:300]}"
    assert code in (0, 1, 2, 3), about
    assert "mistake in waywiser" not in err, about
    assert "Traceback" not in err, about
    assert "\x1b" not in err, about
    assert "\x1b" not in out or words[0] == "export", about  # JSON escapes it, CSV is data
    if code == 2 and words[0] != "fleet":
        assert len(err.splitlines()) == 1, about
        assert err.startswith("waywiser: error: "), about
        assert "bad.wwp" in err, about
    return code


def all_answer(files: Files, what: str, capsys: Output) -> dict[str, int]:
    return {name: answers(words, what, capsys) for name, words in verbs(files).items()}


def test_a_profile_without_types_is_read_as_any_other(files: Files, capsys: Output) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    codes = all_answer(files, "nothing", capsys)
    assert set(codes.values()) == {0, 3}


@pytest.mark.parametrize("seed", range(DAMAGES))
def test_one_thing_wrong_is_one_line_or_none(files: Files, seed: int, capsys: Output) -> None:
    what = damaging.damage(files.loose, files.bad, random.Random(seed))
    all_answer(files, what, capsys)


HARMFUL: tuple[tuple[str, str, tuple[Any, ...], Any], ...] = (
    ("series", "workload", (), {}),
    ("series", "workload", ("transfers",), []),
    ("series", "workload", ("transfers", 0, "bytes"), -1),
    ("series", "workload", ("transfers", 0, "parameters"), {"stride": "many"}),
    ("locality", "json", ("blocks", 0, "copies", 0), []),
    ("locality", "json", ("blocks", 0, "copies", 0, 0), -1.0),
    ("locality", "json", ("blocks", 0, "reads", 0), [1e-7]),
    ("locality", "json", ("started",), "yesterday"),
    ("machine", "json", ("gpus", 1, "index"), 0),
    ("machine", "json", ("gpus", 0, "index"), -1),
    ("machine", "json", ("numa", 0, "index"), 2**40),
    ("machine", "json", ("gpus", 0, "pcie", "width_max"), -16),
    ("health", "json", ("gpus", 0, "counters", "ECC corrected"), -5),
    ("visit", "gpu_states", (0, "index"), -1),
    ("visit", "buffers", (0, "fraction_on_place"), 7.5),
)


@pytest.mark.parametrize(("table", "column", "path", "value"), HARMFUL)
def test_what_no_survey_can_have_stored_is_damage(
    files: Files, table: str, column: str, path: tuple[Any, ...], value: Any, capsys: Output
) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        ((row, text),) = connection.execute(
            f"SELECT rowid, {column} FROM {table} WHERE {column} != '[]' LIMIT 1"
        )
        changed = json.dumps(damaging.set_part(json.loads(text), path, value))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))
    connection.close()
    what = f"{table}.{column} {path}"
    assert answers(["report", str(files.bad), "--format", "md", "-o", "-"], what, capsys) == 2
    assert answers(["show", str(files.bad)], what, capsys) == 2
    for words in (["compare", files.whole, str(files.bad)], ["fleet", str(files.bad)]):
        answers(words, what, capsys)


@pytest.mark.parametrize("value", ["9e999", "-9e999", "NULL", "'x'", "1e30"])
def test_a_time_that_is_none_is_damage_where_it_is_read(
    files: Files, earlier: Files, value: str, capsys: Output
) -> None:
    """Samples whose estimate is kept are read by who asks for samples."""
    for each in (files, earlier):
        each.bad.write_bytes(each.loose.read_bytes())
        with sqlite3.connect(each.bad) as connection:
            connection.execute(f"UPDATE sample SET span = {value} WHERE rowid = 5")
        connection.close()
        assert answers(["export", str(each.bad), "-o", "-"], value, capsys) == 2
    assert answers(["show", str(earlier.bad)], value, capsys) == 2
    assert answers(["show", str(files.bad)], value, capsys) == 0


@pytest.mark.parametrize("value", ["9e999", "-9e999", "1e308", "-1"])
def test_a_time_of_a_short_visit_that_is_none_is_damage(
    files: Files, value: str, capsys: Output
) -> None:
    """Visits too short for an interval are held against how their samples scatter."""
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        ((visit,),) = connection.execute("SELECT min(visit) FROM sample")
        short = "UPDATE visit SET counted = 4, low = NULL, high = NULL WHERE visit = ?"
        connection.execute(short, (visit,))
        where = "WHERE visit = ? AND n < 2"
        connection.execute(f"UPDATE sample SET span = {value} {where}", (visit,))
    connection.close()
    answers(["fleet", files.whole, str(files.bad)], value, capsys)
    assert answers(["compare", files.whole, str(files.bad)], value, capsys) == 2


def test_hardly_anything_known_shows_no_change(files: Files, capsys: Output) -> None:
    """Intervals that reach from microseconds to a second: a hundred thousand fold either way."""
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        connection.execute("UPDATE visit SET high = 1.0")
    connection.close()
    what = "all highs are 1 s"
    report = ["report", str(files.bad), "-o", "-", "--format", "md"]
    assert answers(report, what, capsys) == 0
    assert answers(["compare", files.whole, str(files.bad)], what, capsys) == 0


def test_a_time_that_was_not_taken_is_a_gap_and_no_number(files: Files, capsys: Output) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        connection.execute("UPDATE sample SET host = NULL WHERE rowid = 5")
    connection.close()
    for words in (["show", str(files.bad)], ["export", str(files.bad), "-o", "-"]):
        assert run(words) == 0
        assert "nan" not in capsys.readouterr().out
