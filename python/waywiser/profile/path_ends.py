"""The two ends and the executor of a workload, as texts for the columns of tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from waywiser.words import Workload


def ends(workload: Workload) -> tuple[str | None, str | None, str | None]:
    """The source, the destination and the executor of a workload; None for an operation."""
    paths = [transfer.path for transfer in workload.transfers]
    return (
        joined(path.source for path in paths),
        joined(path.destination for path in paths),
        joined(path.executor for path in paths),
    )


def joined(parts: Iterable[Any]) -> str | None:
    """The same of several transfers in one text, each once; None for an operation."""
    texts = dict.fromkeys(map(str, parts))
    return "; ".join(texts) if texts else None
