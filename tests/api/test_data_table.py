"""Tables: rows, columns, what they become elsewhere, and errors if a package is missing."""

from __future__ import annotations

import builtins
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from waywiser.notebook.data_table import BATCH_ROWS, SHOWN_ROWS, DataTable, NoSuchColumn
from waywiser.notebook.optional_package import MissingPackage

TYPES = {"name": str, "size": int, "rate": float, "void": bool, "parts": tuple}
ROWS = [("a", 1, 1.5, True, (1.0, 2.0)), ("<b>", None, None, None, ())]


@pytest.fixture
def table() -> DataTable:
    return DataTable.of("things", TYPES, ROWS)


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def fail(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)
    monkeypatch.setattr("waywiser.notebook.optional_package.import_module", lambda name: fail(name))


def test_rows_are_named_tuples(table: DataTable) -> None:
    first, second = table
    assert (first.name, first.size, first.parts) == ("a", 1, (1.0, 2.0))
    assert tuple(second) == ROWS[1]
    assert len(table) == 2
    assert table[0] == first and table[-1] == second
    assert table[:1] == [first]
    assert table["size"] == [1, None]
    assert table.to_dicts()[0] == dict(zip(TYPES, ROWS[0], strict=True))
    assert table.columns == tuple(TYPES)
    for number in (2, -3):
        with pytest.raises(IndexError):
            table[number]


def test_a_column_that_is_not_there_is_answered_with_those_that_are(table: DataTable) -> None:
    with pytest.raises(NoSuchColumn) as error:
        table["speed"]
    assert str(error.value) == (
        "things has no column 'speed' (its columns: name, size, rate, void, parts)"
    )
    assert isinstance(error.value, KeyError)


def test_rows_of_a_long_table_are_made_when_they_are_read() -> None:
    made: list[int] = []

    def rows() -> Iterator[tuple[int]]:
        for n in range(3):
            made.append(n)
            yield (n,)

    table = DataTable("numbers", {"n": int}, rows, lambda: 3)
    assert len(table) == 3 and made == []
    assert table["n"] == table["n"] == [0, 1, 2]
    assert made == [0, 1, 2] * 2
    assert table[0].n == 0


def test_a_table_shows_its_first_rows() -> None:
    table = DataTable.of("things", TYPES, ROWS * SHOWN_ROWS)
    text, page = repr(table), table._repr_html_()
    assert text.splitlines()[0].split() == list(TYPES)
    assert len(text.splitlines()) == 1 + SHOWN_ROWS + 1
    assert text.splitlines()[-1] == "things: 40 rows, the first 20 are shown"
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert page.count("<tr>") == 1 + SHOWN_ROWS
    steering = DataTable.of("things", {"name": str}, [("\x1b[31m red\nline",)])
    assert repr(steering) == "name\n[31m red line\nthings: 1 row"


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_without_a_package_the_error_says_what_to_install(
    table: DataTable, package: str, without_packages: None
) -> None:
    convert = {"pandas": table.to_pandas, "polars": table.to_polars, "pyarrow": table.to_arrow}
    with pytest.raises(MissingPackage) as error:
        convert[package]()
    assert str(error.value) == (
        f"{error.traceback[1].name}() needs {package}, which is not installed "
        f"(pip install {package})"
    )
    assert error.value.__suppress_context__ and error.value.__cause__ is None
    assert isinstance(error.value, ImportError)


@pytest.mark.parametrize("rows", [[], ROWS])
def test_it_becomes_a_table_of_arrow(rows: list[tuple[Any, ...]]) -> None:
    arrow = pytest.importorskip("pyarrow")
    found = DataTable.of("things", TYPES, rows).to_arrow()
    assert found.schema.names == list(TYPES)
    assert found.schema.field("parts").type == arrow.list_(arrow.float64())
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (*row[:-1], list(row[-1])) for row in rows
    ]


def test_many_rows_become_batches() -> None:
    pytest.importorskip("pyarrow")
    found = DataTable.of("numbers", {"n": int}, ((n,) for n in range(BATCH_ROWS + 1))).to_arrow()
    assert found.column("n").num_chunks == 2
    assert found.column("n")[-1].as_py() == BATCH_ROWS


@pytest.mark.parametrize("rows", [[], ROWS, ROWS[:1]])
def test_it_becomes_a_frame_of_pandas(rows: list[tuple[Any, ...]]) -> None:
    pandas = pytest.importorskip("pandas")
    found = DataTable.of("things", TYPES, rows).to_pandas()
    assert list(found.columns) == list(TYPES)
    assert found.shape == (len(rows), len(TYPES))
    whole = "Int64" if len(rows) == 2 else "int64"
    assert (str(found["size"].dtype), str(found["rate"].dtype)) == (whole, "float64")
    if len(rows) == 2:
        assert found["name"].tolist() == ["a", "<b>"]
        assert pandas.isna(found["size"][1]) and pandas.isna(found["rate"][1])


@pytest.mark.parametrize("rows", [[], ROWS])
def test_it_becomes_a_frame_of_polars(rows: list[tuple[Any, ...]]) -> None:
    polars = pytest.importorskip("polars")
    found = DataTable.of("things", TYPES, rows).to_polars()
    assert found.columns == list(TYPES)
    assert found.schema["size"] == polars.Int64
    assert found.rows() == [(*row[:-1], list(row[-1])) for row in rows]


def test_rows_can_be_pickled() -> None:
    table = DataTable.of("things", {"name": str, "size": int}, [("a", 1), ("b", 2)])
    again = pickle.loads(pickle.dumps(list(table)))
    assert again == list(table) and again[1].size == 2
