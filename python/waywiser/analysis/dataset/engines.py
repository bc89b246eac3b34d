"""The packages that write and read a data set, which need not be installed."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from waywiser.words import WaywiserError


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
    engine("duckdb"), engine("pyarrow.parquet")


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
        "list<int32>": arrow.list_(arrow.int32()),
        "float": arrow.float32(),
    }
    fields = [(c.name, types.get(c.type) or arrow.type_for_alias(c.type)) for c in COLUMNS]
    return arrow.schema(fields, metadata={MARK: str(VERSION)})
