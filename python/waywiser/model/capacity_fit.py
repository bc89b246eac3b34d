"""Finds the fewest capacities that explain measured sets.

The sets of each method are fitted alone. A link that one transfer fills carries no more for
several: its capacity is what the fastest of its transfers reaches. Every other resource that
several transfers share first gets the capacity that it was seen to carry at most, which contradicts
no set. Then capacities are removed, the least plausible first, as long as the sets are explained as
well without them: this is backward elimination (Draper & Smith, *Applied Regression Analysis*, 3rd
edition, 1998, chapter 15) over the constraints of a max-min share. What is left is moved to where
all sets agree best. A resource of one device gets a capacity of its own only if equal devices do
not explain a set.

Of resources that explain the same, the more plausible one is used by more transfers of the sets
that are slow, since it claims least of other sets; then it is the narrower one.

The standard error of a capacity is that of the sets that it limits: the variance between processes,
pooled over sets, and what the model leaves unexplained (Bates & Watts, *Nonlinear Regression
Analysis*, 1988, section 2.3, with finite differences).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import msgspec

from waywiser.curves.wrong_bounds import EXCESS, exceeds_caches
from waywiser.machine import Machine
from waywiser.model.capacity import (
    ENDS,
    MOST_LATENCY,
    Capacity,
    CapacityKey,
    CapacityModel,
    CapacityModelReader,
    End,
    Queue,
    SetMember,
)
from waywiser.model.resources import Groups, ResourceUse
from waywiser.model.share import fill
from waywiser.model.timed_sets import TimedSet, sampled_curves
from waywiser.stats import (
    CONFIDENCE,
    ENOUGH_FREEDOM,
    LEAST_VARIANCE,
    Interval,
    Variance,
    combined,
    median,
    median_share,
    student_quantile,
)
from waywiser.words import format_rate, grouped

FILLS = 0.75
"""Share of a link's bound from which on one transfer fills it: headers of packets and flow control
take the rest."""

LEAST_DEVIATION = 0.003
"""Least standard deviation of a logarithm: what a model of few parameters leaves of a set that was
measured without noise."""

FEW_SETS_DEVIATION = 0.02
"""The standard deviation of predictions of sets, if few sets were fitted. Of four H200s, sets of
sizes that were not fitted took up to 8 % more or less (docs/results/models)."""

CLEARLY = 3.0
"""Standard deviations from which on a set takes clearly longer than predicted."""

LEAST_SLOWDOWN = 0.01
"""Least part by which it does."""

WORTH = 9.0
"""Squared deviations by which a capacity must bring the model nearer to the sets."""

LARGE_SPAN = 4
"""The rate of a link is that of transfers from this part of the largest size on."""

MOST_SQUARED = 6.0
"""Deviations from which on one set counts linearly and not squared (Huber)."""

NEARLY_FULL = 0.95
"""Share of the most that a resource carried from which on it may have been full."""

LEAST_SENSITIVITY = 0.05
"""The least change of a set's time, for that of a capacity, with which it shows the capacity."""

OF_POOLED = 4.0
"""Degrees of freedom that the pooled variance counts as, beside a set's own."""

_STEP = 0.01
_GOLDEN = (math.sqrt(5) - 1) / 2


class _Candidate(NamedTuple):
    """A resource that may have a capacity."""

    key: CapacityKey
    breadth: int
    carried: list[float]
    """Bytes per second that it carried in each set."""
    covered: list[tuple[float, float]]
    """What it carried in each slow set, and the share of the transfers that use it."""

    @property
    def rank(self) -> tuple[float, int, str]:
        """The order of resources that explain the same, the most plausible first. Only sets that it
        can have limited count."""
        least = NEARLY_FULL * max((carried for carried, _ in self.covered), default=0.0)
        shares = [share for carried, share in self.covered if carried >= least]
        return -sum(shares) / max(len(shares), 1), self.breadth, self.key.resource


class _Observed(NamedTuple):
    """A set with the noise of its span's logarithm."""

    timed: TimedSet
    members: Sequence[SetMember]
    noise: float
    """The standard deviation of the median over processes."""

    @property
    def deviation(self) -> float:
        """The same with what a model may leave in any case."""
        return math.hypot(self.noise, LEAST_DEVIATION)


def fit_capacities(
    machine: Machine,
    singles: Sequence[TimedSet],
    sets: Sequence[TimedSet],
    *,
    validation: Iterable[str] = (),
    sides: Groups = (),
) -> CapacityModel:
    """The model of a machine from its measured transfers.

    ``validation`` are identities of workloads that are never fitted, ``sides`` the GPUs of each
    hidden side. A set whose transfers use several methods, or were not all measured alone, is not
    fitted either.
    """
    held_out = set(validation)
    singles = [each for each in singles if not _is_load(each, machine)]
    base = CapacityModel(machine, sampled_curves(singles))
    reader = CapacityModelReader(base)
    fitted_sets = [each for each in sets if each.workload.identity not in held_out]
    by_method = _by_method(reader, [each for each in fitted_sets if _shows_bandwidth(each, reader)])
    groups = _merged_groups([*sides, *_slowed_groups(reader, by_method)])
    base = msgspec.structs.replace(base, groups=groups)
    reader = CapacityModelReader(base)
    fits = _method_fits(reader, singles, by_method)
    model = msgspec.structs.replace(
        base,
        capacities=tuple(each for fit in fits.values() for each in fit.capacities()),
        queues=tuple(each for fit in fits.values() for each in fit.queues),
        carried=_carried(reader, [*singles, *_all(by_method)]),
        deviations={
            method: max(fit.unexplained_deviation(), LEAST_DEVIATION)
            for method, fit in fits.items()
            if fit.sets
        },
    )
    return msgspec.structs.replace(
        model,
        transfer_deviations=_transfer_deviations(model, by_method),
        findings=tuple(capacity_findings(model, singles)),
    )


def _by_method(reader: CapacityModelReader, timed: Iterable[TimedSet]) -> dict[str, list[TimedSet]]:
    """Those whose transfers all have one method, by that."""
    found: dict[str, list[TimedSet]] = {}
    for each in timed:
        methods = {reader.method(transfer) for transfer in each.workload.transfers}
        if len(methods) == 1:
            found.setdefault(methods.pop(), []).append(each)
    return found


def _all(by_method: Mapping[str, Sequence[TimedSet]]) -> list[TimedSet]:
    return [each for of_method in by_method.values() for each in of_method]


def _method_fits(
    reader: CapacityModelReader,
    singles: Sequence[TimedSet],
    sets: Mapping[str, Sequence[TimedSet]],
) -> dict[str, _MethodFit]:
    """What was fitted to the ``sets`` of each method."""
    noise, common = _noise(_all(sets)), _common_share(sets.values())
    exceeded = _exceeded_links(reader, singles)
    found: dict[str, _MethodFit] = {}
    for method, own in sorted(_by_method(reader, singles).items()):
        fit = _MethodFit(reader, method, own, sets.get(method, []), noise, common, exceeded)
        found[method] = fit
        fit.run()
    return found


def _exceeded_links(
    reader: CapacityModelReader, singles: Sequence[TimedSet]
) -> dict[str, tuple[float, float]]:
    """Kind of resource -> (its bound, bytes per second of a transfer that exceeds it): what the
    topology shows of it is wrong, so that no transfer is known to fill it."""
    found: dict[str, tuple[float, float]] = {}
    for each in singles:
        (transfer,) = each.workload.transfers
        if not exceeds_caches(each.workload, reader.model.machine):
            continue
        for use in reader.uses(transfer):
            rate = use.passes * transfer.bytes / each.span
            most = max(found.get(use.kind, (0.0, 0.0))[1], (1 + EXCESS) * (use.bound or math.inf))
            if use.bound is not None and rate > most:
                found[use.kind] = use.bound, rate
    return found


def _transfer_deviations(
    model: CapacityModel, by_method: Mapping[str, Sequence[TimedSet]]
) -> dict[str, float]:
    """The standard deviation of measured over predicted times of the transfers of fitted sets. One
    direction may get more of a shared capacity than the other, which no model of max-min shares
    predicts."""
    reader = CapacityModelReader(model)
    found: dict[str, float] = {}
    for method, sets in sorted(by_method.items()):
        squares = [
            math.log(predicted / measured) ** 2
            for each in sets
            if each.transfers
            for predicted, measured in zip(
                reader.filled(each.workload).own_seconds, each.transfer_seconds, strict=True
            )
        ]
        if squares:
            found[method] = math.sqrt(fmean(squares))
    return found


def _is_load(timed: TimedSet, machine: Machine) -> bool:
    """Whether a transfer is a load, and no method of a copy."""
    return any(machine.traits.executor(t.path.executor).bystander for t in timed.workload.transfers)


def _shows_bandwidth(timed: TimedSet, reader: CapacityModelReader) -> bool:
    """Whether all transfers were measured alone, and little of their time is latency."""
    alone = [reader.alone.of(transfer) for transfer in timed.workload.transfers]
    return all(one is not None and one.latency <= MOST_LATENCY * one.seconds for one in alone)


class _MethodFit:
    """The capacities of one method."""

    def __init__(
        self,
        reader: CapacityModelReader,
        method: str,
        singles: Sequence[TimedSet],
        sets: Sequence[TimedSet],
        noise: Mapping[bool, Variance],
        common: Variance,
        exceeded: Mapping[str, tuple[float, float]],
    ) -> None:
        self.reader = reader
        self.method = method
        self.queues: list[Queue] = []
        self.common = _common_variance(sets, common)
        self.least: dict[CapacityKey, float] = self._moved(singles, sets, noise)
        """The bytes per second that each resource is known to carry: no capacity is less."""
        self.known: dict[CapacityKey, float] = self._filled_by_one(singles, exceeded)
        self.single = frozenset(self.known)
        """Those that one transfer fills, until a set shows more."""
        self.sets = [
            _Observed(each, reader.members(each.workload), _noise_of(each, noise)) for each in sets
        ]
        self.freedom = max((noise[each.has_host].freedom for each in sets), default=0.0)

    def run(self) -> None:
        """Finds queues, then the capacities of kinds of resources, then devices that differ."""
        self._find_queues()
        candidates = self._candidates()
        for each in candidates:
            self.known[each.key] = self._at_least(each.key, max(each.carried))
        self._remove([each.key for each in reversed(candidates)])
        self._refine()
        self._remove([each.key for each in reversed(candidates) if each.key in self.known])
        for key, carried in self._exceptions():
            without = dict(self.known)
            self.known[key] = self._at_least(key, carried)
            self._refine([key])
            if self._misfit(without) - self._misfit(self.known) < WORTH:
                self.known = without

    # Single transfers, and transfers that wait for one another.

    def _moved(
        self,
        singles: Sequence[TimedSet],
        sets: Sequence[TimedSet],
        noise: Mapping[bool, Variance],
    ) -> dict[CapacityKey, float]:
        """The bytes per second that were measured through each resource, and through each kind: by
        large transfers and by sets, less what noise adds to the fastest of them."""
        moved: dict[CapacityKey, list[tuple[int, float]]] = {}
        for each in (*singles, *sets):
            through: Counter[tuple[str, str]] = Counter()
            for transfer in each.workload.transfers:
                for use in self.reader.uses(transfer):
                    through[use.name, use.kind] += use.passes * transfer.bytes
            less = CLEARLY * math.hypot(_noise_of(each, noise), LEAST_DEVIATION)
            size = min(transfer.bytes for transfer in each.workload.transfers)
            for (name, kind), amount in through.items():
                rate = amount / each.span * math.exp(-less)
                for resource in {name, kind}:
                    key = CapacityKey(resource, self.method)
                    moved.setdefault(key, []).append((size, rate))
        found = {}
        for key, known in moved.items():
            least = max(size for size, _ in known) / LARGE_SPAN
            found[key] = max(rate for size, rate in known if size >= least)
        return found

    def _at_least(self, key: CapacityKey, capacity: float) -> float:
        """The capacity, but no less than was measured through the resource."""
        return max(capacity, self.least.get(key, 0.0))

    def _filled_by_one(
        self, singles: Sequence[TimedSet], exceeded: Mapping[str, tuple[float, float]]
    ) -> dict[CapacityKey, float]:
        """The capacities of links that one transfer fills: the median rate of large transfers. A
        link that one exceeds is not known to be filled."""
        rates: dict[CapacityKey, list[tuple[int, float]]] = {}
        for each in singles:
            (transfer,) = each.workload.transfers
            alone = self.reader.alone.of(transfer)
            if alone is None or alone.latency > MOST_LATENCY * alone.seconds:
                continue
            rate = transfer.bytes / alone.moving
            for use in self.reader.uses(transfer):
                if use.breadth or use.bound is None or use.kind in exceeded:
                    continue
                if FILLS * use.bound <= use.passes * rate <= use.bound:
                    key = CapacityKey(use.kind, self.method)
                    rates.setdefault(key, []).append((transfer.bytes, use.passes * rate))
        found = {}
        for key, known in rates.items():
            least = max(size for size, _ in known) / LARGE_SPAN
            typical = median([rate for size, rate in known if size >= least])
            found[key] = self._at_least(key, typical)
        return found

    def _find_queues(self) -> None:
        """Sets whose transfers never overlap, and have one GPU in common."""
        for end in ENDS:
            waiting = [s.timed for s in self.sets if s.timed.is_one_after_another
                       and _is_star(s.timed, end)]  # fmt: skip
            stars = [s.timed for s in self.sets if _is_star(s.timed, end)]
            if not waiting or len(waiting) < len(stars):
                continue
            gaps = []
            for each in waiting:
                alone = [self.reader.alone.of(t) for t in each.workload.transfers]
                total = sum(one.seconds for one in alone if one is not None)
                gaps.append((each.span - total) / (len(alone) - 1))
            names = tuple(str(each.workload) for each in waiting)
            self.queues.append(Queue(end, self.method, max(median(gaps), 0.0), names))

    # The search.

    def _log_ratio(self, observed: _Observed, known: Mapping[CapacityKey, float]) -> float:
        """The logarithm of measured over predicted."""
        demands = self.reader.demands_of(observed.members, known, self.queues)
        return math.log(observed.timed.span / fill(demands).span)

    def _misfit(self, known: Mapping[CapacityKey, float]) -> float:
        return sum(_huber(self._log_ratio(each, known) / each.deviation) for each in self.sets)

    def _is_slow(self, observed: _Observed) -> bool:
        """Whether a set takes clearly longer than the model says."""
        least = max(CLEARLY * observed.deviation, math.log1p(LEAST_SLOWDOWN))
        return self._log_ratio(observed, self.known) > least

    def _candidates(self) -> list[_Candidate]:
        """The kinds of resources that several transfers of a slow set share, without the links that
        one transfer fills; the most plausible first. A link that carries more for several transfers
        than for one is not filled by one."""
        for observed in self.sets:
            for use, carried, _ in self._shared(observed.timed):
                key = CapacityKey(use.kind, self.method)
                if key in self.single and carried > self.known[key] * (1 + LEAST_SLOWDOWN):
                    self.single -= {key}
                    del self.known[key]
        found: dict[CapacityKey, _Candidate] = {}
        for observed in self.sets:
            is_slow = self._is_slow(observed)
            for use, carried, share in self._shared(observed.timed):
                key = CapacityKey(use.kind, self.method)
                each = found.setdefault(key, _Candidate(key, use.breadth, [], []))
                each.carried.append(carried)
                if is_slow:
                    each.covered.append((carried, share))
        usable = [each for each in found.values() if each.covered and each.key not in self.single]
        return sorted(usable, key=lambda each: each.rank)

    def _remove(self, keys: Iterable[CapacityKey]) -> None:
        """Removes the capacities without which the sets are explained as well, in this order."""
        misfit = self._misfit(self.known)
        for key in keys:
            without = {known: value for known, value in self.known.items() if known != key}
            after = self._misfit(without)
            if after - misfit < WORTH:
                self.known, misfit = without, min(after, misfit)

    def _exceptions(self) -> Iterator[tuple[CapacityKey, float]]:
        """Resources of one device in sets that are still slow, the narrowest first."""
        found: dict[CapacityKey, tuple[int, float]] = {}
        for observed in self.sets:
            if self._is_slow(observed):
                for use, carried, _ in self._shared(observed.timed):
                    key = CapacityKey(use.name, self.method)
                    if use.name != use.kind and key not in self.known:
                        found[key] = use.breadth, max(carried, found.get(key, (0, 0.0))[1])
        for key, (_, carried) in sorted(found.items(), key=lambda each: each[1][0]):
            yield key, carried

    def _shared(self, timed: TimedSet) -> Iterator[tuple[ResourceUse, float, float]]:
        """The resources that several transfers of a set use, with what they carry in its span and
        the share of the transfers that use them."""
        users = grouped(
            (use.name, (use, transfer.bytes, self.reader.latency(transfer)))
            for transfer in timed.workload.transfers
            for use in self.reader.uses(transfer)
        )
        for each in users.values():
            if len(each) > 1:
                moving = timed.span - min(latency for _, _, latency in each)
                if moving > 0:
                    carried = sum(use.passes * n for use, n, _ in each) / moving
                    yield each[0][0], carried, len(each) / len(timed.workload.transfers)

    def _refine(self, keys: Sequence[CapacityKey] = ()) -> None:
        """Moves capacities, or all fitted ones, to where the sets agree best, twice."""
        fitted = keys or [key for key in self.known if key not in self.single]
        for _ in range(2 if len(fitted) > 1 else 1):
            for key in fitted:
                self.known[key] = self._minimum(key)

    def _minimum(self, key: CapacityKey) -> float:
        """The best value of one capacity within 15 %: golden section search over its logarithm."""
        center = math.log(self._at_least(key, self.known[key]))
        low, high = center - 0.15, center + 0.15
        low = max(low, math.log(self._at_least(key, math.exp(low))))

        def misfit(log: float) -> float:
            return self._misfit({**self.known, key: math.exp(log)})

        one, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_one, at_other = misfit(one), misfit(other)
        while high - low > 2e-4:
            if at_one <= at_other:
                high, other, at_other = other, one, at_one
                one = high - _GOLDEN * (high - low)
                at_one = misfit(one)
            else:
                low, one, at_one = one, other, at_other
                other = low + _GOLDEN * (high - low)
                at_other = misfit(other)
        best = (low + high) / 2
        return math.exp(best if misfit(best) <= misfit(center) else center)

    # What was found.

    def capacities(self) -> list[Capacity]:
        """The capacities with their intervals."""
        return [self._capacity(key, value) for key, value in sorted(
            self.known.items(), key=lambda item: item[0].resource)]  # fmt: skip

    def _capacity(self, key: CapacityKey, value: float) -> Capacity:
        information, rests_on, free_of_sets = 0.0, [], OF_POOLED
        for each in self.sets:
            sensitivity = self._sensitivity(each, key, value)
            if abs(sensitivity) > LEAST_SENSITIVITY:
                information += (sensitivity / each.noise) ** 2
                rests_on.append(str(each.timed.workload))
                free_of_sets += len(each.timed.spans) - 1
        if not information:
            return Capacity(key.resource, key.method, value, None, "one transfer")
        scale, free = self._scale()
        # The few sets that show a capacity may be noisier than all others.
        own = Variance(scale**2 / information, min(free, free_of_sets))
        total = combined([(1.0, own), (1.0, self.common)]) if self.common.value else own
        deviation, freedom = total.deviation, max(total.freedom, 1.0)
        half = student_quantile(freedom, (1 + CONFIDENCE) / 2) * deviation
        return Capacity(
            key.resource,
            key.method,
            value,
            Interval(value * math.exp(-half), value * math.exp(half)),
            "one transfer" if key in self.single else "sets",
            tuple(rests_on),
            deviation,
            freedom,
        )

    def _scale(self) -> tuple[float, float]:
        """(what sets deviate from the model by, in standard deviations of their noise; its degrees
        of freedom). With few sets, no less than the noise."""
        squares = [(self._log_ratio(each, self.known) / each.noise) ** 2 for each in self.sets]
        free = len(squares) - len(self.known) + len(self.single)
        if free < 1:
            return 1.0, max(self.freedom, 1.0)
        scale = math.sqrt(sum(squares) / free)
        if free < ENOUGH_FREEDOM:
            return max(scale, 1.0), max(self.freedom, 1.0)
        return scale, float(free)

    def _sensitivity(self, observed: _Observed, key: CapacityKey, value: float) -> float:
        """The change of the logarithm of a span for that of a capacity."""
        ends = [
            self._log_ratio(observed, {**self.known, key: value * math.exp(step)})
            for step in (-_STEP, _STEP)
        ]
        return (ends[0] - ends[1]) / (2 * _STEP)

    def unexplained_deviation(self) -> float:
        """The standard deviation of measured over predicted spans that the model leaves; no less
        than `FEW_SETS_DEVIATION` if there are few sets to show it."""
        squares = [self._log_ratio(each, self.known) ** 2 for each in self.sets]
        free = len(squares) - len(self.known) + len(self.single)
        found = math.sqrt(sum(squares) / free) if free > 0 else 0.0
        return found if free >= ENOUGH_FREEDOM else max(found, FEW_SETS_DEVIATION)


def _huber(deviation: float) -> float:
    far = abs(deviation)
    return far**2 if far <= MOST_SQUARED else MOST_SQUARED * (2 * far - MOST_SQUARED)


def _noise(sets: Sequence[TimedSet]) -> dict[bool, Variance]:
    """The variance between processes, pooled over all sets with the host and over all without.

    It is robust: the median over sets, so that one disturbed set does not hide what all others
    show.
    """
    found: dict[bool, Variance] = {}
    for has_host in (False, True):
        known = [
            (each.squares / freedom, freedom)
            for each in sets
            if each.has_host is has_host and (freedom := len(each.spans) - 1)
        ]
        found[has_host] = Variance(LEAST_DEVIATION**2, 0.0)
        if known:
            values = [value / _median_of_variance(freedom) for value, freedom in known]
            value = max(median(values), LEAST_VARIANCE)
            found[has_host] = Variance(value, float(sum(freedom for _, freedom in known)))
    return found


def _common_share(methods: Iterable[Sequence[TimedSet]]) -> Variance:
    """The part of the variance between processes that all sets of a process have in common: more
    sets do not make a capacity more certain than that."""
    squares = freedom = 0.0
    for sets in methods:
        scale = math.sqrt(_variance(sets))
        shifts = grouped(
            (block, shift / scale)
            for each in sets
            if len(each.blocks) == len(each.spans) > 1
            for block, shift in zip(each.blocks, each.deviations, strict=True)
        )
        if len(shifts) < 2:
            continue
        means = [fmean(each) for each in shifts.values()]
        center = fmean(means)
        rest = [
            (shift - mean) ** 2
            for mean, each in zip(means, shifts.values(), strict=True)
            for shift in each
        ]
        by_chance = sum(rest) / len(rest) / (len(rest) / len(means))
        between = sum((mean - center) ** 2 for mean in means) / (len(means) - 1)
        squares += max(between - by_chance, 0.0) * (len(means) - 1)
        freedom += len(means) - 1
    return Variance(squares / freedom if freedom else 0.0, freedom)


def _common_variance(sets: Sequence[TimedSet], share: Variance) -> Variance:
    """The variance of the median over processes that all these sets have in common."""
    processes = min((len(each.spans) for each in sets), default=1)
    return Variance(share.value * _variance(sets) * median_share(processes), share.freedom)


def _variance(sets: Sequence[TimedSet]) -> float:
    """The variance between processes, pooled over sets."""
    freedom = sum(len(each.spans) - 1 for each in sets)
    squares = sum(each.squares for each in sets)
    return max(squares / freedom, LEAST_VARIANCE) if freedom else LEAST_VARIANCE


def _median_of_variance(freedom: int) -> float:
    """The median of an estimated variance over the true one (Wilson & Hilferty, *The Distribution
    of Chi-Square*, PNAS 17, 1931)."""
    return (1 - 2 / (9 * freedom)) ** 3


def _noise_of(timed: TimedSet, noise: Mapping[bool, Variance]) -> float:
    """The standard deviation of the logarithm of a set's span: by the pooled variance, as if
    `OF_POOLED` more processes had shown it, and the set's own."""
    pooled, freedom = noise[timed.has_host].value, len(timed.spans) - 1
    variance = (OF_POOLED * pooled + timed.squares) / (OF_POOLED + freedom)
    return math.sqrt(variance * median_share(len(timed.spans)))


def _is_star(timed: TimedSet, end: End) -> bool:
    """Whether all transfers have one GPU as this end, and different other ends."""
    position = ENDS.index(end)
    common = {t.path.places[position] for t in timed.workload.transfers}
    others = {t.path.places[1 - position] for t in timed.workload.transfers}
    one = next(iter(common))
    return len(common) == 1 and one.kind == "gpu" and len(others) == len(timed.workload.transfers)


# GPUs that share a port.


def _slowed_groups(
    reader: CapacityModelReader, sets: Mapping[str, Sequence[TimedSet]]
) -> list[tuple[int, ...]]:
    """GPUs that are joined by pairs of transfers with the host that are slower together than
    alone."""
    joined: list[set[int]] = []
    for timed in _all(sets):
        transfers = timed.workload.transfers
        gpus = {p.index for t in transfers for p in t.path.places if p.kind == "gpu"}
        hosts = {p for t in transfers for p in t.path.places if p.kind == "numa"}
        if len(transfers) != 2 or len(gpus) != 2 or not hosts:
            continue
        alone = [reader.alone.of(transfer) for transfer in transfers]
        slowest = max(one.seconds for one in alone if one is not None)
        deviation = math.sqrt(timed.squares / max(len(timed.spans) - 1, 1))
        if math.log(timed.span / slowest) > max(2 * LEAST_SLOWDOWN, CLEARLY * deviation):
            together = gpus.union(*(group for group in joined if group & gpus))
            joined = [*(group for group in joined if not group & gpus), together]
    return [tuple(sorted(group)) for group in joined]


def _merged_groups(groups: Iterable[tuple[int, ...]]) -> Groups:
    return tuple(dict.fromkeys(tuple(sorted(group)) for group in groups if len(group) > 1))


def _carried(
    reader: CapacityModelReader, measured: Iterable[TimedSet]
) -> dict[str, dict[str, float]]:
    """The most that a kind of resource carried, by method."""
    found: dict[str, dict[str, float]] = {}
    for method, sets in _by_method(reader, measured).items():
        own = found.setdefault(method, {})
        for timed in sets:
            moved: Counter[tuple[str, str]] = Counter()
            for transfer in timed.workload.transfers:
                for use in reader.uses(transfer):
                    moved[use.name, use.kind] += use.passes * transfer.bytes
            latency = max(map(reader.latency, timed.workload.transfers))
            moving = max(timed.span - latency, timed.span / 2)
            for (_, kind), amount in moved.items():
                own[kind] = max(own.get(kind, 0.0), amount / moving)
    return found


def capacity_findings(model: CapacityModel, singles: Sequence[TimedSet]) -> Iterator[str]:
    """Capacities that exceed what the topology or any measurement shows, and links that carry more
    than the topology shows."""
    reader = CapacityModelReader(model)
    for kind, (least, moved) in sorted(_exceeded_links(reader, singles).items()):
        yield (
            f"one transfer moves {format_rate(moved)} GB/s through {kind}, but its bound is "
            f"{format_rate(least)} GB/s: the description of the link is wrong, and its capacity is "
            "not known"
        )
    bounds = {
        use.kind: use.bound
        for each in singles
        for transfer in each.workload.copies
        for use in reader.uses(transfer)
        if use.bound is not None
    }
    for each in model.capacities:
        rate = f"{format_rate(each.bytes_per_second)} GB/s"
        bound = bounds.get(each.resource)
        shown = model.carried.get(each.method, {}).get(each.resource, 0.0)
        low = each.interval.low if each.interval else each.bytes_per_second
        if bound is not None and low > bound:
            yield (
                f"{each.resource} carries {rate} by the sets, but its bound is "
                f"{format_rate(bound)} GB/s: the description of the link is wrong"
            )
        elif shown and low > shown:
            yield (
                f"the capacity of {each.resource}, {rate}, exceeds all that was measured through "
                f"it, {format_rate(shown)} GB/s: it is extrapolated"
            )
