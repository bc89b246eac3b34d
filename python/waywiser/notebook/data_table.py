"""A table: named columns with types, and rows as named tuples. It needs no other package."""

from __future__ import annotations

import html
import operator
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, overload

from waywiser.notebook.optional_package import optional
from waywiser.profile import arrow_schema
from waywiser.profile.arrow_batches import arrow_batches
from waywiser.words import WaywiserError, visible

SHOWN_ROWS = 20
"""Rows that a table shows of itself."""

SHOWN_LETTERS = 64
"""Letters of a text that a table shows of itself."""

BATCH_ROWS = 65_536
"""Rows that become one batch of an Arrow table."""

_PANDAS = {str: "object", int: "int64", float: "float64", bool: "bool", tuple: "object"}

_PANDAS_NULLABLE = {**_PANDAS, int: "Int64", bool: "boolean"}
"""The types of columns in which values are missing."""


@cache
def _row_type(columns: tuple[str, ...]) -> Any:
    """A named tuple with these fields, which can be pickled."""

    def reduced(self: Any) -> tuple[Any, ...]:
        return _row_of, (columns, tuple(self))

    plain = namedtuple("Row", columns)  # type: ignore[misc]
    return type("Row", (plain,), {"__slots__": (), "__reduce__": reduced})


def _row_of(columns: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return _row_type(columns)._make(values)


class NoSuchColumn(WaywiserError, KeyError):
    """A column that a table does not have."""

    __str__ = Exception.__str__


class DataTable:
    """Rows with named columns. A row is a named tuple; None stands for a value that is not known.

    ``for row in table`` gives the rows, ``table["bytes"]`` a column as a list, ``table[0]`` a
    row, ``table[:5]`` a list of rows.
    """

    def __init__(
        self,
        name: str,
        types: Mapping[str, type],
        rows: Callable[[], Iterable[tuple[Any, ...]]],
        count: Callable[[], int],
    ) -> None:
        """``types`` are those of the columns: str, int, float, bool, or tuple for floats. ``rows``
        is called anew whenever rows are read, so that a long table is not kept in memory."""
        self.name = name
        self.types = dict(types)
        self._rows = rows
        self._count = count
        self._row: Callable[[Iterable[Any]], Any] = _row_type(tuple(types))._make

    @classmethod
    def of(cls, name: str, types: Mapping[str, type], rows: Iterable[tuple[Any, ...]]) -> DataTable:
        """A table of rows in memory."""
        kept = list(rows)
        return cls(name, types, lambda: kept, lambda: len(kept))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types)

    def __len__(self) -> int:
        return self._count()

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, self._rows())

    @overload
    def __getitem__(self, key: str) -> list[Any]: ...

    @overload
    def __getitem__(self, key: int) -> Any: ...

    @overload
    def __getitem__(self, key: slice) -> list[Any]: ...

    def __getitem__(self, key: str | int | slice) -> Any:
        """A column by its name, a row by its number, or several rows. Raises `NoSuchColumn`,
        `IndexError`."""
        if isinstance(key, slice):
            return list(self)[key]
        if not isinstance(key, str):
            number = operator.index(key)
            number += len(self) if number < 0 else 0
            if not 0 <= number < len(self):
                raise IndexError(f"row {key} of {len(self)}")
            return next(islice(iter(self), number, None))
        if key not in self.types:
            raise NoSuchColumn(f"{self.name} has no column {key!r}",
                               remedy=f"its columns: {', '.join(self.columns)}")  # fmt: skip
        at = self.columns.index(key)
        return [row[at] for row in self._rows()]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.types, row, strict=True)) for row in self._rows()]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`. Columns of integers or truth values in which some are missing have
        pandas' nullable types ``Int64`` and ``boolean``. Raises `MissingPackage`."""
        pandas = optional("pandas", "to_pandas()")
        columns = {}
        for (name, kind), values in zip(self.types.items(), self._values(), strict=True):
            types = _PANDAS_NULLABLE if None in values else _PANDAS
            columns[name] = pandas.Series(values, dtype=types[kind])
        return pandas.DataFrame(columns)

    def to_polars(self) -> Any:
        """A `polars.DataFrame`. Raises `MissingPackage`."""
        polars = optional("polars", "to_polars()")
        types = {
            str: polars.String,
            int: polars.Int64,
            float: polars.Float64,
            bool: polars.Boolean,
            tuple: polars.List(polars.Float64),
        }
        schema = {name: types[kind] for name, kind in self.types.items()}
        return polars.DataFrame(dict(zip(schema, self._values(), strict=True)), schema=schema)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`. Raises `MissingPackage`."""
        arrow = optional("pyarrow", "to_arrow()")
        schema = arrow_schema(arrow, self.types)
        batches = arrow_batches(arrow, schema, self._rows(), BATCH_ROWS)
        return arrow.Table.from_batches(batches, schema=schema)

    def _values(self) -> list[list[Any]]:
        """Each column as a list."""
        found = [list(column) for column in zip(*self._rows(), strict=True)]
        return found or [[] for _ in self.types]

    def __repr__(self) -> str:
        shown = [self.columns, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        left = [kind in (str, tuple) for kind in self.types.values()]
        lines = [
            "  ".join(
                cell.ljust(width) if at_left else cell.rjust(width)
                for cell, width, at_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in shown
        ]
        return "\n".join([*lines, self._size()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"{html_table(self.columns, self._cells())}<p>{html.escape(self._size())}</p>"

    def _cells(self) -> list[tuple[str, ...]]:
        """The first rows as texts."""
        return [tuple(map(_cell, row)) for row in islice(self._rows(), SHOWN_ROWS)]

    def _size(self) -> str:
        rows = len(self)
        shown = f", the first {SHOWN_ROWS} are shown" if rows > SHOWN_ROWS else ""
        return f"{self.name}: {rows} {'row' if rows == 1 else 'rows'}{shown}"


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts as HTML."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(visible(str(value)).split())
    return text if len(text) <= SHOWN_LETTERS else text[: SHOWN_LETTERS - 1] + "…"
