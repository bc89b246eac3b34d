"""Capacities of shared resources, and what a set of transfers takes with them.

A capacity is what a resource carries for one method (kinds of memory, executor, settings). A model
keeps the capacities of a machine with the curves of single transfers, and predicts sets of any
transfers: the finish of each, and of all (`waywiser.model.share`). `waywiser.model.capacity_fit`
finds capacities in measured sets.

A resource without a capacity limits nothing that was measured. If a set needs more of it than any
measurement did, the model does not know: the prediction names the resource, and its range ends
where the resource carries no more than it did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import msgspec

from waywiser.machine import Machine
from waywiser.model.alone import Alone, AloneCurves, SampledCurve, TransferCurve
from waywiser.model.errors import ModelError
from waywiser.model.resources import Groups, MachineResources, ResourceUse, method_of
from waywiser.model.share import Demand, Filled, fill
from waywiser.stats import CONFIDENCE, Interval, student_quantile
from waywiser.words import Place, Transfer, Value, Workload

SCHEMA = 1
"""The schema of the JSON form of a model."""

RULES = 3
"""The version of the rules that find capacities: a model of older rules is fitted again."""

BEYOND = 1.05
"""A resource that carries more than what was measured, by this factor, may have an unknown limit.
Less is within the differences between sets."""

MOST_LATENCY = 0.2
"""Share of a transfer's time up to which a set that has it shows a capacity."""

Basis = Literal["sets", "one transfer", "assumed"]
"""Where a capacity is from: sets that it explains; a single transfer that fills the link; a
question that starts with "if"."""


class Capacity(Value, frozen=True):
    """What one kind of resource carries for one method."""

    resource: str
    """As in ``PCIe to gpu:*``, or of one device, ``PCIe to gpu:3``."""
    method: str
    bytes_per_second: float
    interval: Interval | None
    """None if the measurements do not determine it."""
    basis: Basis
    rests_on: tuple[str, ...] = ()
    """The measured workloads that it was fitted to."""
    deviation: float = 0.0
    """The standard error of its logarithm."""
    freedom: float = 0.0
    """Degrees of freedom of the deviation."""
    measured: float = 0.0
    """The measured capacity of a link that one transfer fills, if another is assumed; else 0."""

    @property
    def key(self) -> CapacityKey:
        return CapacityKey(self.resource, self.method)


End = Literal["source", "destination"]

ENDS: tuple[End, ...] = ("source", "destination")


class Queue(Value, frozen=True):
    """Transfers by one method that run one after another."""

    end: End
    """They have this GPU in common."""
    method: str
    gap: float
    """Seconds that each takes to start after another one, beyond its latency."""
    rests_on: tuple[str, ...] = ()

    @property
    def way(self) -> str:
        return "out of" if self.end == "source" else "into"

    def gpu(self, transfer: Transfer) -> Place | None:
        """The GPU at this end of a transfer; None if that is no GPU."""
        place = transfer.path.places[ENDS.index(self.end)]
        return place if place.kind == "gpu" else None


class CapacityKey(Value, frozen=True):
    """A kind of resource and a method."""

    resource: str
    method: str


class SetPrediction(Filled, frozen=True):
    """What transfers that start together take, and how sure that is."""

    interval: Interval
    """The interval of the span: 95 % by the capacities, and what unknown limits may add."""
    intervals: tuple[Interval, ...]
    """The same of the seconds of each transfer."""
    unknown: tuple[str, ...]
    """Resources that carry more than any measurement showed: their limits are not known."""
    rests_on: tuple[str, ...]
    """The measured sets behind the capacities that limit."""
    capacities: tuple[Capacity, ...]
    """Those of the resources that limit transfers, each once."""

    @property
    def is_known(self) -> bool:
        """Whether all limits that matter were measured. If not, the span is a lower bound."""
        return not self.unknown


class CapacityModel(Value, frozen=True):
    """The capacities of one machine with the curves of its single transfers."""

    machine: Machine
    curves: dict[str, SampledCurve]
    """By the transfer's text without its size."""
    capacities: tuple[Capacity, ...] = ()
    queues: tuple[Queue, ...] = ()
    carried: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """Method -> kind of resource -> the most bytes per second that a measurement showed."""
    groups: Groups = ()
    """GPUs that may share a port to the host."""
    deviations: dict[str, float] = msgspec.field(default_factory=dict)
    """Method -> the standard deviation of measured over predicted spans, as a fraction."""
    transfer_deviations: dict[str, float] = msgspec.field(default_factory=dict)
    """The same of the times of single transfers of a set."""
    findings: tuple[str, ...] = ()
    """What to know of the capacities, one sentence each."""
    schema: int = SCHEMA
    rules: int = RULES

    def predicted(self, workload: Workload) -> SetPrediction:
        """What the workload takes. Raises `ModelError` for a workload that the model cannot
        answer: an operation, no transfers, one buffer for several, a transfer that was not
        measured."""
        return CapacityModelReader(self).predicted(workload)


class SetMember(NamedTuple):
    """A transfer of a set, with what does not depend on capacities."""

    transfer: Transfer
    alone: Alone
    method: str
    uses: tuple[ResourceUse, ...]


class CapacityModelReader:
    """A model with what its predictions need, made once."""

    def __init__(
        self,
        model: CapacityModel,
        curves: Mapping[str, TransferCurve] | None = None,
        predicted: Callable[[Transfer], float | None] = lambda _: None,
    ) -> None:
        """``curves`` are other curves of the single transfers than the measured times of the
        model, by the transfer's text without its size; ``predicted`` as in `AloneCurves`."""
        self.model = model
        self.resources = MachineResources(model.machine, model.groups)
        known = model.curves if curves is None else curves
        self.alone = AloneCurves(known, model.machine, predicted)
        self._uses: dict[str, tuple[ResourceUse, ...]] = {}
        self._methods: dict[str, str] = {}

    @cached_property
    def known(self) -> dict[CapacityKey, float]:
        """Bytes per second by resource and method."""
        return {key: each.bytes_per_second for key, each in self._fitted.items()}

    def uses(self, transfer: Transfer) -> tuple[ResourceUse, ...]:
        """The resources of a transfer, found once for all its sizes."""
        if transfer.way not in self._uses:
            self._uses[transfer.way] = self.resources.uses(transfer)
        return self._uses[transfer.way]

    def latency(self, transfer: Transfer) -> float:
        """Seconds before the bytes of a transfer move; 0 if it was not measured alone."""
        alone = self.alone.of(transfer)
        return alone.latency if alone else 0.0

    def method(self, transfer: Transfer) -> str:
        """The method of a transfer, found once for all its sizes."""
        if transfer.way not in self._methods:
            self._methods[transfer.way] = method_of(transfer, self.model.machine)
        return self._methods[transfer.way]

    def demands(
        self, workload: Workload, known: Mapping[CapacityKey, float] | None = None
    ) -> list[Demand]:
        """What each transfer needs, with other capacities than those of the model if some are
        ``known``. Raises `ModelError`."""
        known = self.known if known is None else known
        return self.demands_of(self.members(workload), known, self.model.queues)

    def members(self, workload: Workload) -> list[SetMember]:
        """The transfers of a workload. Raises `ModelError`."""
        _require_transfers(workload)
        return list(map(self._member, workload.transfers))

    def _member(self, transfer: Transfer) -> SetMember:
        alone = self.alone.of(transfer)
        if alone is None:
            raise ModelError(
                f"{transfer.way} was not measured alone, nor an equivalent transfer",
                remedy="measure it: waywiser survey --workload '" + transfer.way + "'",
            )
        return SetMember(transfer, alone, self.method(transfer), self.uses(transfer))

    def demands_of(
        self,
        members: Sequence[SetMember],
        known: Mapping[CapacityKey, float],
        queues: Sequence[Queue],
    ) -> list[Demand]:
        """What each transfer of a set needs with these capacities and queues."""
        is_mixed = len({member.method for member in members}) > 1
        found = []
        for member in members:
            transfer, alone, method, uses = member
            loads, passes = {}, {}
            moving = alone.moving
            for use in uses:
                passes[use.name] = use.passes
                capacity = self._capacity(known, use, method, is_mixed=is_mixed)
                if capacity is not None:
                    if alone.latency <= MOST_LATENCY * alone.seconds:
                        capacity = self._no_less(capacity, use, member)
                    loads[use.name] = use.passes / capacity
                    moving -= self._saved(use, method, transfer.bytes)
                    moving = max(moving, transfer.bytes * use.passes / capacity)
            queue = next((q for q in queues if q.method == method), None)
            gpu = queue.gpu(transfer) if queue else None
            found.append(
                Demand(
                    bytes=transfer.bytes,
                    rate=transfer.bytes / moving,
                    latency=alone.latency,
                    loads=loads,
                    passes=passes,
                    queue=f"{method} {queue.way} {gpu}" if queue and gpu else "",
                    gap=queue.gap if queue else 0.0,
                )
            )
        return found

    def _capacity(
        self,
        known: Mapping[CapacityKey, float],
        use: ResourceUse,
        method: str,
        *,
        is_mixed: bool,
    ) -> float | None:
        """The capacity of a resource for a method. Beside transfers by other methods, one whose own
        sets show no limit has the largest one that another method shows, or what it carried if that
        is more: they share the same resource."""
        own = _capacity(known, use, method)
        other = self._largest.get(use.kind) if is_mixed and own is None else None
        if other is None:
            return own
        return max(other, self.model.carried.get(method, {}).get(use.kind, 0.0))

    def _no_less(self, capacity: float, use: ResourceUse, member: SetMember) -> float:
        """The capacity, but no less than what the transfer alone was measured to move through the
        resource; a capacity that is assumed may be less."""
        own = self.own_capacity(use, member.method)
        if own is not None and own.basis == "assumed":
            return capacity
        return max(capacity, use.passes * member.transfer.bytes / member.alone.moving)

    @cached_property
    def _largest(self) -> dict[str, float]:
        """The largest capacity of each kind of resource, over all methods."""
        found: dict[str, float] = {}
        for each in self.model.capacities:
            found[each.resource] = max(found.get(each.resource, 0.0), each.bytes_per_second)
        return found

    def _saved(self, use: ResourceUse, method: str, bytes: int) -> float:
        """Seconds less that bytes take on a link that is assumed to be faster than measured."""
        for name in (use.name, use.kind):
            each = self._fitted.get(CapacityKey(name, method))
            if each is not None and each.measured > 0:
                saved = 1 / each.measured - 1 / each.bytes_per_second
                return max(bytes * use.passes * saved, 0.0)
        return 0.0

    def filled(
        self, workload: Workload, known: Mapping[CapacityKey, float] | None = None
    ) -> Filled:
        """The workload with the capacities of the model, or with others."""
        return fill(self.demands(workload, known))

    def predicted(self, workload: Workload) -> SetPrediction:
        """What the workload takes. Raises `ModelError`."""
        filled = self.filled(workload)
        unknown = self._unknown(workload, filled)
        limiting = [
            self.own_capacity(use, self.method(transfer))
            for transfer, limit in zip(workload.transfers, filled.limits, strict=True)
            for use in self.uses(transfer)
            if use.name == limit
        ]
        capacities = [each for each in self.model.capacities if each in limiting]
        rests_on = dict.fromkeys(text for c in capacities for text in c.rests_on)
        interval, intervals = self._intervals(workload, filled, capacities, unknown)
        return SetPrediction(
            **msgspec.structs.asdict(filled),
            interval=interval,
            intervals=intervals,
            unknown=tuple(dict.fromkeys(use.name for use, _, _ in unknown)),
            rests_on=tuple(rests_on),
            capacities=tuple(capacities),
        )

    def unknown_limits(self, workload: Workload) -> tuple[str, ...]:
        """The resources that may limit the workload more than the model knows. Raises
        `ModelError`."""
        return tuple(use.name for use, _, _ in self._unknown(workload, self.filled(workload)))

    def own_capacity(self, use: ResourceUse, method: str) -> Capacity | None:
        """The capacity of this resource, else that of its kind; None if neither is known."""
        own = self._fitted.get(CapacityKey(use.name, method))
        return own or self._fitted.get(CapacityKey(use.kind, method))

    def coverage(self, workload: Workload) -> tuple[int, int]:
        """How many resources the transfers share, or one uses, and of how many of these a capacity
        is known."""
        users: dict[str, set[int]] = {}
        known: set[str] = set()
        for n, transfer in enumerate(workload.transfers):
            for use in self.uses(transfer):
                users.setdefault(use.name, set()).add(n)
                if self.own_capacity(use, self.method(transfer)) is not None:
                    known.add(use.name)
        least = min(len(workload.transfers), 2)
        used = {name for name, own in users.items() if len(own) >= least}
        return len(used), len(used & known)

    @cached_property
    def _fitted(self) -> dict[CapacityKey, Capacity]:
        return {each.key: each for each in self.model.capacities}

    def _unknown(self, workload: Workload, filled: Filled) -> list[tuple[ResourceUse, str, float]]:
        """Resources without a capacity that carry more than was measured, with the method and what
        was measured; of those that the same transfers share only the narrowest."""
        users: dict[str, set[int]] = {}
        uses: dict[str, tuple[ResourceUse, str]] = {}
        for n, transfer in enumerate(workload.transfers):
            for use in self.uses(transfer):
                users.setdefault(use.name, set()).add(n)
                uses[use.name] = use, self.method(transfer)
        is_mixed = len({self.method(transfer) for transfer in workload.transfers}) > 1
        found: dict[frozenset[int], tuple[ResourceUse, str, float]] = {}
        for name, (use, method) in sorted(uses.items(), key=lambda each: each[1][0].breadth):
            known = self._capacity(self.known, use, method, is_mixed=is_mixed)
            if len(users[name]) < 2 or known is not None:
                continue
            methods = {self.method(workload.transfers[n]) for n in users[name]}
            shown = max(self.model.carried.get(each, {}).get(use.kind, 0.0) for each in methods)
            if filled.carried.get(name, 0.0) > BEYOND * shown:
                found.setdefault(frozenset(users[name]), (use, method, shown))
        return list(found.values())

    def _intervals(
        self,
        workload: Workload,
        filled: Filled,
        capacities: Sequence[Capacity],
        unknown: Sequence[tuple[ResourceUse, str, float]],
    ) -> tuple[Interval, tuple[Interval, ...]]:
        """(that of the span, those of the transfers): with each limiting capacity changed by its
        standard error; with an unknown limit up to what it takes if the resource carries no more
        than was measured. A transfer whose share is unsure takes from its time alone up to what it
        takes if the others come first; beside other means than the runtime's copies, up to the
        whole span."""
        times = [filled.span, *filled.seconds]
        squares = self._unexplained(workload, filled)
        freedom = math.inf
        for each in capacities:
            less = {**self.known, each.key: each.bytes_per_second * math.exp(-each.deviation)}
            slower = self.filled(workload, less)
            for n, seconds in enumerate([slower.span, *slower.seconds]):
                squares[n] += math.log(seconds / times[n]) ** 2
            freedom = min(freedom, each.freedom or 1.0)
        quantile = student_quantile(freedom, (1 + CONFIDENCE) / 2) if freedom < math.inf else 1.96
        longest = self._longest(workload, unknown) if unknown else times
        found = []
        for seconds, most, square in zip(times, longest, squares, strict=True):
            width = math.exp(min(quantile * math.sqrt(square), 50.0))
            found.append(Interval(seconds / width, max(seconds * width, most)))
        of_span, of_each = found[0], found[1:]
        demands = self.demands(workload)
        for n in self.unsure_shares(workload):
            width = math.exp(min(quantile * math.sqrt(squares[n + 1]), 50.0))
            low = (demands[n].latency + demands[n].bytes / demands[n].rate) / width
            high = of_span.high
            if self._share_alike(workload, n):
                high = min(high, fill(demands, last=n).seconds[n] * width)
            of_each[n] = Interval(min(of_each[n].low, low), max(of_each[n].high, high))
        return of_span, tuple(no_later(each, of_span) for each in of_each)

    def _unexplained(self, workload: Workload, filled: Filled) -> list[float]:
        """The squares of the deviations that the model leaves: of the span, and of each
        transfer."""
        methods = [self.method(transfer) for transfer in workload.transfers]
        of_sets = max(self.model.deviations.get(method, 0.0) for method in methods)
        own = [self.model.transfer_deviations.get(method, 0.0) for method in methods]
        pairs = zip(own, filled.waited, strict=True)
        of_each = [of_sets if waited else max(of_sets, deviation) for deviation, waited in pairs]
        return [deviation**2 for deviation in (of_sets, *of_each)]

    def _longest(
        self, workload: Workload, unknown: Sequence[tuple[ResourceUse, str, float]]
    ) -> list[float]:
        """The longest times of the span and of each transfer: resources without a capacity carry no
        more than was measured."""
        worst = dict(self.known)
        for use, method, shown in unknown:
            worst[CapacityKey(use.kind, method)] = shown or _slowest(workload, self)
        limited = self.filled(workload, worst)
        return [limited.span, *limited.seconds]

    def _share_alike(self, workload: Workload, number: int) -> bool:
        """Whether a transfer shares resources only with those that the runtime's copies make: none
        of them holds a link with what it has in flight."""
        traits = self.model.machine.traits
        usual = traits.executor(traits.reference_executor("gpu")).family
        own = {use.name for use in self.uses(workload.transfers[number])}
        return all(
            traits.executor(transfer.path.executor).family == usual
            for transfer in workload.transfers
            if own & {use.name for use in self.uses(transfer)}
        )

    def unsure_shares(self, workload: Workload) -> list[int]:
        """The transfers that share a resource with one of another size or method. The shares of
        such transfers are not equal: a copy that starts beside a kernel waits for what that has in
        flight, and kernels take more of a link than copy engines."""
        names = [{use.name for use in self.uses(transfer)} for transfer in workload.transfers]
        kinds = [(transfer.bytes, self.method(transfer)) for transfer in workload.transfers]
        return [
            n
            for n, own in enumerate(kinds)
            if any(own != other and names[n] & names[m] for m, other in enumerate(kinds))
        ]


def no_later(around: Interval, span: Interval) -> Interval:
    """The interval of a transfer of a set: none ends after all have ended."""
    return Interval(min(around.low, span.high), min(around.high, span.high))


def _slowest(workload: Workload, reader: CapacityModelReader) -> float:
    """What the transfers carry one after another: if nothing was measured of a resource, they may
    do no better."""
    known = [reader.alone.of(transfer) for transfer in workload.transfers]
    return workload.bytes / sum(each.seconds for each in known if each is not None)


def _capacity(known: Mapping[CapacityKey, float], use: ResourceUse, method: str) -> float | None:
    """The capacity of this resource, else that of its kind; None if neither is known."""
    own = known.get(CapacityKey(use.name, method))
    found = own if own is not None else known.get(CapacityKey(use.kind, method))
    if found is not None and not 0 < found < math.inf:
        raise ModelError(
            f"the capacity of {use.name} is {found:g} B/s", remedy="give it a capacity above 0"
        )
    return found


def require_copies(workload: Workload) -> None:
    """Raises `ModelError` if a transfer is over several memories."""
    if not workload.copies:
        raise ModelError(
            "a collective is not in the model", remedy="name transfers from one memory to another"
        )


def _require_transfers(workload: Workload) -> None:
    if not workload.transfers:
        raise ModelError("a model predicts transfers, and none is named", remedy="name a transfer")
    require_copies(workload)
    if workload.shared and len(workload.transfers) > 1:
        raise ModelError(
            "transfers of one shared buffer have limits that the model does not have",
            remedy="give each transfer a buffer of its own",
        )
    if workload.cache != "warm":
        raise ModelError(
            f"the model has no times for memory that is {workload.cache}",
            remedy="leave the state of the caches out",
        )
    if any(transfer.bytes <= 0 for transfer in workload.transfers):
        raise ModelError(
            "a transfer without a size has no time", remedy="write a size: ... of 64MiB"
        )
