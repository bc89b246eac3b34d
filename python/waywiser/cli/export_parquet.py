"""A profile's samples as Parquet: the rows of CSV with types, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from waywiser.profile import Profile
from waywiser.series.sample_rows import TYPES, rows_of
from waywiser.words import WaywiserError

ROWS = 65_536
"""Rows of a row group, which is as much as is in memory at once."""


class NoPyarrow(WaywiserError):
    """The library that writes Parquet is not installed."""


def pyarrow() -> Any:
    """The module. Raises `NoPyarrow`."""
    try:
        import pyarrow as found
        import pyarrow.parquet
    except ImportError as error:
        raise NoPyarrow(
            f"Parquet is written by pyarrow, which cannot be loaded ({error})",
            remedy="pip install pyarrow, or write --format csv",
        ) from error
    return found


def write_parquet(profile: Profile, stream: BinaryIO) -> None:
    """Raises `NoPyarrow`."""
    arrow = pyarrow()
    schema = _schema(arrow)
    rows = rows_of(profile)
    with arrow.parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = [arrow.array(column, field.type) for column, field in
                       zip(zip(*group, strict=True), schema, strict=True)]  # fmt: skip
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _groups(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while group := list(islice(rows, ROWS)):
        yield group


def _schema(arrow: Any) -> Any:
    types = {
        str: arrow.string(),
        int: arrow.int64(),
        float: arrow.float64(),
        bool: arrow.bool_(),
        tuple: arrow.list_(arrow.float64()),
    }
    return arrow.schema([(name, types[kind]) for name, kind in TYPES.items()])
