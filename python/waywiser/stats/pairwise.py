"""Whether one thing takes longer than another in the same survey: noise and decisions of pairs.

Pairs that ask the same question of equivalent paths are a group: copies of each GPU from remote
memory against local memory, or each of several equivalent paths against the others. The replicate
is the process: the value of a pair is the logarithm of a ratio of times in one process. Sizes are
decided together, as the median over the sizes of a regime, and each size alone, so that a drop at
one size is found although the median hides it.

One odd process among many must not hide what the others show, so that from `ROBUST` processes on
their median and the scatter of most of them count.

Of few processes, in all of which one of equivalent paths differs in the same direction, the process
that shows it best decides too, by how the others scatter in it: a path that varies between
processes hides no difference of another.

A level that shifts among the processes of a pair and returns is noise of that pair.

One survey does not show how equivalent paths differ in the next one. All of them together show how
they differ in it, but for those that stand apart: that noise between surveys
(`waywiser.stats.noise_model`) is in the difference of each path from the others.

The variance of a value between processes is pooled over the group. A regime that nothing replicates
has its paths, which were measured each in a process of its own: the scatter of the other pairs of
the group stands for that of processes. It is an upper limit, since the paths may differ as well. If
the pairs of a group are equivalent paths, and its family has `FAMILY` groups, the scatter of the
middle group of the family is used, so that a group that falls apart does not hide it, for a path
that differs without those over its own link. With fewer
than `ENOUGH_EQUIVALENTS` degrees of freedom such a regime borrows from the other regimes of its
group. If these do not replicate either, and there are fewer than two other pairs, the noise is not
known, and nothing is decided: each median is taken to deviate by at least `UNKNOWN_NOISE`, so that
only what is far beyond it is suspected.

Pairs, sizes and processes may be measured more often than others:

- a second process of less than half of the pairs is no replicate of the group: one or two degrees
  of freedom would decide about all of it. Then the processes of a size are one value, as elsewhere;
- sizes of a pair weigh as much as they have processes, and those with one process are decided each
  alone if another has several. The pair's value is by the processes that half of the weight has.

All pairs and groups that are given together are decided together (`waywiser.stats.decision`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

from waywiser.stats.decision import SIGNIFICANT, THRESHOLD, Decision, Effect, decide
from waywiser.stats.noise_model import (
    ENOUGH_FREEDOM,
    LEAST_VARIANCE,
    BetweenSurveys,
    Contrast,
    Variance,
    averaged,
    beside_most,
    combined,
    median_share,
    noise_between_surveys,
    pooled,
    process_variance,
    shared,
    with_shift,
)
from waywiser.stats.order import NORMAL_SCALE, median
from waywiser.stats.scatter import UNKNOWN_NOISE, variance_of_median

HEADLINE = "bandwidth"
"""The regime whose decisions are headline effects."""

FAMILY = 3
"""Groups of a family from which on its middle one says how equivalent paths scatter."""

ENOUGH_EQUIVALENTS = 2
"""Degrees of freedom of the scatter of equivalent paths from which on it says more about a regime
without replicates than what other regimes show."""

LIMIT = math.log1p(THRESHOLD)
"""The least difference that is a finding, as a logarithm."""

ROBUST = 5
"""Values from which on a median and a scatter of most of them are used."""


class SizeRatios(NamedTuple):
    """One size of a pair."""

    bytes: int
    ratios: Mapping[int, float]
    """Logarithms of the time of the first over that of the second, by process."""
    within: float
    """Variance of one of them by its samples."""
    shift: float = 0.0
    """The size of a level that shifted among the processes, odd ones too, and returned."""


Regimes = Mapping[Any, Sequence[SizeRatios]]
"""The sizes of one pair by regime."""


class PairGroup(NamedTuple):
    """Pairs of equivalent paths that ask the same question."""

    pairs: Sequence[Regimes]
    family: Hashable
    """Groups of one family scatter alike: they are a lower limit of each other's noise, if the
    group has few processes."""
    deviations: bool = False
    """A pair is one path against the others of the group. Then the group has no effect of its
    own."""
    links: Sequence[Hashable] = ()
    """What each pair leads over, where the pairs of one link may differ together from all others:
    they do not show how the others scatter. Empty if each has its own link."""
    odd: Collection[int] = ()
    """Positions of pairs that are known to differ, so that they do not show it either."""

    def comparable(self, at: int, values: Mapping[int, float]) -> list[float]:
        """The values of the pairs that show how paths like that at ``at`` scatter: not those over
        its own link that differ in the same direction."""
        own, found = values[at], []
        for other, value in values.items():
            over_one_link = bool(self.links) and self.links[other] == self.links[at]
            if other != at and other not in self.odd:
                in_one_direction = min(own, value) > LIMIT or max(own, value) < -LIMIT
                if not (over_one_link and in_one_direction):
                    found.append(value)
        return found


class RegimeDecision(NamedTuple):
    """What was decided about one regime."""

    decision: Decision
    sizes: dict[int, Decision]


class GroupDecisions(NamedTuple):
    """Decisions by regime, of the mean over the pairs and of each pair."""

    mean: dict[str, RegimeDecision]
    """Empty for `PairGroup.deviations`."""
    pairs: list[dict[str, RegimeDecision]]


def decide_groups(
    groups: Sequence[PairGroup], significant: float = SIGNIFICANT
) -> list[GroupDecisions]:
    """Decides about all groups together, at the level ``significant``.

    Headline effects are the bandwidths of groups, and those of deviations.
    """
    parted = [_parts(group) for group in groups]
    families, usual = _families(groups, parted)
    surveys = _between_surveys(groups, parted)
    effects: dict[tuple[int, str, _EffectKey], Effect] = {}
    for at, (group, parts) in enumerate(zip(groups, parted, strict=True)):
        for regime in parts:
            family = group.family, regime
            found = _effects(
                group, regime, parts, families[family], usual[family], surveys.get(regime)
            )
            effects |= {(at, regime, key): effect for key, effect in found.items()}
    decided = [GroupDecisions({}, [{} for _ in group.pairs]) for group in groups]
    decisions = decide(list(effects.values()), significant)
    for (at, regime, key), decision in zip(effects, decisions, strict=True):
        by_regime = decided[at].mean if key.pair is None else decided[at].pairs[key.pair]
        if key.size is None:
            by_regime[regime] = RegimeDecision(decision, {})
        else:
            by_regime[regime].sizes[key.size] = decision
    return decided


class _EffectKey(NamedTuple):
    """What an effect of one group and regime is about."""

    pair: int | None
    """The position of the pair; None for the mean over pairs."""
    size: int | None = None
    """Bytes; None for the regime, which comes before its sizes."""


_Effects = dict[_EffectKey, Effect]


class _Part:
    """The sizes of one pair in one regime. Those in ``common`` make its value: the sizes that most
    pairs of the group have, so that pairs that were measured at more sizes are compared alike."""

    def __init__(self, sizes: Sequence[SizeRatios], common: Collection[int]) -> None:
        self.sizes = sizes
        self.compared = [size for size in sizes if size.bytes in common] or sizes
        processes = _processes(self.compared)
        self.replicated = [size for size in self.compared if processes <= size.ratios.keys()]
        if not self.replicated:
            self.replicated = [max(self.compared, key=lambda size: (len(size.ratios), size.bytes))]
            processes = set(self.replicated[0].ratios)
        self.processes = tuple(sorted(processes))
        self.values = tuple(
            median([size.ratios[process] for size in self.replicated]) for process in self.processes
        )
        self.within = sum(size.within for size in sizes) / len(sizes)

    @property
    def least(self) -> float:
        """Variance of a value by the samples alone."""
        return self.within / len(self.replicated)

    @property
    def mean(self) -> float:
        return _centre(self.values)

    @cached_property
    def over_sizes(self) -> float:
        """The median over sizes, whatever processes measured them."""
        return median([_centre(tuple(size.ratios.values())) for size in self.compared])

    @cached_property
    def shift(self) -> float:
        """The size of a level that shifted among the processes and returned."""
        return median([size.shift for size in self.sizes])

    @cached_property
    def process(self) -> Variance:
        """The variance between processes, of the median over sizes."""
        return _between([self.values], self.least)

    @cached_property
    def process_of_size(self) -> Variance:
        """The variance between processes, of one size: the mean over the replicated sizes."""
        own = [_between([tuple(s.ratios.values())], s.within) for s in self.replicated]
        return averaged(own) or Variance(max(each.value for each in own), 0.0)


def _processes(sizes: Sequence[SizeRatios]) -> set[int]:
    """The processes of a pair: those that sizes of half of the weight have. A size with several
    processes weighs as much as it has, and one with a single process nothing, if another has
    several."""
    several = [size for size in sizes if len(size.ratios) > 1] or sizes
    weights = Counter(
        process for size in several for process in list(size.ratios) * len(size.ratios)
    )
    whole = sum(len(size.ratios) for size in several)
    return {process for process, weight in weights.items() if 2 * weight >= whole}


class _Known(NamedTuple):
    """Variances between processes: of the median over sizes, and of one size."""

    process: Variance
    of_size: Variance


_Parts = dict[str, dict[int, _Part]]
"""Parts by regime and position of the pair."""


def _parts(group: PairGroup) -> _Parts:
    found: dict[str, dict[int, Sequence[SizeRatios]]] = {}
    for at, regimes in enumerate(group.pairs):
        for regime, sizes in regimes.items():
            if sizes:
                found.setdefault(regime, {})[at] = sizes
    return {
        regime: {at: _Part(sizes, _common(list(members.values()))) for at, sizes in members.items()}
        for regime, members in found.items()
    }


def _common(members: Sequence[Sequence[SizeRatios]]) -> set[int]:
    count = Counter(size.bytes for sizes in members for size in sizes)
    return {size for size, pairs in count.items() if 2 * pairs > len(members)}


_Family = tuple[Hashable, str]
"""And the regime."""


class _Usual:
    """How the paths of the middle group of a family scatter."""

    def __init__(self) -> None:
        self._groups: list[list[tuple[Hashable, float]]] = []
        """The link and the value of each path."""
        self._known: dict[Hashable, Variance | None] = {}

    def add(self, group: PairGroup, parts: Mapping[int, _Part]) -> None:
        if group.deviations and len(parts) > 2:
            links = group.links or [None] * len(group.pairs)
            self._groups.append([(links[at], part.mean) for at, part in parts.items()])

    def beside(self, link: Hashable) -> Variance | None:
        """The scatter of the paths that do not lead over ``link``: one that is slow is odd in every
        group. None if the family has fewer than `FAMILY` groups."""
        if link not in self._known:
            values = [
                [value for other, value in own if link is None or other != link]
                for own in self._groups
            ]
            self._known[link] = _middle([_scatter(own, 0.0) for own in values if len(own) > 1])
        return self._known[link]


def _families(
    groups: Sequence[PairGroup], parted: Sequence[_Parts]
) -> tuple[dict[_Family, _Known | None], dict[_Family, _Usual]]:
    """What the processes of each family show, and how the paths of its groups scatter."""
    members: dict[_Family, list[_Part]] = {}
    usual: dict[_Family, _Usual] = {}
    for group, regimes in zip(groups, parted, strict=True):
        for regime, parts in regimes.items():
            family = group.family, regime
            members.setdefault(family, []).extend(parts.values())
            usual.setdefault(family, _Usual()).add(group, parts)
    return {family: _pooled(parts) for family, parts in members.items()}, usual


def _middle(variances: Sequence[Variance]) -> Variance | None:
    """The middle one; half of all degrees of freedom know it."""
    if len(variances) < FAMILY:
        return None
    ordered = sorted(variances, key=lambda each: each.value)
    return Variance(
        ordered[(len(ordered) - 1) // 2].value, sum(each.freedom for each in ordered) / 2
    )


def _pooled(parts: Sequence[_Part]) -> _Known | None:
    """What is known over the pairs of a group; None if nothing replicates at least half of them."""
    replicated = [part for part in parts if len(part.values) > 1]
    if 2 * len(replicated) < max(len(parts), 1):
        return None
    parts = replicated
    if not parts:
        return None
    process = _between([p.values for p in parts], fmean([p.least for p in parts]))
    if process.freedom <= 0:
        return None
    sizes = [tuple(size.ratios.values()) for part in parts for size in part.replicated]
    of_size = _between(sizes, fmean([part.within for part in parts]))
    return _Known(process, Variance(of_size.value, process.freedom))


def _effects(
    group: PairGroup,
    regime: str,
    parts: _Parts,
    family: _Known | None,
    usual: _Usual,
    surveys: BetweenSurveys | None,
) -> _Effects:
    members = parts[regime]
    alone: _Effects = {}
    known = _pooled(list(members.values()))
    if known is None:
        alone = _by_equivalents(group, members, usual, regime == HEADLINE)
        others = [found for each in parts.values() if (found := _pooled(list(each.values())))]
        noisiest = max(others, key=lambda each: each.of_size.value, default=None)
        if noisiest is None:
            return alone
        known = _Known(noisiest.of_size, noisiest.of_size)
    if group.deviations:
        known = _Known(*(_centred(each, len(members)) for each in known))
    if family is not None and known.process.freedom < ENOUGH_FREEDOM:
        known = _Known(
            *(max(pair, key=lambda v: v.value) for pair in zip(known, family, strict=True))
        )
    return _by_processes(group, members, known, surveys, regime == HEADLINE) | {
        key: effect
        for key, effect in alone.items()
        if effect.variance.freedom >= ENOUGH_EQUIVALENTS
    }


def _between_surveys(
    groups: Sequence[PairGroup], parted: Sequence[_Parts]
) -> dict[str, BetweenSurveys]:
    """The noise between surveys in each regime, by how equivalent paths differ."""
    contrasts: dict[str, list[Contrast]] = {}
    for group, parts in zip(groups, parted, strict=True):
        for regime, members in parts.items() if group.deviations else ():
            known = [part for at, part in members.items() if at not in group.odd]
            contrasts.setdefault(regime, []).extend(_contrasts(known))
    return {regime: noise_between_surveys(own) for regime, own in contrasts.items()}


def _contrasts(members: Sequence[_Part]) -> Iterator[Contrast]:
    """How the paths of a group differ; one follows from the others."""
    if len(members) > 1:
        share = _beside_others(len(members))
        apart = beside_most([part.mean for part in members], [share] * len(members))
        found = [
            Contrast(value, share, part.process.value * _weight(len(part.values)))
            for value, part in zip(apart, members, strict=True)
        ]
        yield from sorted(found, key=lambda each: abs(each.value))[1:]


def _beside_others(members: int) -> float:
    """The variance of a value beside the median of the others of its group, over its own."""
    return 1 + median_share(members - 1)


def _by_processes(
    group: PairGroup,
    members: Mapping[int, _Part],
    known: _Known,
    surveys: BetweenSurveys | None,
    headline: bool,
) -> _Effects:
    effects: _Effects = {}
    at_size: dict[int, list[_Centre]] = {}
    means: list[_Centre] = []
    for at, part in members.items():
        several = len(part.values) > 1
        own = shared(part.process if several else Variance(part.least, 0.0), known.process)
        mean = _Centre(part.mean, _weight(len(part.values)), own, part.shift)
        means.append(mean)
        effects[_EffectKey(at)] = _of_mean([mean], headline and group.deviations)
        of_one = part.process_of_size if several else Variance(part.within, 0.0)
        of_size = shared(of_one, known.of_size)
        for size in part.sizes:
            values = tuple(size.ratios.values())
            found = _Centre(_centre(values), _weight(len(values)), of_size, size.shift)
            effects[_EffectKey(at, size.bytes)] = _of_mean([found])
            at_size.setdefault(size.bytes, []).append(found)
    if not group.deviations:
        effects[_EffectKey(None)] = _of_mean(means, headline)
        effects |= {_EffectKey(None, size): _of_mean(found) for size, found in at_size.items()}
        return effects
    if surveys is not None:
        share = _beside_others(len(members))
        for key, effect in effects.items():
            both = combined([(1.0, effect.variance), (share, surveys.variance)])
            effects[key] = effect._replace(variance=both)
    for at, effect in _in_each_process(group, members, headline):
        known_p = effects[_EffectKey(at)].p
        if known_p is None or (effect.p or 0.0) < known_p:
            effects[_EffectKey(at)] = effect
    return effects


def _in_each_process(
    group: PairGroup, members: Mapping[int, _Part], headline: bool
) -> Iterator[tuple[int, Effect]]:
    """The paths that differ in the same direction in each of few processes, by how the others
    scatter in the process that shows it best: another path that varies between processes hides no
    difference that one process shows."""
    several = {part.processes for part in members.values()}
    if len(several) != 1 or not 1 < len(tests := several.pop()) < ROBUST:
        return
    for at, part in members.items():
        slow, fast = min(part.values) > LIMIT, max(part.values) < -LIMIT
        if part.shift or not (slow or fast):
            continue
        alone = [
            Effect(
                value,
                _of_others(
                    group, {n: each.values[k] for n, each in members.items()}, at, part.least
                ),
                headline,
                tests=len(tests),
            )
            for k, value in enumerate(part.values)
        ]
        if tested := [each for each in alone if each.p is not None]:
            best = min(tested, key=lambda each: each.p or 0.0)
            yield at, best._replace(log_ratio=part.mean)


class _Centre(NamedTuple):
    """The centre of the values of one pair."""

    value: float
    weight: float
    """Its variance over that of one process."""
    process: Variance
    shift: float


def _of_mean(centres: Sequence[_Centre], headline: bool = False) -> Effect:
    """The effect of a mean over pairs. Equal variances are one estimate; levels may have shifted in
    all pairs together."""
    weights: dict[Variance, float] = {}
    for each in centres:
        weights[each.process] = weights.get(each.process, 0.0) + each.weight / len(centres) ** 2
    variance = combined([(weight, variance) for variance, weight in weights.items()])
    if shift := fmean([each.shift for each in centres]):
        variance = with_shift(variance, shift)
    return Effect(fmean([each.value for each in centres]), variance, headline)


def _centred(variance: Variance, members: int) -> Variance:
    """The variance of deviations from one another: the last of them follows from the others."""
    return Variance(variance.value, variance.freedom * (members - 1) / members)


def _by_equivalents(
    group: PairGroup, members: Mapping[int, _Part], usual: _Usual, headline: bool
) -> _Effects:
    effects: _Effects = {}
    means = {at: part.over_sizes for at, part in members.items()}
    by_size: dict[int, dict[int, float]] = {}
    for at, part in members.items():
        for size in part.sizes:
            by_size.setdefault(size.bytes, {})[at] = _centre(tuple(size.ratios.values()))
    for at, part in members.items():
        link = group.links[at] if group.links and abs(means[at]) > LIMIT else None
        scatter = usual.beside(link) or _of_others(group, means, at, part.least)
        effects[_EffectKey(at)] = Effect(means[at], scatter, headline and group.deviations)
        beside = {
            size.bytes: _of_others(group, by_size[size.bytes], at, size.within)
            for size in part.sizes
        }
        for bytes_, variance in _at_least_usual(beside).items():
            effects[_EffectKey(at, bytes_)] = Effect(by_size[bytes_][at], variance)
    if not group.deviations:
        within = fmean([part.within for part in members.values()])
        everything = list(means.values())
        effects[_EffectKey(None)] = _mean_of(everything, _scatter(everything, within), headline)
        scatters = {size: _scatter(list(v.values()), within) for size, v in by_size.items()}
        for bytes_, variance in _at_least_usual(scatters).items():
            effects[_EffectKey(None, bytes_)] = _mean_of(list(by_size[bytes_].values()), variance)
    return effects


def _mean_of(values: Sequence[float], scatter: Variance, headline: bool = False) -> Effect:
    return Effect(fmean(values), combined([(1 / len(values), scatter)]), headline)


def _of_others(group: PairGroup, values: Mapping[int, float], at: int, within: float) -> Variance:
    return _scatter(group.comparable(at, values), within)


def _at_least_usual(variances: Mapping[int, Variance]) -> dict[int, Variance]:
    """The variances of sizes: few paths agree at a size by chance, so each has at least the
    variance that half of the sizes exceed."""
    usual = median([each.value for each in variances.values()])
    return {size: Variance(max(v.value, usual), v.freedom) for size, v in variances.items()}


def _centre(values: Sequence[float]) -> float:
    """Their mean; of `ROBUST` and more their median, which one odd process does not move."""
    return fmean(values) if len(values) < ROBUST else median(values)


def _weight(count: int) -> float:
    """The variance of the centre of so many values over that of one."""
    return 1 / count if count < ROBUST else variance_of_median(count)


def _between(series: Sequence[Sequence[float]], within: float) -> Variance:
    """The variance between processes, of one value, over ``series`` together. If each has `ROBUST`
    and more: by the median distance from their medians, which few odd processes do not change
    (Hampel, J. Am. Statistical Association 69, 1974)."""
    if min(map(len, series)) < ROBUST:
        known = [_scatter(values, within) for values in series]
        return pooled(known) or max(known, key=lambda each: each.value)
    apart = [
        abs(value - middle) * len(values) / (len(values) - 1)
        for values in series
        for middle in [median(values)]
        for value in values
    ]
    variance = max((median(apart) * NORMAL_SCALE) ** 2, within, LEAST_VARIANCE)
    return Variance(variance, sum(len(values) - 1 for values in series))


def _scatter(values: Sequence[float], within: float) -> Variance:
    """The variance of all values, odd ones too: a path whose only process was odd is no odd
    path."""
    if len(values) < 2:
        return Variance(max(within, 2 * UNKNOWN_NOISE**2), 0.0)
    return process_variance([values], within)
