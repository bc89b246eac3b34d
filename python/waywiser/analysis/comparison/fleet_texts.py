"""How the slow paths of a host are written: of bandwidth as such, of latencies as times."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.comparison.slow_paths import SlowPath
from waywiser.stats import median
from waywiser.words import format_bytes


def by_peers(path: SlowPath) -> str:
    """``is 9.8% slower than its peers``, ``takes 5.0% longer than its peers at 1 KiB``."""
    if not path.is_time:
        beside = ", beside the host's equivalent paths" if path.beside else ""
        return f"is {1 - path.ratio:.1%} slower than its peers{beside}"
    at = f" at {format_bytes(path.bytes)}" if path.bytes else ""
    return f"takes {1 / path.ratio - 1:.1%} longer than its peers{at}"


def all_by_peers(paths: Sequence[SlowPath]) -> str:
    """``are slower than its peers', by 5.0% (median)``; of times alone that they take longer."""
    ratio = median([path.ratio for path in paths])
    if all(path.is_time for path in paths):
        return f"take longer than its peers', by {1 / ratio - 1:.1%} (median)"
    return f"are slower than its peers', by {1 - ratio:.1%} (median)"


def chance_text(path: SlowPath) -> str:
    """``H2D: 90.2% of the usual rate, probability of this by chance: 1e-06``."""
    twice = ", seen in two surveys" if path.confirmed else ""
    return f"{path.name}: {usual_text(path)}, probability of this by chance: {path.p:.2g}{twice}"


def usual_text(path: SlowPath) -> str:
    """``90.2% of the usual rate``, ``105.0% of the usual time``."""
    if path.is_time:
        return f"{1 / path.ratio:.1%} of the usual time"
    beside = " beside the host's equivalent paths" if path.beside else ""
    return f"{path.ratio:.1%} of the usual rate{beside}"
