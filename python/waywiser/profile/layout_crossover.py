"""The fastest method for bytes that lie apart, and the crossovers of methods as pieces grow.

The fastest has the smallest median time from call to completion, which all methods have in common;
it is *clear* if its interval lies below those of all the others. A result of one size holds for
that size: crossovers move with it. Between two measured sizes of pieces that are far apart the
times of one more are interpolated, and are marked so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from waywiser.profile.estimate import Estimate
from waywiser.stats import FastestRange
from waywiser.words import (
    Layout,
    Transfer,
    Value,
    format_bytes,
    format_settings,
    nearest_power_of_two,
    piece_between,
)


class LayoutCrossover(Value, frozen=True):
    """The fastest methods between two memories, of one kind of layout and size, by growing runs."""

    ends: str
    """Source and destination, as in a path."""
    kind: str
    bytes: int
    """The power of two nearest to the bytes moved: layouts take whole numbers of their units."""
    fastest: tuple[FastestRange, ...]
    """By the bytes that lie together, each of one number of them."""
    scattered: str = ""
    """The side of a list whose other side is contiguous: ``source``, say; empty for none."""

    @property
    def ranges(self) -> list[str]:
        """``4 KiB to 128 KiB sm``: of each stretch of pieces that have the same fastest method."""
        parts = []
        for (method, clear), group in groupby(self.fastest, key=lambda f: (_method(f), f.is_sure)):
            found = list(group)
            at = format_bytes(found[0].low)
            if len(found) > 1:
                at += f" to {format_bytes(found[-1].high)}"
            ends = [found[0], found[-1]]
            if all(each.interpolated for each in ends):
                notes = ["interpolated"]
            else:
                guessed = (each for each in ends if each.interpolated)
                notes = [f"{format_bytes(each.low)} interpolated" for each in guessed]
                notes = notes if clear else ["about even", *notes]
            parts.append(f"{at} {method}" + (f" ({', '.join(notes)})" if notes else ""))
        return parts

    def __str__(self) -> str:
        pieces = "rows" if self.kind == "box" else "pieces"
        side = f", scattered in the {self.scattered} alone," if self.scattered else ""
        what = f"{format_bytes(self.bytes)} in {pieces}{side}"
        return f"fastest from call to completion, {what} of: {'; '.join(self.ranges)}"


def _method(fastest: FastestRange) -> str:
    return " or ".join(sorted((fastest.fastest, *fastest.perhaps)))


class _Timed(NamedTuple):
    """One method that moves a layout."""

    layout: Layout
    bytes: int
    method: str
    estimate: Estimate

    @property
    def per_byte(self) -> float:
        return self.estimate.seen_median / self.bytes


def layout_crossovers(found: Iterable[tuple[Transfer, Estimate]]) -> list[LayoutCrossover]:
    """Compares the methods that move the same layout between two memories, if there are at least
    two. Contiguous transfers take no part."""
    by_size: dict[tuple[str, str, str, int], dict[str, list[_Timed]]] = {}
    for transfer, estimate in found:
        layout = transfer.layout
        if layout is None:
            continue
        method = transfer.path.executor + format_settings(transfer.parameters)
        ends = f"{transfer.path.source} -> {transfer.path.destination}"
        key = ends, layout.kind, layout.scattered, nearest_power_of_two(transfer.bytes)
        same = by_size.setdefault(key, {})
        timed = _Timed(layout, transfer.bytes, method, estimate)
        same.setdefault(f"{layout} {transfer.bytes}", []).append(timed)
    crossovers = []
    for (ends, kind, scattered, size), layouts in sorted(by_size.items()):
        compared = sorted(
            (methods for methods in layouts.values() if len(methods) > 1),
            key=lambda methods: methods[0].layout.run,
        )
        if compared:
            fastest = [_fastest(methods) for methods in compared]
            if kind == "list":
                pairs = pairwise(zip(compared, fastest, strict=True))
                fastest += [each for below, above in pairs for each in _between(below, above)]
                fastest.sort(key=lambda each: each.low)
            crossovers.append(LayoutCrossover(ends, kind, size, tuple(fastest), scattered))
    return crossovers


def _fastest(methods: Sequence[_Timed]) -> FastestRange:
    best, *others = sorted(methods, key=lambda each: each.estimate.seen_median)
    clear = is_first_clear([best.estimate, *(other.estimate for other in others)])
    margin = others[0].estimate.seen_median / best.estimate.seen_median - 1
    return _at(best.layout.run, (best.method, others[0].method), margin, is_sure=clear)


def _at(
    run: int, methods: Sequence[str], margin: float, *, is_sure: bool, interpolated: bool = False
) -> FastestRange:
    best, second = methods
    return FastestRange(
        low=run,
        high=run,
        fastest=best,
        perhaps=() if is_sure else (second,),
        is_sure=is_sure,
        unknown=(),
        second=second,
        least=margin,
        most=margin,
        interpolated=interpolated,
    )


def is_first_clear(estimates: Sequence[Estimate]) -> bool:
    """Whether the interval of the first, from call to completion, lies below all others."""
    first, *others = (each.seen_interval for each in estimates)
    return first is not None and all(each and first.high < each.low for each in others)


_Compared = tuple[Sequence[_Timed], FastestRange]
"""All methods of one size of pieces, and the fastest."""


def _between(below: _Compared, above: _Compared) -> Iterator[FastestRange]:
    """The fastest method for pieces between those of two sizes (`piece_between`): the time of each
    method on a line in the logarithms of both."""
    low, high = below[1].low, above[1].low
    run = piece_between(low, high)
    if run is None:
        return
    share = math.log(run / low) / math.log(high / low)
    smaller, larger = ({m.method: m.per_byte for m in each} for each, _ in (below, above))
    seconds = {
        method: smaller[method] ** (1 - share) * larger[method] ** share
        for method in smaller
        if method in larger
    }
    if len(seconds) > 1:
        best, second = sorted(seconds, key=lambda method: seconds[method])[:2]
        clear = all(each.is_sure and each.fastest == best for _, each in (below, above))
        margin = seconds[second] / seconds[best] - 1
        yield _at(run, (best, second), margin, is_sure=clear, interpolated=True)
