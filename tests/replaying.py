"""A worker that answers from a recorded profile, so that everything above it runs anywhere.

    python tests/replaying.py FILE [--scale PATTERN=FACTOR]... [--resample SEED]
                              --read-fd N --write-fd M [--parent PID]

Samples come back as recorded and in order, or drawn again with replacement; a factor makes series
slower (above 1) or faster, so that a difference of known size can be looked for.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from waywiser.curves.select import matches_any
from waywiser.measure.probe.protocol import (
    Hello,
    Locate,
    Located,
    MeasuredVisit,
    Observe,
    Observed,
    Ready,
)
from waywiser.measure.probe.serve import Estimate, OrderFailed, located, parser, serve
from waywiser.measure.probe.share import share_of
from waywiser.profile import Profile, VisitRow
from waywiser.words import Transfer, Value, WaywiserError, Workload
from waywiser.words.numbers import decimal_number
from waywiser.words.records import Observation, Order, Samples, Visit

NOT_RECORDED = "not in the recording"


class Scale(Value, frozen=True):
    """All times of the series that the pattern matches, times this factor."""

    pattern: str
    factor: float

    @classmethod
    def parse(cls, text: str) -> Scale:
        """``PATTERN=1.05``; the pattern is one of ``--only``. Raises `WaywiserError`."""
        pattern, _, factor = text.rpartition("=")
        scale = cls(pattern.strip(), decimal_number(factor.strip()))
        if not scale.pattern or not 0 < scale.factor < float("inf"):
            raise WaywiserError(
                f"{text!r} is not a scale", remedy="write PATTERN=FACTOR, as in 'device=1.05'"
            )
        return scale


def command(
    file: Path, scales: Sequence[Scale] = (), resample: int | None = None
) -> tuple[str, ...]:
    """The worker command of `waywiser.measure.probe.options.ProbeOptions` for a recording."""
    words = [sys.executable, __file__, str(file.absolute())]
    words += [f"--scale={scale.pattern}={scale.factor!r}" for scale in scales]
    words += [] if resample is None else [f"--resample={resample}"]
    return tuple(words)


class Recording:
    """Answers orders from a profile; one group member's share of them."""

    def __init__(
        self, profile: Profile, hello: Hello, scales: Sequence[Scale], resample: int | None
    ) -> None:
        self._profile = profile
        self._hello = hello
        self._scales = scales
        self._resample = resample

    def prepare(self, order: Order, host_timed: Sequence[Transfer] = ()) -> None:
        """Raises `OrderFailed` for a series that was not recorded."""
        self._visit(order)

    def locate(self, request: Locate) -> Located:
        """What a worker of the recording found about the memory, each in its turn."""
        known = [each for each in self._profile.localities() if each.memory == str(request.memory)]
        if not known:
            raise OrderFailed("not-supported", NOT_RECORDED)
        found = known[self._hello.process.block % len(known)]
        return located(request, found)

    def observe(self, request: Observe) -> Observed:
        """What the survey of the recording saw of the GPU's copies."""
        known = [e for e in self._profile.machine.traits.who_copies if e.gpu == request.gpu]
        if not known or known[0].failure is not None:
            raise OrderFailed("not-supported", NOT_RECORDED)
        found = known[0]
        seen = {str(copy.transfer): copy.seen for copy in found.copies}
        unseen = Observation(reason=NOT_RECORDED)
        copies = tuple(seen.get(str(transfer), unseen) for transfer in request.transfers)
        return Observed(request.id, found.kernel, found.fill, copies, found.seconds)

    def measure(self, order: Order, estimate: Estimate) -> MeasuredVisit:
        """The recorded visit of the order's block; if there is none, that of another block,
        with a note. A recorded failure fails again."""
        visit = self._visit(order)
        if visit.failure is not None:
            raise OrderFailed(visit.failure.kind, visit.failure.reason)
        samples = self._samples(visit)
        if len(samples):
            estimate(len(samples), statistics.median(samples.span), float("nan"), float("nan"))
        measured = MeasuredVisit.of_visit(visit, samples, visit.setup_seconds)
        if visit.block == order.block:
            return measured
        notes = (*visit.notes, f"replayed from block {visit.block} of the recording")
        return msgspec.structs.replace(measured, notes=notes)

    def underway(self) -> str:
        return ""

    def _visit(self, order: Order) -> Visit:
        share = share_of(order.workload, self._hello.rank, self._hello.size)
        try:
            rows = self._rows.get(share.identity)
            if not rows:
                raise OrderFailed("not-supported", NOT_RECORDED)
            same_block = (row for row in rows if row.block == order.block)
            return self._profile.visit_of(next(same_block, rows[order.block % len(rows)]), share)
        except WaywiserError as error:
            raise OrderFailed("not-supported", str(error)) from error

    @cached_property
    def _rows(self) -> dict[str, list[VisitRow]]:
        return self._profile.rows_by_series()

    def _samples(self, visit: Visit) -> Samples:
        samples = visit.samples
        if self._resample is not None:
            seed = f"{self._resample} {visit.workload.identity} {visit.block}"
            rows = range(len(samples))
            samples = take(samples, random.Random(seed).choices(rows, k=len(rows)))
        return slower(samples, self._factor(visit.workload))

    def _factor(self, workload: Workload) -> float:
        factor = 1.0
        for scale in self._scales:
            if matches_any((str(workload), workload.curve), [scale.pattern]):
                factor *= scale.factor
        return factor


def take(samples: Samples, rows: Sequence[int]) -> Samples:
    """The samples with these numbers, in this order."""
    columns = msgspec.structs.asdict(samples)
    return Samples(**{name: tuple(c[row] for row in rows) for name, c in columns.items() if c})


def slower(samples: Samples, factor: float) -> Samples:
    """All times of the samples times the factor."""
    if factor == 1.0:
        return samples
    return msgspec.structs.replace(
        samples,
        span=tuple(seconds * factor for seconds in samples.span),
        host=tuple(seconds * factor for seconds in samples.host),
        transfers=tuple(tuple(s * factor for s in row) for row in samples.transfers),
        lanes=tuple(
            tuple(tuple(s * factor for s in lane) for lane in row) for row in samples.lanes
        ),
        alone=tuple(tuple(s * factor for s in row) for row in samples.alone),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``python tests/replaying.py``."""
    words = parser("answers a supervisor from a recorded profile")
    words.add_argument("file", type=Path, metavar="FILE")
    words.add_argument("--scale", action="append", default=[], metavar="PATTERN=FACTOR")
    words.add_argument("--resample", type=int, metavar="SEED")
    said = words.parse_args(arguments)

    def make(hello: Hello) -> tuple[Recording, Ready]:
        scales = [Scale.parse(text) for text in said.scale]
        profile = Profile.open(said.file)
        return Recording(profile, hello, scales, said.resample), Ready(os.getpid(), "replay")

    serve(said, make)


if __name__ == "__main__":
    main()
