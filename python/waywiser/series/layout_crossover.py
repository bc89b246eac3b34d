"""The fastest method for bytes that lie apart, and the crossovers of methods as pieces grow.

The fastest has the smallest median time from call to completion, which all methods have in common;
it is *clear* where its interval lies below those of all the others. A result of one size holds for
that size: crossovers move with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby

from waywiser.series.estimate import Estimate
from waywiser.words import Layout, Transfer, Value, format_bytes, format_settings


class Fastest(Value, frozen=True):
    """The fastest method of one layout at one size."""

    run: int
    """Bytes that lie together."""
    method: str
    """The executor with its settings."""
    next_method: str
    """The second fastest."""
    margin: float
    """How much longer the second takes, as a share of the fastest's time."""
    clear: bool


class LayoutCrossover(Value, frozen=True):
    """The fastest methods between two memories, of one kind of layout and size, by growing runs."""

    ends: str
    """Source and destination, as in a path."""
    kind: str
    bytes: int
    """The power of two nearest to the bytes moved: layouts take whole numbers of their units."""
    fastest: tuple[Fastest, ...]

    @property
    def ranges(self) -> list[str]:
        """``4 KiB to 128 KiB sm``: of each stretch of pieces that have the same fastest method."""
        parts = []
        for (method, clear), group in groupby(self.fastest, key=lambda f: (_method(f), f.clear)):
            runs = [each.run for each in group]
            at = format_bytes(runs[0])
            if len(runs) > 1:
                at += f" to {format_bytes(runs[-1])}"
            parts.append(f"{at} {method}" if clear else f"{at} {method} (about even)")
        return parts

    def __str__(self) -> str:
        pieces = "rows" if self.kind == "box" else "pieces"
        what = f"{format_bytes(self.bytes)} in {pieces}"
        return f"fastest from call to completion, {what} of: {'; '.join(self.ranges)}"


def _method(fastest: Fastest) -> str:
    if fastest.clear:
        return fastest.method
    return " or ".join(sorted((fastest.method, fastest.next_method)))


def layout_crossovers(found: Iterable[tuple[Transfer, Estimate]]) -> list[LayoutCrossover]:
    """Compares the methods that move the same layout between two memories, if there are at least
    two. Contiguous transfers take no part."""
    by_size: dict[tuple[str, str, int], dict[str, list[tuple[Layout, str, Estimate]]]] = {}
    for transfer, estimate in found:
        layout = transfer.layout
        if layout is None:
            continue
        method = transfer.path.executor + format_settings(transfer.parameters)
        ends = f"{transfer.path.source} -> {transfer.path.destination}"
        same = by_size.setdefault((ends, layout.kind, _nominal(transfer.bytes)), {})
        same.setdefault(f"{layout} {transfer.bytes}", []).append((layout, method, estimate))
    crossovers = []
    for (ends, kind, size), layouts in sorted(by_size.items()):
        fastest = [_fastest(methods) for methods in layouts.values() if len(methods) > 1]
        if fastest:
            in_order = sorted(fastest, key=lambda each: each.run)
            crossovers.append(LayoutCrossover(ends, kind, size, tuple(in_order)))
    return crossovers


def _fastest(methods: list[tuple[Layout, str, Estimate]]) -> Fastest:
    (layout, method, best), *others = sorted(methods, key=lambda each: each[2].seen_median)
    interval = best.seen_interval
    clear = interval is not None and all(
        other.seen_interval is not None and interval.high < other.seen_interval.low
        for _, _, other in others
    )
    margin = others[0][2].seen_median / best.seen_median - 1
    return Fastest(layout.run, method, others[0][1], margin, clear)


def _nominal(size: int) -> int:
    return int(2 ** round(math.log2(size))) if size else 0
