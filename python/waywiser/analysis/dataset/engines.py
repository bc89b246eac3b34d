"""The packages that write and read a data set, which need not be installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from waywiser.words import WaywiserError

PACKAGES = ("pyarrow.parquet", "duckdb")
"""The modules that read and write a data set."""


class NoEngine(WaywiserError):
    """A package that a data set needs is not installed."""


def engine(name: str) -> Any:
    """The module. Raises `NoEngine`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise NoEngine(
            f"a data set needs {package}, which cannot be loaded ({error})",
            remedy="pip install duckdb pyarrow",
        ) from None


def require_engines() -> None:
    """Raises `NoEngine` if no data set can be read or written here."""
    for name in PACKAGES:
        engine(name)


def has_engines() -> bool:
    """Whether a data set can be read here."""
    try:
        require_engines()
    except NoEngine:
        return False
    return True


@lru_cache(maxsize=1)
def arrow_schema(arrow: Any) -> Any:
    """The `pyarrow.Schema` of all files."""
    from waywiser.analysis.dataset.columns import COLUMNS, MARK, VERSION

    types = {
        "timestamp[ms, UTC]": arrow.timestamp("ms", "UTC"),
        # as files have it: those with this schema need no closer look
        "list<int32>": arrow.list_(arrow.field("element", arrow.int32())),
        "float": arrow.float32(),
    }
    fields = [(c.name, types.get(c.type) or arrow.type_for_alias(c.type)) for c in COLUMNS]
    return arrow.schema(fields, metadata={MARK: str(VERSION)})


# pyarrow's own conversions load pandas if it is installed: that takes half a second


def numbers_of(column: Any) -> Any:
    """The numbers of a `pyarrow.ChunkedArray` or an array, of which none is missing, as one of
    numpy, which is read-only. Raises TypeError if one is."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return np.from_dlpack(whole)


def texts_of(values: Sequence[str]) -> Any:
    """A `pyarrow.StringArray`."""
    arrow = engine("pyarrow")
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, arrow.py_buffer(ends), arrow.py_buffer(b"".join(encoded))]
    return arrow.Array.from_buffers(arrow.string(), len(encoded), buffers)
