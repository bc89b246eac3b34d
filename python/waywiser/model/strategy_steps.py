"""The steps of strategies for messages between GPUs of two nodes, as measured and as modelled.

A measured time is the median of jobs, and of the pairs of a class. Around it is what a single time
of another job may be, by the scatter between jobs; of one job nothing shows it. A copy, or a share
of a process, of a size between two measured ones has the time that the model has for it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from waywiser.curves import size_span
from waywiser.machine import DECLARED
from waywiser.model import job_scatter
from waywiser.model.count_table import LEAST_COUNTS, CountKey, CountTimes
from waywiser.model.curve import CurveModel
from waywiser.model.machine_model import MachineModel
from waywiser.model.messages import ONE_SENDER, Locality, MessageClass, MessageTimes
from waywiser.model.prediction_interval import LEAST_SPREAD
from waywiser.model.published import WHOLE
from waywiser.model.rate import CountModel
from waywiser.model.strategies import StepCost, StepTime, of_counts, of_curve
from waywiser.stats import Interval, median
from waywiser.words import number_format

HOST, GPU = DECLARED.reference_memory("gpu", "numa"), DECLARED.reference_memory("gpu", "gpu")
"""The kinds of memory that messages and copies of ranks start and end in."""
SHARED_TESTS = ("max-rate", "node-pong")
"""Tests in which as many processes as messages send one each: of a size, and of a share of it."""
SHARED_COPIES = "memcpy-mult"
PLACES: tuple[Locality, ...] = ("on-socket", "on-node")
"""Where a copy between a process and a GPU may be: on one socket, or across sockets."""

StepTable = Mapping[tuple[int, int], StepTime]
"""Measured times by (number, bytes of each)."""


class MessageModels(NamedTuple):
    """What the steps are modelled by."""

    classes: Sequence[tuple[MessageClass, CurveModel]]
    counts: Sequence[CountModel]

    @classmethod
    def of(cls, model: MachineModel) -> MessageModels:
        """Those of a machine."""
        curves = {each.text: each for each in model.curves}
        return cls([(each, curves[each.name]) for each in model.messages], model.counts)

    def counted(self, kind: str, *tests: str) -> CountModel | None:
        """The model of several messages by the first of these tests that has one."""
        found = {each.key: each for each in self.counts}
        keys = [CountKey(kind, test) for test in tests]
        return next((found[key] for key in keys if key in found), None)


class MessageStep(NamedTuple):
    """One step of one profile."""

    name: str
    modelled: StepCost | None
    """None if nothing of it is modelled."""
    measured: StepCost | None
    lacks: str
    """What has to be measured for it."""
    extent: str = ""
    """The numbers and sizes that it was measured at; empty if at none."""


class StepMaker:
    """Makes the steps of one profile."""

    def __init__(
        self,
        messages: Sequence[MessageTimes],
        models: MessageModels,
        sender: tuple[int, int] | None,
        place: Locality | None,
    ) -> None:
        self._messages = messages
        self._models = models
        self._sender = sender
        self._place = place
        self.notes: list[str] = []

    def copy(self, source: str, destination: str) -> MessageStep:
        """One copy of the bytes of all messages."""
        name = _copy_name(source)
        found = self._class(source, destination, self._place)
        if found is None:
            return MessageStep(name, None, None, f"copies {name} of one process (memcpy)")
        model, table = found[1], _times_of_one(found[1])
        predicted = cache(partial(of_curve, model))

        def modelled(count: int, bytes: int) -> StepTime | None:
            return predicted(count * bytes)

        def measured(count: int, bytes: int) -> StepTime | None:
            total = count * bytes
            is_between = model.sizes[0] <= total <= model.sizes[-1]
            return table.get((1, total)) or (predicted(total) if is_between else None)

        extent = f"{name} of {size_span(model.sizes[0], model.sizes[-1])}"
        return MessageStep(name, modelled, measured, "", extent)

    def several(self, kind: str) -> MessageStep:
        """All messages, from one process. Without a model of several, one is known from pairs."""
        model, table = self._counted("off-node", kind, ONE_SENDER)
        found = self._class(kind, kind, "off-node")
        of_pairs = _times_of_one(found[1]) if found is not None else {}
        table = {**of_pairs, **table} if model is not None else {**table, **of_pairs}
        lacks = f"messages between {'GPUs' if kind == GPU else 'hosts'} of two nodes"
        if not table:
            return MessageStep("messages", None, None, f"{lacks} (mult_pong, ping_pong)")

        def modelled(count: int, bytes: int) -> StepTime | None:
            own = of_counts(model, count, bytes) if model is not None else None
            if own is None and count == 1 and found is not None:
                return of_curve(found[1], bytes)
            return own

        return MessageStep(
            "messages",
            modelled if model is not None or found is not None else None,
            lambda count, bytes: table.get((count, bytes)),
            _lacks(lacks, table),
            f"{'GPU' if kind == GPU else 'host'} memory, {_extent(table)}",
        )

    def shared(self, processes: int) -> MessageStep:
        """The bytes of all messages in equal shares of processes of the host."""
        lacks = f"messages of {processes} processes of a node (maxrate, node_pong)"
        found = self._counted("off-node", HOST, *SHARED_TESTS)
        return _of_shares("messages", found, processes, lacks)

    def between_processes(self, name: str, processes: int) -> MessageStep:
        """A share for each other process of the socket. No test has several such messages: they
        take as long as one at least, and at most as long as one after another."""
        found = self._class(HOST, HOST, PLACES[0])
        if found is None:
            return MessageStep(
                name, None, None, "messages between processes of a socket (ping_pong)"
            )
        others, predicted = processes - 1, cache(partial(of_curve, found[1]))

        def modelled(count: int, bytes: int) -> StepTime | None:
            one = predicted(max(1, count * bytes // processes))
            if one is None or one.interval is None:
                return None
            around = Interval(one.interval.low, one.interval.high * others)
            return StepTime(one.seconds * others, around, one.has_scatter)

        lacks = (
            "several messages of a process to others of its socket, which BenchPress does not have"
        )
        return MessageStep(name, modelled, None, lacks)

    def own_copies(self, source: str, processes: int) -> MessageStep:
        """A share copied by each process, all at once."""
        name = _copy_name(source)
        where = f"{name} {self._place}" if self._place else name
        lacks = f"copies {where} of {processes} processes of a GPU at once (memcpy_mult)"
        found = self._counted(self._place or PLACES[0], source, SHARED_COPIES)
        return _of_shares(name, found, processes, lacks)

    def _counted(
        self, place: Locality, kind: str, *tests: str
    ) -> tuple[CountModel | None, StepTable]:
        """(the model, the measured times) of several messages or copies at a place. A model is
        of all places, so there is none if others were measured too."""
        own = [each for each in self._messages if each.source == kind and each.test in tests]
        here = [each for each in own if each.locality == place]
        times: defaultdict[tuple[int, int], tuple[float, ...]] = defaultdict(tuple)
        for each in here:
            times[each.bytes, each.count] += each.seconds
        model = self._models.counted(kind, *tests) if len(here) == len(own) else None
        return model, job_times(times)

    def _class(
        self, source: str, destination: str, place: Locality | None
    ) -> tuple[MessageClass, CurveModel] | None:
        """That of the sender's pair, else the one with most pairs."""
        key = source, destination, place
        found = [
            pair
            for pair in self._models.classes
            if (pair[0].source, pair[0].destination, pair[0].locality) == key
            and pair[0].test == ("ping-pong" if source == destination else "")
        ]
        if not found:
            return None
        own = {self._sender, self._sender and self._sender[::-1]}
        best = max(found, key=lambda pair: (bool(own & set(pair[0].pairs)), len(pair[0].pairs)))
        if len(found) > 1:
            note = f"of {len(found)} classes of pairs, which differ, {best[0].name} is taken"
            self.notes += [note] if note not in self.notes else []
        return best


def _of_shares(
    name: str, found: tuple[CountModel | None, StepTable], processes: int, lacks: str
) -> MessageStep:
    """A step by several processes at once, each with its share of all bytes."""
    model, table = found
    known = sorted(bytes for count, bytes in table if count == processes)
    if model is not None and processes > model.counts[-1]:
        model = None
    predicted = cache(partial(of_counts, model, processes)) if model is not None else None

    def modelled(count: int, bytes: int) -> StepTime | None:
        return predicted(max(1, count * bytes // processes)) if predicted is not None else None

    def measured(count: int, bytes: int) -> StepTime | None:
        share = count * bytes // processes
        sizes = range(share, max(share - WHOLE, 0), -1)
        exact = next((table[processes, n] for n in sizes if (processes, n) in table), None)
        is_between = known[0] <= share <= known[-1]
        return exact or (modelled(count, bytes) if is_between else None)

    span = size_span(known[0], known[-1]) if known else ""
    return MessageStep(
        name,
        modelled if model is not None else None,
        measured if known else None,
        _lacks(lacks, known),
        f"{name} of {processes} processes, {span} each" if known else "",
    )


def job_times(times: CountTimes) -> dict[tuple[int, int], StepTime]:
    """The usual time by (number, bytes), with the scatter between jobs around it."""
    sizes_of: defaultdict[int, list[int]] = defaultdict(list)
    for size, number in sorted(times):
        sizes_of[number].append(size)
    found = {}
    for number, sizes in sizes_of.items():
        jobs = [dict(enumerate(times[size, number])) for size in sizes]
        scatter = dict(zip(sizes, job_scatter.of_sizes(jobs, lambda job: job), strict=False))
        for size in sizes:
            found[number, size] = _measured(median(times[size, number]), scatter.get(size))
    return found


def _times_of_one(model: CurveModel) -> dict[tuple[int, int], StepTime]:
    """The measured times of a class, each as those of one message."""
    scatter = model.scatter or (None,) * len(model.sizes)
    rows = zip(model.sizes, model.times, scatter, strict=True)
    return {(1, size): _measured(seconds, around) for size, seconds, around in rows}


def _measured(seconds: float, scatter: float | None) -> StepTime:
    if scatter is None:
        return StepTime(seconds, None, False, True)
    factor = math.exp(max(scatter, LEAST_SPREAD))
    return StepTime(seconds, Interval(seconds / factor, seconds * factor), True, True)


def _copy_name(source: str) -> str:
    return "D2H" if source == GPU else "H2D"


def _lacks(text: str, measured: object) -> str:
    """What a step lacks: of what was ``measured`` a model needs more."""
    return f"{text} of {LEAST_COUNTS} numbers at two sizes or more" if measured else text


def _extent(keys: Iterable[tuple[int, int]]) -> str:
    """``1 to 6 messages of 4 B to 512 KiB``."""
    counts, sizes = zip(*keys, strict=True)
    numbers = number_format.count(max(counts), "message")
    span = numbers if min(counts) == max(counts) else f"{min(counts)} to {numbers}"
    return f"{span} of {size_span(min(sizes), max(sizes))}"
