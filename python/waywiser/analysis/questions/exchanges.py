"""Exchanges among ranks: which strategy is fastest at which size.

Each strategy counts with the better of its exchanges, by one call for all messages or by messages
between pairs: which of them a library makes better is no property of the strategy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.curves import (
    MATTERS,
    Curve,
    Exhibit,
    Finding,
    Mark,
    Point,
    Sheet,
    SheetCell,
    Subject,
    size_ranges,
    table,
)
from waywiser.curves.exchanges import BETWEEN, is_exchange, strategy_of, what_is_exchanged
from waywiser.stats.method_choice import TOLERANCE
from waywiser.words import Value, format_bytes, format_time, grouped
from waywiser.words.titles import listed

MOST_SIZES = 8
"""Columns of the table."""

MOST_SAID = 3
"""Exchanges that findings name; all have a table."""


class ComparedExchange(Value, frozen=True):
    """One exchange that several strategies made."""

    text: str
    """``alltoallv[counts=skewed] of device among rank:0-3``."""
    best: dict[str, dict[int, Point]]
    """The better exchange of each strategy, by size."""

    @property
    def sizes(self) -> list[int]:
        """The sizes at which at least two strategies were measured."""
        found = {size for points in self.best.values() for size in points}
        return sorted(s for s in found if sum(s in points for points in self.best.values()) > 1)

    def fastest(self, size: int) -> str:
        """The strategy of the least time at a size."""
        times = {name: own[size].seconds for name, own in self.best.items() if size in own}
        return min(times, key=lambda name: times[name])

    def margin(self, size: int) -> float:
        """Returns by which fraction the second fastest takes longer."""
        first, second, *_ = sorted(p[size].seconds for p in self.best.values() if size in p)
        return second / first - 1


def compared_exchanges(curves: Iterable[Curve]) -> list[ComparedExchange]:
    """Returns the exchanges of a profile with two strategies or more: those with most strategies
    first, and then those with the shortest text."""
    curves_of = grouped((_exchange(curve), curve) for curve in curves if _is_measured(curve))
    found = (ComparedExchange(text, _better(own)) for text, own in curves_of.items())
    known = (each for each in found if each.sizes)
    return sorted(known, key=lambda each: (-len(each.best), len(each.text)))


def _is_measured(curve: Curve) -> bool:
    of_several = curve.workload.kind == "collective" and bool(curve.measured)
    return of_several and is_exchange(curve.workload.transfers[0])


def _exchange(curve: Curve) -> str:
    (transfer,) = curve.workload.transfers
    memory = transfer.path.source
    kinds = " to ".join(dict.fromkeys(end.kind for end in transfer.path.ends))
    return f"{what_is_exchanged(transfer)} of {kinds} memory among {memory.place}"


def _better(curves: Sequence[Curve]) -> dict[str, dict[int, Point]]:
    by_strategy: dict[str, dict[int, Point]] = {}
    for curve in curves:
        best = by_strategy.setdefault(strategy_of(curve.workload.transfers[0]), {})
        for point in curve.measured:
            if point.bytes not in best or point.seconds < best[point.bytes].seconds:
                best[point.bytes] = point
    return by_strategy


def exchange_finding(found: ComparedExchange) -> Finding:
    """Returns a finding that names the fastest strategy by size."""
    sizes = found.sizes
    won = grouped((found.fastest(size), size) for size in sizes)
    clear = [size for size in sizes if found.margin(size) >= MATTERS]
    widest = max(sizes, key=found.margin)
    head = f"the fastest strategy of {found.text}"
    statement, detail = listed(
        head, [f"{n} at {size_ranges(own, sizes)}" for n, own in won.items()]
    )
    both = sorted((p[widest] for p in found.best.values() if widest in p), key=lambda p: p.seconds)
    return Finding(
        id="fastest-strategy",
        severity="info",
        statement=statement,
        detail=detail,
        effect=found.margin(widest),
        exhibits=tuple(Exhibit(p.text, "time", p.seconds, "s", p.measured.interval)
                       for p in both[:2]),
        remedy="choose the strategy by size" if len(won) > 1 and clear else "",
    )  # fmt: skip


def exchange_tables(found: Sequence[ComparedExchange]) -> Iterator[Sheet]:
    """A table of each exchange: the time of each strategy by size."""
    for each in found:
        sizes = _few(each.sizes)
        yield from table(
            f"Strategies of {each.text}",
            ("strategy", *map(format_bytes, sizes)),
            (_row(each, name, sizes) for name in each.best),
            "The time of the slowest rank, by the better of one call for all messages and messages "
            f"between pairs (pairs). The fastest strategies, within {TOLERANCE:.0%}, are marked.",
        )


def _few(sizes: list[int]) -> list[int]:
    step = -(-len(sizes) // MOST_SIZES)
    return sizes[::-1][::step][::-1]


def _row(found: ComparedExchange, name: str, sizes: Sequence[int]) -> tuple[SheetCell, ...]:
    points = found.best[name]
    first = next(iter(points.values()))
    return (
        SheetCell(name, series=first.curve),
        *(_cell(found, points.get(size)) for size in sizes),
    )


def _cell(found: ComparedExchange, point: Point | None) -> SheetCell:
    if point is None:
        return SheetCell("—")
    fastest = found.best[found.fastest(point.bytes)][point.bytes].seconds
    pairs = " (pairs)" if BETWEEN in point.workload.transfers[0].parameters else ""
    mark: Mark = "yes" if point.seconds <= fastest * (1 + TOLERANCE) else ""
    return SheetCell(f"{format_time(point.seconds)}{pairs}", mark, point.text)


def of_exchanges(subject: Subject) -> tuple[list[Finding], list[Sheet]]:
    """What the profile's exchanges say."""
    found = compared_exchanges(subject.curves)
    said = [exchange_finding(each) for each in found[:MOST_SAID]]
    return said, list(exchange_tables(found))
