"""Whatever a profile holds, every verb that reads it works, or says in one line what is wrong."""

from __future__ import annotations

import json
import math
import random
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests import damaging

from waywiser.cli import run
from waywiser.profile.columns import packed, unpacked
from waywiser.stats.order import lower_rank

Output = pytest.CaptureFixture[str]

DAMAGES = 20

COPY = "device@gpu:0 <-> device@gpu:1 by copy-engine of 64MiB"


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


def verbs(files: Files) -> dict[str, list[str]]:
    bad, whole = str(files.bad), files.whole
    return {
        "compare": ["compare", whole, bad],
        "compare back": ["compare", bad, whole],
        "check": ["check", bad, "--baseline", whole, "--prometheus", "-"],
        "check against": ["check", whole, "--baseline", bad],
        "fleet": ["check", whole, bad],
        "report": ["report", bad, "--format", "md", "-o", "-"],
        "show": ["show", bad],
        "normal": ["check", bad],
        "model": ["predict", bad],
        "validation": ["predict", bad, "--validate"],
        "predict": ["predict", bad, "-w", COPY],
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
        damaging.reseal(connection)
    connection.close()
    what = f"{table}.{column} {path}"
    assert answers(["report", str(files.bad), "--format", "md", "-o", "-"], what, capsys) == 2
    assert answers(["show", str(files.bad)], what, capsys) == 2
    for words in (["compare", files.whole, str(files.bad)], ["check", str(files.bad)]):
        answers(words, what, capsys)


def change_column(files: Files, name: str, change: Callable[[list[float]], object]) -> None:
    """Puts what ``change`` makes of a column of samples into the bad file, for every visit."""
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        for visit, count, blob in connection.execute(
            f"SELECT visit, samples, {name} FROM visit WHERE {name} IS NOT NULL"
        ).fetchall():
            made = change(list(unpacked(blob, count, "d")))
            value = packed(made, "d") if isinstance(made, list) else made
            connection.execute(f"UPDATE visit SET {name} = ? WHERE visit = ?", (value, visit))
        damaging.reseal(connection)
    connection.close()


IMPOSSIBLE: dict[str, Callable[[list[float]], object]] = {
    "infinite": lambda spans: [math.inf, *spans[1:]],
    "minus infinite": lambda spans: [-math.inf, *spans[1:]],
    "no number": lambda spans: [math.nan, *spans[1:]],
    "longer than anybody waits": lambda spans: [1e30, *spans[1:]],
    "one too few": lambda spans: spans[1:],
    "one too many": lambda spans: [*spans, 1.0],
    "not there": lambda spans: None,
    "a text": lambda spans: "x",
    "not compressed": lambda spans: b"x" * 100,
    "cut short": lambda spans: packed(spans, "d")[:-6],
    "followed by more": lambda spans: packed(spans, "d") + b"x",
    "far larger when unpacked": lambda spans: zlib.compress(bytes(2**26)),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_samples_that_are_impossible_are_damage(files: Files, what: str, capsys: Output) -> None:
    change_column(files, "span", IMPOSSIBLE[what])
    named = verbs(files)
    for name in ("show", "export csv", "compare", "compare back", "report"):
        assert answers(named[name], what, capsys) == 2
    answers(named["fleet"], what, capsys)


def test_hardly_anything_known_decides_nothing(files: Files, capsys: Output) -> None:
    """Intervals that reach from microseconds to a second: a hundred thousand fold either way."""

    def uncertain(spans: list[float]) -> list[float]:
        rank = lower_rank(len(spans)) or 1
        return [*sorted(spans)[:-rank], *([1.0] * rank)]

    change_column(files, "span", uncertain)
    what = "all intervals end at 1 s"
    report = ["report", str(files.bad), "-o", "-", "--format", "md"]
    assert answers(report, what, capsys) == 0
    assert answers(["compare", files.whole, str(files.bad)], what, capsys) == 3


def test_a_time_that_was_not_taken_is_a_gap_and_no_number(files: Files, capsys: Output) -> None:
    change_column(files, "host", lambda seconds: [math.nan, *seconds[1:]])
    for words in (["show", str(files.bad)], ["export", str(files.bad), "-o", "-"]):
        assert run(words) == 0
        assert "nan" not in capsys.readouterr().out
