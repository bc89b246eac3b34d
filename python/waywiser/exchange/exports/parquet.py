"""Rows as Parquet: those of CSV with types, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from waywiser.profile import arrow_schema
from waywiser.profile.arrow_batches import arrow_batches
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
        ) from None
    return found


def write_parquet(
    rows: Iterable[tuple[Any, ...]], types: Mapping[str, type], stream: BinaryIO
) -> None:
    """``types`` are those of the columns. Raises `NoPyarrow`."""
    arrow = pyarrow()
    schema = arrow_schema(arrow, types)
    with arrow.parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for batch in arrow_batches(arrow, schema, rows, ROWS):
            writer.write_batch(batch)
