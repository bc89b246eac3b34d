"""Rows as record batches of Arrow, for files and for tables in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any


def arrow_schema(arrow: Any, types: Mapping[str, type]) -> Any:
    """The `pyarrow.Schema` of columns of str, int, float, bool, or tuple for floats.

    ``arrow`` is the module pyarrow.
    """
    known = {
        str: arrow.string(),
        int: arrow.int64(),
        float: arrow.float64(),
        bool: arrow.bool_(),
        tuple: arrow.list_(arrow.float64()),
    }
    return arrow.schema([(name, known[kind]) for name, kind in types.items()])


def arrow_batches(
    arrow: Any, schema: Any, rows: Iterable[tuple[Any, ...]], size: int
) -> Iterator[Any]:
    """The rows as `pyarrow.RecordBatch`, ``size`` rows in each but the last."""
    left = iter(rows)
    while part := list(islice(left, size)):
        columns = dict(zip(schema.names, zip(*part, strict=True), strict=True))
        yield arrow.RecordBatch.from_pydict(columns, schema=schema)
