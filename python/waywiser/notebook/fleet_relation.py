"""The data set of a fleet as a relation of DuckDB."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from waywiser.analysis.dataset.files import is_dataset
from waywiser.analysis.dataset.scan import DataSetError, Scan
from waywiser.analysis.history.labels import first_day, read_labels


def fleet_relation(
    folder: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    since: str = "",
) -> Any:
    """As `waywiser.fleet`."""
    if not is_dataset(Path(folder)):
        raise DataSetError(
            "there is no data set in this folder",
            where=os.fspath(folder),
            remedy=f"waywiser export {os.fspath(folder)} --format parquet makes it of profiles",
        )
    scan = Scan(Path(folder), first_day(since))
    return scan.labelled(read_labels(os.fspath(labels)) if labels is not None else {})
