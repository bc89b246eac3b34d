"""A part holds what was measured until it is decided, and then what was decided."""

from __future__ import annotations

import msgspec
import nodes

from waywiser.analysis.comparison.part_change import PartChange
from waywiser.analysis.comparison.path_parts import parts_of, path_changes
from waywiser.curves.curve import Point
from waywiser.profile.block import BlockSummary

SIZES = tuple(n * 2**20 for n in (32, 64, 128))
FIGURES = {
    *("series", "bytes", "rated_bytes", "seconds_before", "seconds_now", "processes", "surveys"),
    *("decision", "verdict", "regime", "other_size"),
}


def measured(*factors: float) -> dict[str, list[tuple[int, Point]]]:
    """Each size in four processes, so many times as slow as a link lets expect."""
    found = {}
    for factor, bytes_ in zip(factors, SIZES, strict=True):
        what = nodes.workload(nodes.h2d(0), size=bytes_)
        medians = [bytes_ / nodes.LINK * factor * run for run in (0.999, 1.0, 1.0, 1.001)]
        blocks = [BlockSummary(n, median) for n, median in enumerate(medians)]
        found[what.identity] = [(0, Point.of(what, blocks))]
    return found


def both(before: tuple[float, ...], now: tuple[float, ...]) -> tuple[PartChange, PartChange]:
    """The part before and after it is decided."""
    (part,) = parts_of(measured(*before), measured(*now))
    (path,) = path_changes([part], {}, {})
    return part, path.parts[0]


def test_the_typical_size_is_the_median_over_sizes() -> None:
    part, decided = both((1.0, 1.0, 1.0), (1.0, 1.1, 1.05))
    assert part.typical.bytes == decided.typical.bytes == SIZES[2]
    assert decided.decision == decided.typical.decision


def test_of_sizes_with_one_decision_the_smallest_shows_it() -> None:
    _, decided = both((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    assert len({size.decision for size in decided.sizes}) == 1
    assert decided.typical.bytes == SIZES[0]


def test_what_was_decided_has_no_measurements() -> None:
    part, decided = both((1.0, 1.0, 1.0), (1.0, 1.1, 1.05))
    assert part.curve and all(size.sides for size in part.sizes)
    document = msgspec.to_builtins(decided)
    assert not {"curve", "threshold"} & set(document)
    assert all(set(size) == FIGURES for size in document["sizes"])
