"""Pairs of curves that ask the same question of twins: one row of a table, and one finding.

What most pairs of a kind show is a property of the kind; what few of them show is something about
those few, and is told of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from waywiser.analysis.answer import Device, Exhibit, Mark
from waywiser.analysis.related import RATE_BYTES, AtSize, Related, Verdict
from waywiser.analysis.subject import Point, Subject
from waywiser.stats.equivalence import MARGIN, How
from waywiser.stats.order import Interval
from waywiser.words import Place, Value, format_bytes

UNCLEAR: dict[How, str] = {
    "ranks of blocks": f"blocks scatter too much to say within {MARGIN:.1%}",
    "pooled blocks": f"blocks scatter too much, or are too few, to say within {MARGIN:.1%}",
    "within blocks": f"single blocks, too wide to say within {MARGIN:.1%}",
    "medians alone": "another tool's summaries, without an interval",
}
"""Why something cannot be told, by what it would stand on."""

NAMED = 8
"""Of several things, at most so many are named one by one."""

MUCH_MORE = 1.5
"""Times the effect that is told, from which on the largest is told as well."""


class Grouped(Value, frozen=True):
    """All pairs of one kind."""

    label: str
    pairs: tuple[Related, ...]

    @property
    def small(self) -> Grouped:
        """The same at sizes that tell of what it costs to begin."""
        return self._part([pair.small for pair in self.pairs])

    @property
    def medium(self) -> Grouped:
        return self._part([pair.medium for pair in self.pairs])

    @property
    def rates(self) -> Grouped:
        """The same at sizes that tell of a rate."""
        return self._part([pair.rates for pair in self.pairs])

    def _part(self, pairs: Sequence[Related]) -> Grouped:
        return Grouped(self.label, tuple(pair for pair in pairs if pair.sizes))

    @property
    def differing(self) -> tuple[Related, ...]:
        return tuple(pair for pair in self.pairs if pair.verdict == "different")

    @property
    def leading(self) -> Grouped:
        """The same with those sizes alone as different at which most pairs differ that have them.

        Of equal paths the first is measured at more sizes than the others: what it shows there is
        a property of the kind, unless it differs from the others at sizes that they have too.
        """
        have: Counter[int] = Counter(at.bytes for pair in self.pairs for at in pair.sizes)
        count: Counter[int] = Counter(at.bytes for pair in self.pairs for at in pair.different)
        most = {size for size in have if 2 * count[size] > have[size]}
        odd = {size for size in count if size not in most}
        return Grouped(self.label, tuple(_kept(pair, most, odd, have) for pair in self.pairs))

    @property
    def verdict(self) -> Verdict:
        """Of the kind: what more than half of its pairs show."""
        if self.leading.differing:
            return "different"
        same = sum(pair.verdict == "same" for pair in self.pairs)
        return "same" if 2 * same > len(self.pairs) else "unclear"

    @property
    def of_all(self) -> str:
        """``all 8 pairs``, ``3 of 8 pairs``: those that differ, of those with the size told."""
        _, at = self.typical
        having = sum(any(each.bytes == at.bytes for each in pair.sizes) for pair in self.pairs)
        return of_pairs(min(len(self._speaking), having), having, "pair")

    @property
    def _speaking(self) -> tuple[Related, ...]:
        """The pairs that say what is said of the kind; where nothing is, those that differ."""
        return self.leading.differing or self.differing

    @property
    def mark(self) -> Mark:
        """None where no pair has such sizes."""
        if not self.pairs:
            return ""
        return {"different": "yes", "same": "no", "unclear": "unclear"}[self.verdict]  # type: ignore[return-value]

    @property
    def typical(self) -> tuple[Related, AtSize]:
        """Of pairs that differ, the one with the middle effect, at the size that says most.

        Raises ValueError where none differs.
        """
        told = [(pair, at) for pair in self._speaking if (at := telling(pair)) is not None]
        if not told:
            raise ValueError(f"no pair of {self.label} differs")
        told.sort(key=lambda each: each[1].effect)
        return told[len(told) // 2]

    @property
    def at_large(self) -> AtSize | None:
        """The middle pair at the largest size that most have."""
        found = [last for pair in self.pairs if (last := pair.largest) is not None]
        if not found:
            return None
        size = sorted(each.bytes for each in found)[len(found) // 2]
        return _middle([each for each in found if each.bytes == size])


def _kept(
    pair: Related, most: Collection[int], odd: Collection[int], have: Mapping[int, int]
) -> Related:
    """The pair with those sizes alone as different at which ``most`` differ; not those that it
    alone has, where it is ``odd`` at others."""
    is_odd = any(at.bytes in odd for at in pair.different)
    sizes = (
        at
        if not at.counts or (at.bytes in most and not (is_odd and have[at.bytes] == 1))
        else msgspec.structs.replace(at, counts=False)
        for at in pair.sizes
    )
    return Related(pair.a, pair.b, tuple(sizes))


def telling(pair: Related) -> AtSize | None:
    """Of sizes that differ the largest where that tells of a rate, else the one with the middle
    effect."""
    if not pair.different:
        return None
    last = pair.different[-1]
    return last if last.bytes >= RATE_BYTES else _middle(pair.different)


def _middle(found: Sequence[AtSize]) -> AtSize:
    return sorted(found, key=lambda each: each.effect)[len(found) // 2]


def devices(subject: Subject, pairs: Sequence[Related]) -> tuple[Device, ...]:
    """The GPUs of all pairs, else the nodes."""
    places: dict[str, Place] = {}
    for pair in pairs:
        for curve in (pair.a, pair.b):
            for transfer in curve.workload.transfers:
                for memory in (transfer.path.source, transfer.path.destination):
                    places[str(memory.place)] = memory.place
    gpus = [place for place in places.values() if place.kind == "gpu"]
    chosen = gpus or list(places.values())
    return tuple(subject.device(p) for p in sorted(chosen, key=lambda p: (p.kind, p.index)))


def exhibits(at: AtSize, ratio: str) -> tuple[Exhibit, ...]:
    """Both rates of a size (times where nothing is moved), and their ratio."""
    first, second = exhibit(at.a), exhibit(at.b)
    comparison = at.comparison
    between = Exhibit(first.series, ratio, comparison.ratio, "ratio", comparison.interval)
    return (first, second, between)


def exhibit(point: Point) -> Exhibit:
    """The rate of a point that tells one, else its time."""
    estimate = point.estimate
    if point.bytes >= RATE_BYTES and estimate.rate is not None:
        rate = estimate.rate
        return Exhibit(point.line.workload, "rate", rate.value, "B/s", rate.interval)
    return Exhibit(point.line.workload, "time", estimate.median, "s", estimate.interval)


def at_most(group: Grouped) -> str:
    """``, at most 52 % at 16 MiB``: what the middle pair differs by to the same side where it
    differs most, if that is far more than at the size that is told; else empty."""
    pair, at = group.typical
    alike = [each for each in pair.different if _log(each) * _log(at) > 0]
    worst = max(alike, key=lambda each: abs(_log(each)))
    if abs(_log(worst)) < MUCH_MORE * abs(_log(at)):
        return ""
    ratio = worst.comparison.ratio
    return f", at most {percent(max(ratio, 1 / ratio) - 1)} at {format_bytes(worst.bytes)}"


def _log(at: AtSize) -> float:
    return math.log(at.comparison.ratio)


def percent(effect: float, interval: Interval | None = None) -> str:
    """``5.1 % (4.8–5.3)`` of an effect without its sign; no interval that no digit shows."""
    text = f"{_digits(abs(effect))} %"
    if interval is None:
        return text
    low, high = sorted((abs(interval.low), abs(interval.high)))
    if interval.low * interval.high < 0:
        low = 0.0
    span = (_digits(low), _digits(high))
    return f"{text} ({'–'.join(span)})" if len(set(span)) > 1 else text


def _digits(share: float) -> str:
    return f"{share * 100:.{0 if share >= 0.1 else 1 if share >= 0.01 else 2}f}"


def unclear(groups: Sequence[Grouped]) -> Iterator[str]:
    """Kinds of which nothing can be told, by the reason why."""
    reasons: dict[How, list[str]] = {}
    for group in groups:
        if group.pairs and group.verdict == "unclear":
            how = group.pairs[0].sizes[-1].comparison.how
            reasons.setdefault(how, []).append(group.label)
    for how, labels in reasons.items():
        yield f"{UNCLEAR[how]}: {named(labels)}"


def named(labels: Sequence[str]) -> str:
    """``a, b and 3 more``."""
    more = f" and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
    return f"{', '.join(labels[:NAMED])}{more}"


def of_pairs(some: int, total: int, what: str) -> str:
    """``all 8 GPUs``, ``both GPUs``, ``3 of 8 GPUs``, ``the only GPU``."""
    if total == 1:
        return f"the only {what}"
    if some == total == 2:
        return f"both {what}s"
    return f"all {total} {what}s" if some == total else f"{some} of {total} {what}s"
