"""Curves that a machine's symmetry makes equal, each against the others of its class.

For every block and size the centre is the median over the twins, so that what a block does to all
of them (a busy host, a clock) falls out; where sides of memory are known, over those whose memory
was as near. A twin's deviation is the median over sizes of its distance from the others' centre,
one per block. Scatter is that of deviations from block to block, pooled over the class and others
that the same executor moves between the same sorts of memory: two blocks of eight twins tell it
with seven degrees of freedom, those of one twin with one.

A twin differs where all of these hold:

- the 95 % interval of its deviation lies wholly beyond the margin, and so does every block, of six
  and more all but a sixth: one block in 27 of a real copy engine is off by more than the margin;
- it is significant with p <= 1 % among all twins of all classes of the machine (Holm, 1979).

Of single blocks the scatter is not known. There a twin differs only where its distance from the
centre is `FAR` times the range of all the others, of which there must be three; of fewer, where it
is more than `BY_FAR`, by how noisy such paths are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from waywiser.analysis.kinds import Kind
from waywiser.analysis.related import ALPHA, BY_FAR, LEAST_SCATTER
from waywiser.analysis.subject import Curve, Point
from waywiser.stats.between import Between, middling, variance_of_median
from waywiser.stats.equivalence import MANY, Verdict, judged
from waywiser.stats.multiplicity import holm
from waywiser.stats.nearness import Nearness
from waywiser.stats.order import Interval, median, ratios_of
from waywiser.words import Value

FAR = 3.0
"""With seven others, whose range is 2.7 deviations of a normal scatter, about eight of them."""

CERTAIN = 3.0
"""Deviations of a twin's median within which it may lie at the centre."""

BLOCKS_PER_ODD_ONE = 6
"""Of so many blocks one may say otherwise."""

UNEVEN = 1 / 3
"""Where more of a class differ from its centre, it has none: it falls apart."""

Where = Mapping[str, Mapping[int, Nearness]]
"""Of `Overview.nearness`: by a series' identity and block."""


class Class(NamedTuple):
    """Curves that ought to be equal, with the sizes of each that are to be compared."""

    kind: Kind
    members: dict[str, list[Point]]
    """By the curve's text."""


class Twin(Value, frozen=True):
    """One curve of a class, against the others."""

    curve: str
    kind: Kind
    deviations: tuple[float, ...]
    """Per block, in logarithms of time: above 0 is slower than the others."""
    sizes: tuple[int, ...]
    point: Point
    """At the largest of them."""
    others: Point
    """The twin in the middle of the others, at that size."""
    interval: Interval | None
    """95 %, of the ratio; None for a single block."""
    p_value: float | None
    verdict: Verdict
    twins: int
    """Of the class, itself included."""

    @property
    def effect(self) -> float:
        """By how much it takes longer than the others."""
        return math.exp(median(self.deviations)) - 1.0

    @property
    def effect_interval(self) -> Interval | None:
        if self.interval is None:
            return None
        return Interval(self.interval.low - 1.0, self.interval.high - 1.0)


def judge(classes: Iterable[Class], where: Where, margin: float) -> list[list[Twin]]:
    """The twins of each class of two and more, judged together."""
    measured = [own for each in classes if (own := _measured(each, where, margin))]
    families: dict[Hashable, list[_Measured]] = {}
    for own in measured:
        families.setdefault(_family(own.of.kind), []).append(own)
    scatter = {
        family: _pooled([own.deviations for own in members]) for family, members in families.items()
    }
    found = [
        [_twin(own, text, scatter[_family(own.of.kind)], margin) for text in own.deviations]
        for own in measured
    ]
    tested = [p for twins in found for twin in twins if (p := twin.p_value) is not None]
    adjusted = iter(holm(tested))
    return [[_corrected(twin, adjusted) for twin in twins] for twins in found]


class _Measured(NamedTuple):
    """A class with the deviations of its twins, by curve and block."""

    of: Class
    deviations: dict[str, dict[int, float]]
    good: set[str]
    """The twins whose centre the others are measured by."""


def _family(kind: Kind) -> Hashable:
    """Kinds whose blocks scatter alike: there and back, and from page-locked memory of any sort."""
    return kind.group, kind.executor, kind.scatters_as, kind.link


def _corrected(twin: Twin, adjusted: Iterator[float]) -> Twin:
    if twin.p_value is None:
        return twin
    p_value = next(adjusted)
    unsure = twin.verdict in ("more", "less") and p_value > ALPHA
    verdict: Verdict = "unclear" if unsure else twin.verdict
    return msgspec.structs.replace(twin, p_value=p_value, verdict=verdict)


def _measured(each: Class, where: Where, margin: float) -> _Measured | None:
    values = _values(each, where)
    plain = {text: _deviations(values, text, set(values)) for text in values}
    known = {text: found for text, found in plain.items() if found}
    if len(known) < 2:
        return None
    good = _good(known, margin)
    final = {text: _deviations(values, text, good - {text}) or known[text] for text in known}
    return _Measured(each, final, good)


Moment = tuple[int, int, str]
"""Size, block, and where its memory was."""


def _values(each: Class, where: Where) -> dict[str, dict[Moment, float]]:
    """By curve: the logarithm of the median of each block of each size."""
    found: dict[str, dict[Moment, float]] = {}
    for text, points in each.members.items():
        own = found.setdefault(text, {})
        for point in points:
            sides = where.get(point.line.identity, {})
            for block in point.estimate.blocks:
                if block.median > 0:
                    key = (point.bytes, block.block, sides.get(block.block, ""))
                    own[key] = math.log(block.median)
    return found


def _deviations(
    values: Mapping[str, Mapping[Moment, float]], text: str, others: set[str]
) -> dict[int, float]:
    """By block: the median over sizes of the distance from the centre of ``others``."""
    apart: dict[int, list[float]] = {}
    for key, value in values[text].items():
        centre = [values[other][key] for other in others if key in values[other]]
        if len(centre) > (text in others):
            apart.setdefault(key[1], []).append(value - median(centre))
    return {block: median(found) for block, found in apart.items()}


def _good(known: dict[str, dict[int, float]], margin: float) -> set[str]:
    """The twins whose centre the others are measured by: those near the centre of all, or, where
    that lies between two groups further apart than blocks scatter, the faster group."""
    scatter = _pooled([known])
    middle = {text: median(list(found.values())) for text, found in known.items()}
    if scatter is None:
        return set(middle)
    blocks = min(len(found) for found in known.values())
    noise = scatter.deviation * math.sqrt(variance_of_median(blocks))
    limit = max(math.log1p(margin), CERTAIN * noise)
    near = {text for text, value in middle.items() if abs(value) <= limit}
    if len(near) >= (1 - UNEVEN) * len(middle):
        return near
    fastest = min(middle.values())
    return {text for text, value in middle.items() if value - fastest <= limit}


def _pooled(classes: Sequence[dict[str, dict[int, float]]]) -> Between | None:
    """The scatter of deviations from block to block: of most of them where there are many blocks,
    else of all. Twins are centred together, so that the last of a class tells nothing of its own.
    """
    of_most = _of_most(
        [list(found.values()) for deviations in classes for found in deviations.values()]
    )
    if of_most is not None:
        return of_most
    squares, count, freedom = 0.0, 0, 0
    for deviations in classes:
        own = 0
        for found in deviations.values():
            values = list(found.values())
            mean = sum(values) / len(values)
            squares += sum((value - mean) ** 2 for value in values)
            own += len(values) - 1
        count += own
        freedom += own - math.ceil(own / len(deviations))
    if freedom < 1:
        return None
    return Between(max(math.sqrt(squares / count), LEAST_SCATTER), freedom)


def _of_most(blocks: Sequence[Sequence[float]]) -> Between | None:
    """None where some twin has fewer than `MANY` blocks."""
    return middling(blocks, LEAST_SCATTER) if min(map(len, blocks)) >= MANY else None


def _twin(each: _Measured, text: str, scatter: Between | None, margin: float) -> Twin:
    own = tuple(each.deviations[text].values())
    interval, p_value = None, None
    points = each.of.members[text]
    summaries = any(point.estimate.summary for point in points)
    if scatter is not None and len(own) > 1 and not summaries:
        variance = variance_of_median(len(own))
        logs = scatter.around(median(own), variance)
        interval = ratios_of(logs)
        p_value = scatter.p_value(median(own), variance)
        verdict = judged(interval, margin)
        if verdict in ("more", "less") and not _blocks_beyond(own, margin):
            verdict = "unclear"
    else:
        verdict = _alone(each, text, margin)
    return Twin(
        curve=text,
        kind=each.of.kind,
        deviations=own,
        sizes=tuple(point.bytes for point in points),
        point=points[-1],
        others=_middle_of_others(each.of, text, points[-1].bytes),
        interval=interval,
        p_value=p_value,
        verdict=verdict,
        twins=len(each.deviations),
    )


def _blocks_beyond(deviations: Sequence[float], margin: float) -> bool:
    """Whether all blocks lie beyond the margin on one side, but for those that may be off."""
    limit, side = math.log1p(margin), math.copysign(1.0, median(deviations))
    within = sum(side * deviation <= limit for deviation in deviations)
    return within <= len(deviations) // BLOCKS_PER_ODD_ONE


def _alone(each: _Measured, text: str, margin: float) -> Verdict:
    """Of single blocks."""
    limit = math.log1p(margin)
    difference = median(list(each.deviations[text].values()))
    others = [median(list(each.deviations[good].values())) for good in each.good - {text}]
    spread = max(others) - min(others) if others else 0.0
    least = max(limit, FAR * spread) if len(others) >= 3 else math.log1p(_by_far(each.of.kind))
    if abs(difference) > least:
        return "more" if difference > 0 else "less"
    return "equal" if others and max(spread, abs(difference)) <= limit else "unclear"


def _by_far(kind: Kind) -> float:
    return BY_FAR["medium"] if kind.is_quiet else BY_FAR["noisy"]


def _middle_of_others(each: Class, text: str, size: int) -> Point:
    points = [
        point
        for other, found in each.members.items()
        if other != text
        for point in found
        if point.bytes == size
    ]
    points = points or [found[-1] for other, found in each.members.items() if other != text]
    return sorted(points, key=lambda point: point.seconds)[len(points) // 2]


def classes_of(curves: Iterable[tuple[Curve, Kind, Hashable]], low: int, high: int) -> list[Class]:
    """Curves with equal keys, with their sizes from ``low`` to below ``high``; of two and more."""
    found: dict[Hashable, Class] = {}
    for curve, kind, key in curves:
        points = [point for point in curve.points if low <= point.bytes < high]
        if points:
            found.setdefault(key, Class(kind, {})).members[curve.text] = points
    return [each for each in found.values() if len(each.members) > 1]
