"""Which method is best where: by memory and executor over size, and over the size of rows.

Pairs of methods differ in one thing, pageable or pinned memory say; each states the sizes at which
one wins and by how much (`waywiser.analysis.questions.method_pairs`). Boxes are compared over the
size of their rows (`waywiser.profile.layout_crossover`). Which method to use for a copy or a list
is the answer of a policy (`waywiser.analysis.policy`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from waywiser.analysis.questions.exchanges import of_exchanges
from waywiser.analysis.questions.method_pairs import (
    MethodPair,
    is_explicit,
    margins_text,
    method_pair_table,
    method_pairs,
    sizes_text,
    timed,
)
from waywiser.curves import (
    MATTERS,
    MOST_FINDINGS,
    Answer,
    Curve,
    Exhibit,
    Finding,
    Point,
    Sheet,
    SheetCell,
    Subject,
    executor_text,
    method_text,
    place_groups,
    table,
)
from waywiser.curves.texts import FROM_CALL
from waywiser.machine import Traits
from waywiser.profile import LayoutCrossover
from waywiser.stats import FastestRange
from waywiser.stats.method_choice import TOLERANCE
from waywiser.words import Place, count, format_bytes, grouped

MOST_OF_BOXES = 2
LEAST_DECIDED = 2
"""Sizes at which one method is faster: a single one is in the table, and no finding."""
MOST_PLACES = 3
"""Named in one finding."""
LEAST_IMPORTANT = 6
"""The least important comparisons."""

_NUMBER = re.compile(r"\d+")


def answer(subject: Subject) -> Answer:
    found = place_groups(subject)
    traits = subject.machine.traits
    fought = [each for group in found for each in method_pairs(group, traits)]
    fought.sort(key=lambda each: (_importance(each, traits), not each.crosses, -each.most))
    boxes = [each for each in subject.overview.layout_crossovers if each.kind == "box"]
    of_strategies, strategies = of_exchanges(subject)
    is_any = bool(fought or boxes or strategies)
    return Answer(
        question="crossovers",
        title="Crossovers: which method is fastest at which size?",
        summary=_summary(len(subject.curves), fought, boxes, len(strategies)),
        findings=(
            *of_strategies,
            *(_finding(subject, each) for each in _together(fought)[:MOST_FINDINGS]),
            *(_of_box(subject, each) for each in _worth(boxes)),
        ),
        tables=(*strategies, *method_pair_table(fought), *box_table(boxes)),
        unanswered=()
        if is_any
        else ("which method is fastest: there are no two methods to compare",),
        answered=is_any,
    )


def _importance(found: MethodPair, traits: Traits) -> int:
    """Duels that people ask for come first: memory of the host against memory that feeds GPUs,
    executors against the alternative that they declare (of managed memory first), managed memory
    against explicit copies, peer access on against off. All others come after them, those that
    cross first."""
    one, other = found.first.first_transfer, found.second.first_transfer
    if not found.gpus:
        return LEAST_IMPORTANT
    names = frozenset(found.names)
    known = [traits.executor(each.path.executor) for each in (one, other)]
    if one.path.executor != other.path.executor:
        if is_explicit(one, other, traits):
            return 3 if one.path.destination.place.kind == "gpu" else 4
        executors = {executor_text(one), executor_text(other)}
        if any(each.alternative and executors == {each.name, each.alternative.executor}
               for each in known):  # fmt: skip
            return 1 if any(traits.memory(end.kind).migrates for end in one.path.ends) else 2
        return LEAST_IMPORTANT
    if names == {traits.reference_memory(by, "numa") for by in ("host", "gpu")}:
        return 0
    bare, off = sorted((one, other), key=lambda each: len(each.parameters))
    if known[0].reference == "gpu" and not bare.parameters and off.parameters == {"peer": "off"}:
        return 5
    return LEAST_IMPORTANT


def _together(fought: Sequence[MethodPair]) -> list[list[MethodPair]]:
    """Duels of the same two with the same winners where a program gains by the choice: one for
    each two places, by the memory that comes first."""
    found: dict[tuple[frozenset[str], tuple[str, ...]], dict[str, MethodPair]] = {}
    for each in (pair.practical for pair in fought):
        won = sum(len(each.within(stretch)) for stretch in each.decided)
        if won >= LEAST_DECIDED:
            places = found.setdefault((frozenset(each.names), each.winners), {})
            former = places.get(each.pair.text)
            if former is None or each.first.text < former.first.text:
                places[each.pair.text] = each
    return list(_news(list(by_place.values()) for by_place in found.values()))


def _news(found: Iterable[list[MethodPair]]) -> Iterator[list[MethodPair]]:
    """Drops pairs that say nothing new: others that beat the same method at the same places, and
    other numbers of the same setting."""
    known: set[tuple[str, ...]] = set()
    for alike in found:
        first = alike[0]
        names = [first.loser(first.decided[0])]
        if first.crosses:
            names = sorted(_NUMBER.sub("#", name) for name in first.names)
        keys = {(*names, each.pair.text) for each in alike}
        if not keys <= known:
            yield alike
        known |= keys


def _finding(subject: Subject, alike: Sequence[MethodPair]) -> Finding:
    first = alike[0]
    shown = alike[:MOST_PLACES]
    head = f"which of {first.names[0]} and {first.names[1]} is faster depends on the size"
    if not first.crosses:
        head = f"{first.winners[0]} is faster than {first.loser(first.decided[0])}"
    text = "; ".join(_where(each) for each in shown)
    if len(alike) > len(shown):
        text += f"; and {len(alike) - len(shown)} further pairs of places"
    return Finding(
        id="crossover" if first.crosses else "faster",
        severity="info",
        statement=f"{head}: {text}",
        effect=max(each.most for each in alike),
        devices=subject.gpus(place for each in alike for place in each.gpus),
        exhibits=tuple(chain.from_iterable(map(_exhibits, shown))),
        remedy=_remedy(first),
    )


def _where(found: MethodPair) -> str:
    place = f"{found.pair.text} ({found.common})" if found.common else found.pair.text
    won = [
        f"{found.winner(s)} {sizes_text(s.low, s.high)} ({_times(s)})"
        if found.crosses
        else f"{_times(s)} {sizes_text(s.low, s.high)}"
        for s in found.decided
    ]
    text = f"{place} {', '.join(won)}"
    if found.of:
        some, total = found.like + 1, found.of + 1
        all_of_them = "both" if total == 2 else f"all {total}"
        text += f"; the same for {all_of_them if some == total else f'{some} of {total}'} "
        text += "equivalent pairs of places"
    return text


def _times(stretch: FastestRange) -> str:
    """``1.1 to 5.4 times as fast``."""
    low, high = _ratio(1 + max(stretch.least, 0)), _ratio(1 + stretch.most)
    if low == high:
        return f"{high} times as fast"
    return f"{f'up to {high}' if low == '1.00' else f'{low} to {high}'} times as fast"


def _ratio(value: float) -> str:
    """``1.04``, ``1.3``, ``38``: never one that says nothing."""
    return f"{value:.2f}" if value < 1.1 else f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def _remedy(found: MethodPair) -> str:
    """What to use, of all that was measured between the two places at these sizes."""
    better = [_better(found, each) for each in found.decided]
    if all(better):
        names = ", ".join(dict.fromkeys(better))
        return f"use a third method, which is faster than both at these sizes: {names}"
    if not found.crosses and not any(better):
        beaten = grouped(each for stretch in found.decided for each in _ahead(found, stretch))
        but = [f"{name} at {', '.join(map(format_bytes, sizes))}" for name, sizes in beaten.items()]
        return f"use {found.winners[0]} if the program can choose{', but '.join(['', *but])}"
    choices = []
    named = [name or found.winner(each) for name, each in zip(better, found.decided, strict=True)]
    for name, group in groupby(zip(named, found.decided, strict=True), key=lambda one: one[0]):
        stretches = [each for _, each in group]
        choices.append(f"{name} {sizes_text(stretches[0].low, stretches[-1].high)}")
    return f"choose by size: {', '.join(choices)}"


def _better(found: MethodPair, stretch: FastestRange) -> str:
    """The method that is faster than the winner at most sizes of a stretch, the most frequent one;
    empty if there is none."""
    ahead = [name for name, _ in _ahead(found, stretch)]
    winner = found.first if stretch.fastest == "first" else found.second
    inside = [point for point in winner.measured if stretch.low <= point.bytes <= stretch.high]
    if 2 * len(ahead) <= len(inside):
        return ""
    return max(dict.fromkeys(ahead), key=ahead.count)


def _ahead(found: MethodPair, stretch: FastestRange) -> Iterator[tuple[str, int]]:
    """The fastest method at each size of a stretch where the winner is not the fastest, with the
    size. Only what moves bytes between the same places can replace it. A method that was not
    measured at a size takes no longer than at its next larger one."""
    winner = found.first if stretch.fastest == "first" else found.second
    inside = [point for point in winner.measured if stretch.low <= point.bytes <= stretch.high]
    for point in inside:
        faster = [
            (theirs.seconds, method_text(other.shown_transfer))
            for other in found.pair.curves
            if other is not winner and (at := _at_most(other, point.bytes)) is not None
            for theirs, ours in [timed(at, point)]
            if theirs.seconds * (1 + TOLERANCE) < ours.seconds
        ]
        if faster:
            yield min(faster, key=lambda each: each[0])[1], point.bytes


def _at_most(curve: Curve, size: int) -> Point | None:
    """The point at a size, or at the next larger one that was measured."""
    return next((point for point in curve.measured if point.bytes >= size), None)


def _exhibits(found: MethodPair) -> Iterator[Exhibit]:
    """Both methods where the margin is largest."""
    widest = max(found.decided, key=lambda stretch: stretch.most)

    def margin(points: tuple[Point, Point]) -> float:
        a, b = timed(*points)
        return max(a.seconds / b.seconds, b.seconds / a.seconds)

    points = max(found.within(widest), key=margin)
    for point, seen in zip(points, timed(*points), strict=True):
        yield Exhibit(point.text, "time", seen.seconds, "s", seen.interval)


def _worth(boxes: Sequence[LayoutCrossover]) -> list[LayoutCrossover]:
    """The boxes of the largest amounts of bytes whose methods differ most: one for each two
    memories."""
    by_ends = grouped((each.ends, each) for each in boxes)
    largest = (max(own, key=lambda each: each.bytes) for own in by_ends.values())
    clear = [each for each in largest if _margin(each) >= MATTERS]
    return sorted(clear, key=_margin, reverse=True)[:MOST_OF_BOXES]


def _margin(found: LayoutCrossover) -> float:
    known = (each for each in found.fastest if each.is_sure and not each.interpolated)
    return max((each.most for each in known), default=0.0)


def _of_box(subject: Subject, found: LayoutCrossover) -> Finding:
    methods = list(dict.fromkeys(each.fastest for each in found.fastest if each.is_sure))
    changes = len(methods) > 1
    return Finding(
        id="layout-crossover" if changes else "layout-faster",
        severity="info",
        statement=f"the fastest method for boxes {found.ends} of {format_bytes(found.bytes)}"
        f"{' depends on their rows' if changes else ''}: "
        f"{', '.join(found.ranges)}; up to {_ratio(1 + _margin(found))} times as fast as the next",
        effect=_margin(found),
        devices=subject.gpus(
            Place.parse(end.partition("@")[2]) for end in found.ends.split(" -> ")
        ),
        remedy="choose by the size of rows" if changes else f"move such boxes by {methods[0]}",
    )


def box_table(boxes: Sequence[LayoutCrossover]) -> tuple[Sheet, ...]:
    """The fastest method by size of rows."""
    runs = sorted({each.low for found in boxes for each in found.fastest})
    return table(
        "Boxes: the fastest method by size of rows",
        ("memories", "bytes", *map(format_bytes, runs)),
        (
            (SheetCell(each.ends), SheetCell(format_bytes(each.bytes)), *_cells_of_box(each, runs))
            for each in boxes
        ),
        "Columns: the size of the rows. "
        f"{FROM_CALL} In brackets: by how much longer the second fastest takes; ? if the "
        "intervals of the two overlap. ≈: not measured, but interpolated between the next smaller "
        "and the next larger rows; ? unless both have the same method without ?.",
    )


def _cells_of_box(found: LayoutCrossover, runs: Sequence[int]) -> Iterator[SheetCell]:
    by_run = {each.low: each for each in found.fastest}
    for run in runs:
        if best := by_run.get(run):
            about = "≈ " if best.interpolated else ""
            margin = margins_text(best.least, best.most)
            yield SheetCell(f"{about}{best.fastest} ({margin})", "" if best.is_sure else "unclear")
        else:
            yield SheetCell("—")


def _summary(
    curves: int, fought: Sequence[MethodPair], boxes: Sequence[LayoutCrossover], exchanges: int
) -> str:
    if not fought and not boxes and not exchanges:
        return (
            f"No two methods between the same places differ in exactly one parameter, of "
            f"{count(curves, 'curve')}."
        )
    crossing = sum(each.crosses for each in fought)
    even = sum(not each.decided for each in fought)
    winners = len(fought) - crossing - even
    parts = []
    if fought:
        parts.append(
            f"Of {count(len(fought), 'pair')} of methods that differ in one parameter, in "
            f"{crossing} the faster one depends on the size, {winners} have one winner and {even} "
            "are even"
        )
    if exchanges:
        parts.append(f"{count(exchanges, 'exchange')} by several strategies")
    if boxes:
        parts.append(f"{count(len(boxes), 'comparison')} over the size of rows")
    return f"{'; '.join(parts)}."
