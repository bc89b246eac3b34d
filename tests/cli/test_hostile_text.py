"""Text of a profile that anyone may have made steers no terminal, page or file, in any verb."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import damaging

from waywiser.cli import run
from waywiser.profile.rows import series_row
from waywiser.words import Workload

Output = pytest.CaptureFixture[str]

COPY = "device@gpu:0 -> device@gpu:1 by copy-engine of 64MiB"

STEERS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What no output has; line feeds end lines."""

HOSTILE = (
    "\x1b[31mred", "a\nb", "\x9b2J", "a\u202eb\u2066", "\x00", "\t", "\r", "\x1b]0;title\x07",
    "\x7f", "\\u001b[1m", "xx by yy", "gpu:", "gpu:x", "gpu:99999999999999999999", "numa:-1",
    "[", "{}", "%s", "=1+1", "|",
    "</script><b>", "'; --", '"', "", " ", "0", "a" * 3000, "\ufeff", "\u2028",
)  # fmt: skip

TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(alphabet="\x00\x07\x1b\x9b\x7f\t\r\n\u202e [];,@->=:01ab", max_size=12),
)

JSON_COLUMNS = (*damaging.JSON_COLUMNS, ("plan", "json"), ("visit", "notes"), ("visit", "evidence"))

TEXT_COLUMNS = (
    ("meta", "value"), ("run", "started"), ("run", "ended"), ("run", "version"),
    ("refusal", "path"), ("refusal", "reason"), ("series", "identity"), ("series", "text"),
    ("series", "curve"), ("series", "unit"), ("series", "cache"), ("visit", "series"),
    ("visit", "mode"), ("visit", "stop"), ("visit", "failure_kind"), ("visit", "failure_reason"),
    ("visit", "started"), ("visit", "gate"), ("health", "moment"), ("locality", "memory"),
)  # fmt: skip


class Files(NamedTuple):
    folder: Path
    whole: str
    loose: Path
    bad: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("hostile")
    whole, loose = damaging.recorded(folder)
    with sqlite3.connect(loose) as other:
        other.execute(
            "UPDATE visit SET notes = '[\"a note\"]', failure_kind = 'crash', "
            "failure_reason = 'it ended' WHERE visit = (SELECT max(visit) FROM visit)"
        )
        damaging.reseal(other)
    other.close()
    return Files(folder, str(whole), loose, folder / "bad.wwp")


def verbs(files: Files) -> dict[str, list[str]]:
    bad, whole = str(files.bad), files.whole
    page, junit = str(files.folder / "page.html"), str(files.folder / "junit.xml")
    return {
        "show": ["show", bad],
        "show --all": ["show", bad, "--all"],
        "show --json": ["show", bad, "--json"],
        "report md": ["report", bad, "--format", "md", "--all", "-o", "-"],
        "report html": ["report", bad, "-o", page],
        "compare": ["compare", files.whole, bad, "--all", "--junit", junit],
        "check": ["check", bad, "--baseline", whole, "--prometheus", "-"],
        "fleet": ["check", whole, bad],
        "advise": ["advise", bad, "--placement"],
        "model": ["predict", bad],
        "predict": ["predict", bad, "-w", COPY],
        "policy": ["export", bad, "--for", "waywiser"],
        "methods": ["advise", bad],
        "topology": ["topology", bad],
        "doctor": ["doctor", bad],
        "normal": ["check", bad, "--all"],
        "normal --json": ["check", bad, "--json"],
        "export csv": ["export", bad, "--format", "csv", "-o", "-"],
        "export json": ["export", bad, "--format", "json", "-o", "-"],
        "export summary": ["export", bad, "--format", "csv", "--summary", "-o", "-"],
        "export benchmark": ["export", bad, "--format", "google-benchmark", "-o", "-"],
    }


class Spot(NamedTuple):
    """Where a text is: in a column, or in a JSON text of it."""

    table: str
    column: str
    row: int
    path: tuple[Any, ...] | None = None
    is_key: bool = False


def spots(loose: Path) -> list[Spot]:
    """All texts in columns, and of those in JSON one of each kind."""
    found: dict[object, Spot] = {}
    with sqlite3.connect(loose) as connection:
        for table, column in (*TEXT_COLUMNS, *JSON_COLUMNS):
            for row, text in connection.execute(f"SELECT rowid, {column} FROM {table}"):
                if text is None:
                    continue
                if (table, column) in TEXT_COLUMNS:
                    of_its_own = row if table == "meta" else 0
                    found.setdefault((table, column, of_its_own), Spot(table, column, row))
                    continue
                for path, is_key in _texts(json.loads(text)):
                    kind = tuple(part for part in path if isinstance(part, str)), is_key
                    found.setdefault((table, column, kind), Spot(table, column, row, path, is_key))
    connection.close()
    return list(found.values())


def _texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], bool]]:
    if isinstance(value, str):
        yield path, False
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in entries:
        if isinstance(key, str):
            yield (*path, key), True
        yield from _texts(each, (*path, key))


def spoil(files: Files, spot: Spot, text: str) -> None:
    """Writes the bad file: the text stands there, the checksums are right, and so is all that
    follows from a workload with the text in it."""
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        value = text
        if spot.path is not None:
            ((before,),) = connection.execute(
                f"SELECT {spot.column} FROM {spot.table} WHERE rowid = ?", (spot.row,)
            )
            value = json.dumps(_with(json.loads(before), spot, text))
        connection.execute(
            f"UPDATE {spot.table} SET {spot.column} = ? WHERE rowid = ?", (value, spot.row)
        )
        if (spot.table, spot.column) == ("machine", "json"):
            host = json.loads(value).get("hostname", "")
            connection.execute("UPDATE meta SET value = ? WHERE key = 'hostname'", (host,))
        if (spot.table, spot.column) == ("series", "workload"):
            derive(connection, spot.row, value)
        damaging.reseal(connection)
    connection.close()


def _with(document: Any, spot: Spot, text: str) -> Any:
    if not spot.is_key:
        return damaging.set_part(document, spot.path, text)
    around = document
    for key in spot.path[:-1]:
        around = around[key]
    around[text] = around.pop(spot.path[-1])
    return document


def derive(connection: sqlite3.Connection, row: int, text: str) -> None:
    try:
        workload = msgspec.json.decode(text, type=Workload)
        derived = series_row(workload)
    except (msgspec.MsgspecError, ValueError):
        return
    ((before,),) = connection.execute("SELECT identity FROM series WHERE rowid = ?", (row,))
    connection.execute("UPDATE visit SET series = ? WHERE series = ?", (derived.identity, before))
    columns = ", ".join(f"{name} = ?" for name in derived._fields)
    connection.execute(f"UPDATE series SET {columns} WHERE rowid = ?", (*derived, row))


def require_harmless(
    files: Files, what: str, capsys: Output, names: tuple[str, ...] = ()
) -> dict[str, int]:
    """Runs all verbs, or those; returns their exit codes."""
    codes = {}
    for name, words in verbs(files).items():
        if names and name not in names:
            continue
        capsys.readouterr()
        code = run(words)
        out, err = capsys.readouterr()
        about = f"{what}: {name}: exit code {code}: {err[:300]}"
        assert code in (0, 1, 2, 3), about
        assert "mistake in waywiser" not in err, about
        assert "Traceback" not in err, about
        for file in files.folder.glob("*.[hx]*ml"):
            out += file.read_text()
            file.unlink()
        for stream in (out.replace("\r\n", "\n"), err):  # CSV ends its lines so
            if found := STEERS.search(stream):
                around = stream[max(found.start() - 60, 0) : found.end() + 20]
                raise AssertionError(f"{what}: {name} wrote {around!r}")
        if code == 2:
            assert len(err.splitlines()) == 1 or name == "fleet", about
        codes[name] = code
    return codes


def test_nothing_hostile_is_nothing_special(files: Files, capsys: Output) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    codes = require_harmless(files, "nothing", capsys)
    assert 2 not in codes.values()


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_text_anywhere_is_harmless_in_every_verb(
    files: Files, capsys: Output, data: st.DataObject
) -> None:
    known = spots(files.loose)
    spot = known[data.draw(st.integers(0, len(known) - 1), label="spot")]
    text = data.draw(TEXTS, label="text")
    spoil(files, spot, text)
    require_harmless(files, f"{spot} = {text!r}", capsys)


FREE = (
    ("machine", "json", ("cpu_model",)), ("machine", "json", ("gpus", 0, "name")),
    ("machine", "json", ("notes",)), ("machine", "json", ("hostname",)),
    ("environment", "json", ()), ("plan", "json", ("request", "preset")), ("run", "version", None),
    ("refusal", "reason", None), ("refusal", "path", None), ("visit", "failure_reason", None),
    ("visit", "gate", None), ("visit", "notes", (0,)), ("visit", "buffers", (0, "state")),
    ("health", "json", ("reason",)),
)  # fmt: skip
"""Free text: what is said of the machine, of the runs and of failures, in words of any kind."""


@pytest.mark.parametrize("hostile", ["\x1b[31mred\x1b[0m\n\x9b2J", "\u202egpj.exe\t\r|<b>`"])
def test_free_text_is_shown_as_text(files: Files, capsys: Output, hostile: str) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        for table, column, path in FREE:
            rows = connection.execute(
                f"SELECT rowid, {column} FROM {table} WHERE coalesce({column}, '[]') != '[]'"
            ).fetchall()
            assert rows, (table, column)
            for row, before in rows:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                    (_spoken(before, path, hostile), row),
                )
        connection.execute("UPDATE meta SET value = ? WHERE key = 'hostname'", (hostile,))
        damaging.reseal(connection)
    connection.close()
    codes = require_harmless(files, "all free text", capsys)
    assert 2 not in codes.values()


def _spoken(before: str, path: tuple[Any, ...] | None, text: str) -> str:
    if path is None:
        return text
    document = json.loads(before)
    if not path:
        return json.dumps({**document, text: text})
    return json.dumps(damaging.set_part(document, path, [text] if path == ("notes",) else text))


DERIVED = (
    ("series", "curve", "xx by yy", "series", "its curve is not that of its workload"),
    ("series", "text", "\x1b[31m", "series", "its text is not that of its workload"),
    ("series", "bytes", 1, "series", "its bytes is not that of its workload"),
    ("series", "unit", "s", "series", "its unit is not that of its workload"),
    ("series", "cache", "flushed", "series", "its cache is not that of its workload"),
    ("locality", "memory", "pinned@numa:9", "locality", "its memory"),
    ("locality", "process", 99, "locality", "its process"),
    ("visit", "started", "noon", "visit", "'noon' is no moment"),
    ("run", "started", "", "run", "'' is no moment"),
)


@pytest.mark.parametrize(("table", "column", "value", "place", "why"), DERIVED)
def test_what_follows_from_something_else_must_follow_from_it(
    files: Files, capsys: Output, table: str, column: str, value: object, place: str, why: str
) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        connection.execute(
            f"UPDATE {table} SET {column} = ? "
            f"WHERE rowid = (SELECT rowid FROM {table} WHERE {column} != ? LIMIT 1)",
            (value, value),
        )
        damaging.reseal(connection)
    connection.close()
    assert run(["report", str(files.bad), "--format", "md", "-o", "-"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"waywiser: error: {files.bad}: the profile is damaged ({place} ")
    assert why in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("key", ["hostname", "created"])
def test_what_the_head_of_a_file_says_is_checked(files: Files, capsys: Output, key: str) -> None:
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        connection.execute("UPDATE meta SET value = 'x' WHERE key = ?", (key,))
        damaging.reseal(connection)
    connection.close()
    assert run(["show", str(files.bad)]) == 2
    assert "the profile is damaged (meta: " in capsys.readouterr().err


UNWRITABLE = (
    *((("path", "executor"), word) for word in ("by x", "\x1b[31m", "a]b", "", "A", "a b", "x; y")),
    *((("path", "source", "kind"), word) for word in ("a by b", "\x9b2J", "a[", "", "A", "a -> b")),
    (("parameters",), {"a]b": "1"}), (("parameters",), {"a": ""}), (("parameters",), {"": "1"}),
    (("parameters",), {"a": "1,b=2"}), (("parameters",), {"a": "1\n"}),
    (("layout",), {"kind": "list", "settings": {"piece": "\u202e"}}),
    (("layout",), {"kind": "list", "settings": {"piece": "1] of 5"}}),
)  # fmt: skip


@pytest.mark.parametrize(("path", "value"), UNWRITABLE)
def test_a_word_of_a_workload_that_nobody_can_write_is_damage(
    files: Files, capsys: Output, path: tuple[str, ...], value: Any
) -> None:
    """With the identity, the text and the curve that follow from it."""
    files.bad.write_bytes(files.loose.read_bytes())
    with sqlite3.connect(files.bad) as connection:
        ((row, text),) = connection.execute("SELECT rowid, workload FROM series LIMIT 1")
        changed = damaging.set_part(json.loads(text), ("transfers", 0, *path), value)
        derive(connection, row, json.dumps(changed))
        damaging.reseal(connection)
    connection.close()
    codes = require_harmless(files, f"{path} = {value!r}", capsys, ("show", "compare"))
    assert set(codes.values()) == {2}
