"""What a workload takes by the model of a machine: each transfer and all, and why.

One transfer has the time of its curve. Transfers that start together share resources
(`waywiser.model.capacity`); of each the time alone is that of its curve, so that sizes between the
measured ones are as good as those of single transfers. Messages between ranks have the model of
their number (`waywiser.model.rate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial

import msgspec

from waywiser.curves import points_of, size_span
from waywiser.machine import Machine, format_list
from waywiser.machine.ranks import WINDOW
from waywiser.model.alone import TransferCurve
from waywiser.model.capacity import (
    Capacity,
    CapacityModelReader,
    SetPrediction,
    no_later,
    require_copies,
)
from waywiser.model.count_table import CountKey
from waywiser.model.curve import MOST_BEYOND, CurveModel, CurvePrediction
from waywiser.model.errors import ModelError
from waywiser.model.falling_times import longer_before
from waywiser.model.machine_model import CurveFinder, MachineModel
from waywiser.model.messages import (
    OF_ONE,
    ONE_SENDER,
    MessageClass,
    MessageTimes,
    message_of,
    messages_of,
)
from waywiser.model.rate import CountModel, CountPrediction
from waywiser.model.timed_sets import usual_blocks
from waywiser.model.whatif import MachineChanges
from waywiser.profile import SeriesFrame
from waywiser.stats import Interval, median
from waywiser.words import Transfer, Value, Workload, format_bytes, grouped

MOST_TRANSFERS = 1024
"""The most transfers that a prediction has."""

_Alone = tuple[CurveModel, CurvePrediction]
"""The curve of a transfer, and what the transfer takes alone by it."""

UNCHANGED = MachineChanges()

FILLED = 0.95
"""Share of a link's capacity from which on one transfer fills it."""

LONGER = 1.01
"""From this factor on a transfer of a queue waited."""

BUSY = (
    "on a busy host, copies between the memory of the host and several GPUs may take 20 to 40 % "
    "longer: so much they did on four H200s with other users on the host"
)
"""By the profiles of `docs/results/2026-11-20-h200-catalogue`: 12 sets, 20 to 40 %."""

MEASURABLE = "survey --model measures the sets that show unknown limits"

UNEQUAL = (
    "transfers of different sizes or methods do not share a link equally, so the time of each is "
    "less sure than that of all"
)
"""`docs/results/models/live.md` shows it."""


class LimitingCapacity(Value, frozen=True):
    """A resource that keeps transfers below what they have alone."""

    resource: str
    method: str
    bytes_per_second: float
    interval: Interval | None
    """95 %; None if the measurements do not determine it."""
    basis: str
    """Where the capacity is from: ``sets``, ``one transfer``, ``assumed``."""


class TransferTime(Value, frozen=True):
    """One transfer of a prediction."""

    transfer: str
    bytes: int
    alone: float
    """Seconds that it takes if nothing else runs."""
    seconds: float
    """Seconds from the common start to its end."""
    interval: Interval
    """95 %, of `seconds`."""
    limit: str
    """The resource that limits it, or the queue in which it waits; empty for none but what it
    reaches alone."""
    waited: float = 0.0
    """Seconds from the common start until it was the first of its queue: a part of `seconds`."""


class MeasuredTimes(Value, frozen=True):
    """What the profile has of a workload that is predicted."""

    span: float
    """Seconds: the median over processes."""
    processes: int
    seconds: tuple[float, ...] = ()
    """Seconds of each transfer from its own start, in the order of the prediction; empty if they
    were not timed."""


class Prediction(Value, frozen=True):
    """What a workload takes."""

    workload: str
    span: float
    """Seconds from the common start to the last end: at least so many if something is unknown."""
    interval: Interval
    """95 %; if something is unknown, up to what it takes if nothing carries more than measured."""
    transfers: tuple[TransferTime, ...]
    bytes: int
    """All bytes together."""
    limits: tuple[LimitingCapacity, ...] = ()
    unknown: tuple[str, ...] = ()
    """Resources whose limit was not measured, and matters."""
    resources: int = 0
    """Resources that several of the transfers share, or that a single one uses; 0 of messages."""
    with_capacity: int = 0
    """Those of them whose capacity is known."""
    rests_on: tuple[str, ...] = ()
    """The measured workloads that it is made from."""
    notes: tuple[str, ...] = ()
    measured: MeasuredTimes | None = None
    """What was measured, if that was requested and the profile has it."""

    @property
    def is_known(self) -> bool:
        return not self.unknown

    @property
    def error(self) -> float | None:
        """Predicted over measured time, minus 1."""
        return self.span / self.measured.span - 1 if self.measured is not None else None


class Predictor:
    """A model with what its predictions need, made once."""

    def __init__(self, model: MachineModel, changes: MachineChanges = UNCHANGED) -> None:
        """``changes`` make another machine of it (`waywiser.model.whatif`). Raises `ModelError` for
        a change that is not possible."""
        self._measured = model.capacities
        self._is_changed = changes != UNCHANGED
        capacities = changes.applied(model.capacities) if self._is_changed else model.capacities
        self.model = msgspec.structs.replace(model, capacities=capacities)
        self._curves = CurveFinder(self.model)

    @cached_property
    def _unchanged(self) -> dict[str, CurveModel]:
        """The fitted curves of transfers that take on this machine what they took when measured."""
        now, before = self.model.capacities.curves, self._measured.curves
        return {
            curve.text: curve
            for curve in self.model.curves
            if curve.text in before and now.get(curve.text) == before[curve.text]
        }

    @cached_property
    def _sets(self) -> CapacityModelReader:
        capacities = self.model.capacities
        curves: dict[str, TransferCurve] = {**capacities.curves, **self._unchanged}
        return CapacityModelReader(capacities, curves, self._seconds_alone)

    def _seconds_alone(self, transfer: Transfer) -> float | None:
        """What the transfer takes alone, as predicted without others; None if its curve is not
        known or is of a changed machine."""
        curve = self._curves.of(Workload((transfer,)))
        if curve is None or curve.text not in self._unchanged:
            return None
        found = curve.predict(transfer.bytes)
        return None if found is None else found.seconds

    def predict(self, workload: Workload, messages: int = 1) -> Prediction:
        """What the workload takes, or so many of each of its transfers at once. Raises `ModelError`
        for what the model cannot answer."""
        _require_sizes(workload, messages)
        self._require_places(workload)
        if workload.is_of_ranks:
            return self._messages(workload, messages)
        if messages > 1:
            transfers = tuple(each for each in workload.transfers for _ in range(messages))
            workload = msgspec.structs.replace(workload, transfers=transfers)
        if workload.kind == "copy" and not self._is_changed:
            return self._single(workload)
        return self._set(workload)

    def _require_places(self, workload: Workload) -> None:
        """Raises `ModelError` for a GPU or a node that the machine does not have. Results of other
        tools may not say what it has."""
        machine = self.model.machine
        known = {
            "gpu": tuple(gpu.index for gpu in machine.gpus),
            "numa": tuple(node.index for node in machine.numa),
        }
        for place in workload.places:
            indexes = known.get(place.kind)
            if indexes and place.index not in indexes:
                raise ModelError(
                    f"the machine of the profile has no {place}",
                    remedy=f"use {place.kind}:{format_list(indexes)}",
                )

    # One transfer.

    def _single(self, workload: Workload) -> Prediction:
        curve, found = self._alone(workload)
        (transfer,) = workload.copies
        capacity = self._filled_link(transfer, found.seconds)
        limits = _limiting([capacity] if capacity else [])
        one = _of_one(workload, curve, found, limits, _notes_of(workload, curve, found))
        if transfer.way not in self.model.capacities.curves:
            return one
        resources, known = self._sets.coverage(workload)
        return msgspec.structs.replace(one, resources=resources, with_capacity=known)

    def _alone(self, workload: Workload) -> _Alone:
        """The curve of one transfer, and its prediction. Raises `ModelError`."""
        curve = self._curves.of(workload)
        if curve is None:
            raise ModelError(
                f"{workload.curve} was not measured alone, nor an equivalent transfer",
                remedy=f"measure it: waywiser survey --workload '{workload.curve}'",
            )
        return curve, _predicted(curve, workload.size)

    def _filled_link(self, transfer: Transfer, seconds: float) -> Capacity | None:
        """The link that the transfer fills alone; None if there is none."""
        if transfer.way not in self.model.capacities.curves:
            return None
        alone = self._sets.alone.of(transfer)
        if alone is None:
            return None
        rate = transfer.bytes / max(seconds - alone.latency, seconds * (1 - FILLED))
        method = self._sets.method(transfer)
        shares = {
            use.passes * rate / each.bytes_per_second: each
            for use in reversed(self._sets.uses(transfer))  # of equals the first
            if (each := self._sets.own_capacity(use, method)) is not None
        }
        fullest = max(shares, default=0.0)
        return shares[fullest] if fullest > FILLED else None

    # Transfers that start together.

    def _set(self, workload: Workload) -> Prediction:
        if not self.model.capacities.curves:
            raise ModelError(
                "the profile has no samples of single transfers, so sets cannot be predicted",
                remedy="survey the machine with waywiser survey --model",
            )
        alone = [
            self._alone(Workload((transfer,), cache=workload.cache))
            for transfer in workload.transfers
        ]
        found = self._sets.predicted(workload)
        capacities = dict.fromkeys(found.capacities)
        interval = _widened(found.span, found.interval, [each for _, each in alone])
        if not self._is_changed:  # all take no less than any of them alone
            least = max(each.interval.low for _, each in alone)
            interval = Interval(max(interval.low, min(least, found.span)), interval.high)
        times = list(self._transfer_times(workload, alone, found, interval))
        if len(times) == 1:  # of a changed machine
            filled = self._filled_link(workload.copies[0], times[0].seconds)
            if filled is not None and not times[0].limit:
                capacities[filled] = None
                times = [msgspec.structs.replace(times[0], limit=filled.resource)]
        sizes = (_sizes_text(curve, each) for curve, each in alone)
        resources, known = self._sets.coverage(workload)
        return Prediction(
            workload=str(workload),
            span=found.span,
            interval=interval,
            transfers=tuple(times),
            bytes=workload.bytes,
            limits=_limiting(list(capacities)),
            unknown=found.unknown,
            resources=resources,
            with_capacity=known,
            rests_on=tuple(dict.fromkeys((*found.rests_on, *sizes))),
            notes=tuple(dict.fromkeys(self._notes_of_set(workload, alone, found))),
        )

    def _notes_of_set(
        self, workload: Workload, alone: Sequence[_Alone], found: SetPrediction
    ) -> Iterator[str]:
        for transfer, (curve, each) in zip(workload.transfers, alone, strict=True):
            yield from _notes_of(Workload((transfer,)), curve, each)
        if _is_between_host_and_gpus(workload):
            yield BUSY
        if self._sets.unsure_shares(workload):
            yield UNEQUAL
        if found.unknown:
            yield MEASURABLE

    def _transfer_times(
        self, workload: Workload, alone: Sequence[_Alone], found: SetPrediction, span: Interval
    ) -> Iterator[TransferTime]:
        """What each transfer takes; none ends after the interval of the ``span``. ``alone`` are the
        times on the measured machine."""
        for n, (transfer, (_, measured)) in enumerate(zip(workload.transfers, alone, strict=True)):
            seconds, waited = found.seconds[n], found.waited[n]
            in_model = self._sets.filled(Workload((transfer,))).span  # alone, as the set has it
            around = _widened(seconds, found.intervals[n], [measured])
            if not self._is_changed:  # together none takes less than alone
                low = min(seconds, waited + measured.interval.low)
                around = Interval(max(around.low, low), around.high)
            yield TransferTime(
                transfer=str(transfer),
                bytes=transfer.bytes,
                alone=in_model if self._is_changed else measured.seconds,
                seconds=seconds,
                interval=no_later(around, span),
                limit=found.limits[n] or self._queue(transfer, in_model, seconds),
                waited=waited,
            )

    def _queue(self, transfer: Transfer, alone: float, seconds: float) -> str:
        """The queue that a transfer waited in; empty for none."""
        if seconds <= LONGER * alone:
            return ""
        method = self._sets.method(transfer)
        for queue in self.model.capacities.queues:
            gpu = queue.gpu(transfer)
            if queue.method == method and gpu is not None:
                return f"queue {queue.way} {gpu}"
        return ""

    # Messages between ranks, and copies between ranks and GPUs.

    def _messages(self, workload: Workload, count: int) -> Prediction:
        requested = self._requested(workload, count)
        if requested.count > 1:
            return self._several(workload, requested)
        found = self._message_class(workload.transfers[0], requested)
        curve = self._curves.named(found.name)
        if curve is None:
            raise ModelError(f"{found.name} has no curve in the model")
        time = _predicted(curve, workload.size)
        return _of_one(workload, curve, time, (), _notes_of(None, curve, time))

    def _requested(self, workload: Workload, count: int) -> MessageTimes:
        """One message, several of one sender, or one of each pair of ranks."""
        first = workload.transfers[0]
        if WINDOW in first.parameters:
            raise ModelError(
                f"{first.way} says how many messages there are",
                remedy=f"leave {WINDOW} out, and write --messages {first.parameters[WINDOW]}",
            )
        found = requested_of(workload, self.model.machine, count)
        if found is not None:
            return found
        if len(workload.transfers) > 1:
            raise ModelError(
                "sets of different messages are not in the model",
                remedy="name one message, and how many with --messages",
            )
        raise ModelError(
            f"{first.way} does not say where its ends are",
            remedy="write the node and the socket of each end, as show prints them: "
            "...[node=0,socket=0]@rank:0",
        )

    def _message_class(self, transfer: Transfer, requested: MessageTimes) -> MessageClass:
        kinds = requested.source, requested.destination
        known = [
            each
            for each in self.model.messages
            if (each.source, each.destination, each.locality) == (*kinds, requested.locality)
            and (
                not requested.method
                or (each.method, each.test) == (requested.method, requested.test)
            )
        ]
        pair = requested.ranks
        own = [each for each in known if {pair, pair[::-1]} & set(each.pairs)]
        if own:
            return own[0]
        if len(known) != 1:
            by = f" by {requested.method}" if requested.method else ""
            ranks = " and ".join(map(str, pair))
            raise ModelError(
                f"{' to '.join(kinds)}{by}, {requested.locality}, of ranks {ranks} was not "
                "measured",
                remedy="use one of: "
                + "; ".join(each.name for each in known or self.model.messages),
            )
        return known[0]

    def _counts_of(self, requested: MessageTimes, kind: str) -> CountModel:
        """Raises `ModelError` if no such messages were measured."""
        key, test = CountKey.of(requested), requested.test
        model = next((m for m in self.model.counts if m.key == key), None)
        if model is None:
            known = ", ".join(map(_count_name, self.model.counts)) or "none"
            by = f"{requested.method}, {test}, {requested.locality}" if requested.method else test
            raise ModelError(
                f"several messages of {kind} memory by {by} were not measured",
                remedy=f"measured are: {known}",
            )
        return model

    def _several(self, workload: Workload, requested: MessageTimes) -> Prediction:
        transfer, count = workload.transfers[0], requested.count
        if not requested.method and requested.locality != "off-node":
            raise ModelError(
                "several messages are modelled between two nodes",
                remedy="name two ends with different nodes",
            )
        model = self._counts_of(requested, transfer.path.source.kind)
        found = model.predict(count, transfer.bytes)
        if found is None:
            raise ModelError(
                f"{count} messages of {format_bytes(transfer.bytes)} are beyond what was measured",
                remedy=f"ask for at most {model.counts[-1]} messages of "
                f"{size_span(model.sizes[0], model.sizes[-1])}",
            )
        alone = model.seconds(1, transfer.bytes)
        limits: tuple[LimitingCapacity, ...] = ()
        if found.limited and model.limit is not None:
            rate, around = model.limit.bytes_per_second, model.limit.interval
            limits = (LimitingCapacity(_INJECTION, model.key.name, rate, around, "sets"),)
        name = _INJECTION if limits else ""
        is_set = len(workload.transfers) > 1
        own = [TransferTime(str(each), each.bytes, alone, found.seconds, found.interval, name)
               for each in workload.transfers]  # fmt: skip
        return Prediction(
            workload=str(workload) if is_set else f"{count} × {transfer}",
            span=found.seconds,
            interval=found.interval,
            transfers=tuple(own),
            bytes=count * transfer.bytes,
            limits=limits,
            rests_on=(_counts_text(model),),
            notes=tuple(_count_notes(model, found)),
        )


_INJECTION = "injection limit of the node"


def _of_one(
    workload: Workload,
    curve: CurveModel,
    found: CurvePrediction,
    limits: tuple[LimitingCapacity, ...],
    notes: Iterable[str],
) -> Prediction:
    """One transfer or message, which takes what its curve says."""
    (transfer,) = workload.transfers
    limit = limits[0].resource if limits else ""
    time = found.seconds
    return Prediction(
        workload=str(workload),
        span=time,
        interval=found.interval,
        transfers=(TransferTime(str(transfer), found.bytes, time, time, found.interval, limit),),
        bytes=found.bytes,
        limits=limits,
        rests_on=(_sizes_text(curve, found),),
        notes=tuple(notes),
    )


def measured_times(
    frame: SeriesFrame, machine: Machine, workload: Workload, messages: int = 1
) -> MeasuredTimes | None:
    """What a profile has of the workload, or of so many of each of its transfers, in any order;
    None if it was not measured. Processes that are outliers are not used."""
    if workload.is_of_ranks:
        return _measured_messages(frame, machine, workload, messages)
    transfers = tuple(each for each in workload.transfers for _ in range(messages))
    requested = sorted(map(str, transfers))
    for known in frame.series_blocks():
        own = known.series.workload
        if sorted(map(str, own.transfers)) != requested or own.states != workload.states:
            continue
        blocks = [block for block in known.blocks if block is not None and block.median > 0]
        if not blocks:
            return None
        used = usual_blocks(blocks)
        times: list[float] = []
        if len(requested) > 1 and all(len(b.transfers) == len(requested) for b in used):
            of_own = [median(each) for each in zip(*(b.transfers for b in used), strict=True)]
            times = _in_order(transfers, own.transfers, of_own)
        return MeasuredTimes(median([block.median for block in used]), len(used), tuple(times))
    return None


def requested_of(workload: Workload, machine: Machine, count: int) -> MessageTimes | None:
    """The messages of so many concurrent copies of a workload; None if their ends are not known, or
    if the set has different transfers."""
    found = message_of(workload, machine.ranks)
    if found is None or (len(workload.transfers) > 1 and (count > 1 or not found.method)):
        return None
    if count > 1:
        test = ONE_SENDER if found.method else found.test or ONE_SENDER
        return msgspec.structs.replace(found, count=count, test=test)
    return found


def _measured_messages(
    frame: SeriesFrame, machine: Machine, workload: Workload, count: int
) -> MeasuredTimes | None:
    """The median over the pairs of the same locality, or of these ranks if they are there."""
    requested = requested_of(workload, machine, count)
    if requested is None:
        return None
    tests = (requested.test,) if requested.method or requested.count > 1 else OF_ONE
    known = [
        each
        for each in messages_of(points_of(frame), machine.ranks)
        if (each.source, each.destination) == (requested.source, requested.destination)
        and (each.count, each.bytes) == (requested.count, requested.bytes)
        and (each.locality, each.method) == (requested.locality, requested.method)
        and each.test in tests
    ]
    own = [
        each for each in known if each.ranks in (requested.ranks, requested.ranks[::-1])
    ] or known
    if not own:
        return None
    seconds = [seconds for each in own for seconds in each.seconds]
    return MeasuredTimes(median(seconds), len(seconds))


def _in_order(
    transfers: Sequence[Transfer], own: Sequence[Transfer], times: Sequence[float]
) -> list[float]:
    """The times of ``own`` in the order of ``transfers``; equal ones in their own order."""
    left = grouped(zip(map(str, own), times, strict=True))
    return [left[str(transfer)].pop(0) for transfer in transfers]


def _require_sizes(workload: Workload, messages: int) -> None:
    if not workload.transfers:
        raise ModelError("a model predicts transfers, and none is named", remedy="name a transfer")
    if not workload.is_of_ranks:
        require_copies(workload)
    if not 1 <= messages <= MOST_TRANSFERS:
        raise ModelError(
            f"{messages} messages cannot be predicted", remedy=f"ask for 1 to {MOST_TRANSFERS}"
        )
    if len(workload.transfers) * messages > MOST_TRANSFERS:
        raise ModelError(
            f"{len(workload.transfers) * messages} transfers are too many",
            remedy=f"name at most {MOST_TRANSFERS}",
        )
    for transfer in workload.transfers:
        if transfer.bytes <= 0:
            raise ModelError(
                f"{transfer} has no size, and no time without it", remedy="write a size: of 64MiB"
            )


def _predicted(curve: CurveModel, bytes: int) -> CurvePrediction:
    found = curve.predict(bytes)
    if found is None:
        raise ModelError(
            f"{format_bytes(bytes)} is more than {MOST_BEYOND} times beyond what was measured of "
            f"{curve.text}, {size_span(curve.sizes[0], curve.sizes[-1])}",
            remedy="name a size nearer to them, or survey more sizes: waywiser survey --sizes",
        )
    return found


def _widened(seconds: float, around: Interval, alone: Iterable[CurvePrediction]) -> Interval:
    """The interval of a time by capacities with that of the curves, if a size was not measured:
    they are independent, so the squares of logarithms add."""
    more = max(
        (math.log(e.interval.high / e.seconds) for e in alone if not e.is_measured), default=0.0
    )
    low = math.hypot(math.log(seconds / around.low), more)
    high = math.hypot(math.log(around.high / seconds), more)
    return Interval(seconds * math.exp(-low), seconds * math.exp(high))


def _notes_of(
    workload: Workload | None, curve: CurveModel, found: CurvePrediction
) -> Iterator[str]:
    if workload is not None and curve.text != workload.curve:
        yield (
            f"{workload.curve} was not measured near this size: it is taken to be equal to "
            f"{curve.text}"
        )
    if found.extrapolated:
        yield (
            f"{format_bytes(found.bytes)} is beyond the measured sizes of {curve.text}, "
            f"{size_span(curve.sizes[0], curve.sizes[-1])}"
        )
    longer = longer_before(curve.times_at, curve.sizes, found.bytes)
    if longer is not None:
        yield longer.text(found.bytes, found.seconds)


def _count_notes(model: CountModel, found: CountPrediction) -> Iterator[str]:
    """What is to be known of a prediction of several messages."""
    longer = longer_before(partial(model.times_at, found.count), model.sizes, found.bytes)
    if longer is not None:
        yield longer.text(found.bytes, found.seconds)
    if model.jobs == 1:
        yield "it rests on one job, so the interval has no scatter between jobs"


def _sizes_text(curve: CurveModel, found: CurvePrediction) -> str:
    """``PATH of 1MiB and 4MiB``, ``PATH, 9 sizes from 8B to 1GiB``."""
    if found.is_measured:
        return f"{curve.text} of {format_bytes(found.bytes)}"
    sizes = found.rests_on
    if len(sizes) <= 4:
        return f"{curve.text} of {', '.join(map(format_bytes, sizes))}"
    return f"{curve.text}, {len(sizes)} sizes from {size_span(sizes[0], sizes[-1])}"


def _count_name(model: CountModel) -> str:
    return model.key.name if model.method else f"{model.kind} [test={model.test}]"


def _counts_text(model: CountModel) -> str:
    return (
        f"{_count_name(model)}, {model.counts[0]} to {model.counts[-1]} messages of "
        f"{size_span(model.sizes[0], model.sizes[-1])}"
    )


def _limiting(capacities: Sequence[Capacity]) -> tuple[LimitingCapacity, ...]:
    return msgspec.convert(capacities, tuple[LimitingCapacity, ...], from_attributes=True)


def _is_between_host_and_gpus(workload: Workload) -> bool:
    """Whether copies are between memory of the host and several GPUs."""
    ends = [transfer.path.places for transfer in workload.transfers]
    of_host = [pair for pair in ends if any(place.kind == "numa" for place in pair)]
    return len({place for pair in of_host for place in pair if place.kind == "gpu"}) > 1
