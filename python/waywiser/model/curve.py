"""One path over sizes: what a transfer takes at sizes that were not measured.

The form is chosen by cross-validation (`waywiser.model.curve_form`). A curve of few sizes whose
class has one that was measured at more sizes borrows the shape of that one: the ratio of the two is
interpolated, and not the time.

Latency and inverse rate are given only if the measurements determine them. A fit alone is no
reason: of a curve whose time falls with its size, or that no line describes, they are *not
identified*, with the reason.

Predictions have an interval for a single time (`waywiser.model.prediction_interval`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from waywiser.curves import points_of, representatives
from waywiser.machine import Machine
from waywiser.model import job_scatter
from waywiser.model.alone import longest
from waywiser.model.curve_form import CurveForm, Form, forms_of
from waywiser.model.falling_times import drop_text
from waywiser.model.neighbours import InterpolatedTimes, between
from waywiser.model.prediction_interval import PathKind, interval, path_kind, spread
from waywiser.model.timed_sets import usual_blocks
from waywiser.profile import SeriesFrame
from waywiser.stats import LEAST_SIZES, CurveBlocks, Interval, Postal, ProtocolRange
from waywiser.stats.line_ranges import describes
from waywiser.stats.postal import DRAWS, fit_all
from waywiser.stats.scatter import medians
from waywiser.words import Value, format_bytes

Array = NDArray[Any]

MOST_BEYOND = 4
"""Sizes beyond the measured ones that are predicted, as a factor: a rate that has not settled, or
memory that ends, shows at no smaller size."""
NEAR_SIZES = 2
"""Measured sizes on either side whose deviations show that of a size between them."""


class CurveTimes(NamedTuple):
    """One measured curve."""

    text: str
    """`Workload.curve`."""
    kind: PathKind
    blocks: CurveBlocks
    scatter: tuple[float, ...] = ()
    """The deviation that 95 % of times of another job do not exceed, by size, as a logarithm
    (`waywiser.model.job_scatter`); empty if the blocks are no jobs, or of one. Models add that of
    processes."""
    least: tuple[float, ...] = ()
    """The seconds of each size: the minimum of pairs and jobs; empty if the blocks are no jobs."""
    jobs: int = 0
    """The number of jobs; 0 if the blocks are processes of a survey."""


class FittedParameter(Value, frozen=True):
    """A parameter of a model, or why the measurements do not determine it."""

    value: float | None
    interval: Interval | None = None
    """95 %, if the parameter is one of a line over all sizes."""
    reason: str = ""
    """Why it is not identified; empty if it is."""
    falls: bool = False
    """Whether the time falls as the size grows; then ``reason`` says from which size on."""


class CurvePrediction(Value, frozen=True):
    """The time of one size."""

    bytes: int
    seconds: float
    interval: Interval
    """95 %, of a single time, and not of a parameter."""
    is_measured: bool
    extrapolated: bool
    """The size is beyond the measured ones: the interval is only as good as the form."""
    rests_on: tuple[int, ...]
    """The measured sizes that it was made from."""


class CurveModel(Value, frozen=True):
    """A fitted curve."""

    text: str
    kind: PathKind
    sizes: tuple[int, ...]
    """Measured sizes in bytes, ascending."""
    times: tuple[float, ...]
    """Seconds of each: the median of blocks."""
    form: Form
    deviations: tuple[float | None, ...]
    """How far each size is from what the others predict of it in this form, as a logarithm; None
    of the ends."""
    postal: Postal | None
    """The line over all sizes; None if there are too few."""
    lines: tuple[ProtocolRange, ...]
    """Two or three lines that describe the curve, if one does not; else empty."""
    is_line: bool
    """One line describes the curve at all sizes."""
    latency: FittedParameter
    """Seconds; with several lines that of the first."""
    inverse_rate: FittedParameter
    """Seconds per byte; with several lines that of the last."""
    switches: tuple[ProtocolRange, ...] = ()
    """The lines that predictions are made from, if the form is switched lines."""
    borrowed_from: str = ""
    """The curve whose shape it has; empty if it has its own."""
    nodes: tuple[tuple[int, float], ...] = ()
    """(bytes, seconds) of the sizes at which the shape was borrowed."""
    ratio_spread: float = 0.0
    """How far its ratios to the borrowed shape scatter, as a logarithm."""
    scatter: tuple[float, ...] = ()
    """As `CurveTimes.scatter`; of a survey that of its processes."""
    least: tuple[float, ...] = ()
    """As `CurveTimes.least`."""

    @property
    def error(self) -> float | None:
        """The median deviation of sizes that were held out, as a logarithm; None if none was."""
        known = [abs(each) for each in self.deviations if each is not None]
        return float(np.median(known)) if known else None

    def seconds(self, bytes: int) -> float:
        """The time of a transfer of so many bytes, at any size."""
        return float(self._seconds(bytes)[0])

    def reaches(self, bytes: int) -> bool:
        """Whether a size is at most `MOST_BEYOND` times beyond the measured ones."""
        return self.sizes[0] / MOST_BEYOND <= bytes <= self.sizes[-1] * MOST_BEYOND

    def predict(self, bytes: int) -> CurvePrediction | None:
        """Returns None for a size that is more than `MOST_BEYOND` times beyond the measured ones:
        nothing is known of it."""
        if not self.reaches(bytes):
            return None
        seconds, spreads = self._seconds(bytes)
        if bytes in self.sizes:
            seconds = self.times[self.sizes.index(bytes)]
        return CurvePrediction(
            bytes=bytes,
            seconds=seconds,
            interval=interval(seconds, spreads, self.kind, self._scatter(bytes)),
            is_measured=bytes in self.sizes,
            extrapolated=not self.sizes[0] <= bytes <= self.sizes[-1],
            rests_on=tuple(sorted(self._around(bytes)))
            if self.form == "neighbours"
            else self.sizes,
        )

    @property
    def _arrays(self) -> tuple[Array, Array]:
        """(bytes, seconds) that neighbours are taken from."""
        pairs = self.nodes or tuple(zip(self.sizes, self.times, strict=True))
        return np.array([n for n, _ in pairs], float), np.array([t for _, t in pairs])

    def _scatter(self, bytes: int) -> float:
        """That of the nearest sizes, the larger."""
        nearest = self._nearest(bytes)
        near = [each for n, each in zip(self.sizes, self.scatter, strict=False) if n in nearest]
        return max(near, default=0.0)

    def _nearest(self, bytes: int) -> set[int]:
        below = [size for size in self.sizes if size <= bytes][-1:]
        return {*below, *[size for size in self.sizes if size >= bytes][:1]}

    def _around(self, bytes: int) -> set[int]:
        """The two nearest measured sizes on either side."""
        below = [size for size in self.sizes if size <= bytes][-NEAR_SIZES:]
        return {*below, *[size for size in self.sizes if size >= bytes][:NEAR_SIZES]}

    def times_at(self, at: Array) -> Array:
        """The times of some sizes, as `predict` states them: measured ones at measured sizes."""
        sizes, times = self._arrays
        near = np.searchsorted(sizes, at).clip(max=len(sizes) - 1)
        return np.where(sizes[near] == at, times[near], self._interpolated(at).seconds)

    def _interpolated(self, at: Array) -> InterpolatedTimes:
        sizes, times = self._arrays
        if len(sizes) == 1:
            return InterpolatedTimes(
                times[0] * np.maximum(1.0, at / sizes[0]), np.full(at.shape, np.nan)
            )
        found = between(sizes, times, at)
        seconds = found.seconds
        if self.form == "line" and self.postal is not None:
            line = self.postal.latency + self.postal.inverse_rate * at
            seconds = np.where(line > 0, line, seconds)
        elif self.form == "switched lines":
            seconds = _on_lines(self.switches, at, seconds)
        return InterpolatedTimes(seconds, found.gap)

    def _seconds(self, bytes: int) -> tuple[float, float]:
        """(seconds, spread) of any size."""
        found = self._interpolated(np.array([float(bytes)]))
        seconds = found.seconds
        if len(self.nodes or self.sizes) == 1:
            return float(seconds[0]), float(spread(*(np.array([np.nan]),) * 3)[0])
        around = self._around(bytes)
        near = [
            abs(deviation)
            for size, deviation in zip(self.sizes, self.deviations, strict=True)
            if deviation is not None and size in around
        ]
        own = spread(
            found.gap if bytes not in self.sizes else np.zeros(1),
            np.array([np.mean(near) if near else np.nan]),
            np.array([np.nan if self.error is None else self.error]),
        )
        return float(seconds[0]), float(math.hypot(float(own[0]), self.ratio_spread))


def times_of(frame: SeriesFrame, machine: Machine) -> list[CurveTimes]:
    """The measured curves of single transfers, without the blocks that are outliers."""
    first = representatives((series.workload for series in frame.series), machine)
    found: dict[str, list[tuple[int, dict[int, float], float]]] = {}
    kinds: dict[str, PathKind] = {}
    for series in points_of(frame):
        kind = path_kind(series.workload, machine.traits)
        if kind is None or not series.blocks or series.bytes <= 0:
            continue
        used = usual_blocks(series.blocks)
        within = max((block.standard_error for block in used if block.has_interval), default=0.0)
        medians_of = {block.block: block.median for block in used}
        found.setdefault(series.curve, []).append((series.bytes, medians_of, within))
        kinds[series.curve] = kind
    curves = []
    for text, points in found.items():
        points.sort(key=lambda point: point[0])
        sizes, blocks, errors = zip(*points, strict=True)
        if len(set(sizes)) == len(sizes):
            curves.append(
                CurveTimes(text, kinds[text], CurveBlocks(sizes, blocks, errors, first[text]))
            )
    return curves


def fit_curves(curves: Sequence[CurveTimes], draws: int = DRAWS) -> list[CurveModel]:
    """The models in the order given; intervals of parameters are from so many draws."""
    curves = _with_scatter(curves)
    fits = fit_all([curve.blocks for curve in curves], draws)
    times = [medians(curve.blocks.table) for curve in curves]
    forms = forms_of([curve.blocks.bytes for curve in curves], times)
    own = list(map(_fitted, curves, times, fits, forms))
    alike = [curve.blocks.alike for curve in curves]
    shapes = longest(pair for pair in zip(alike, own, strict=True) if pair[0] is not None)
    return [_borrowed(model, shapes.get(key)) for key, model in zip(alike, own, strict=True)]


def _with_scatter(curves: Sequence[CurveTimes]) -> list[CurveTimes]:
    """The curves with what all of them show of how far another job or process is."""
    jobs, sizes = [each.jobs for each in curves], [each.blocks.blocks for each in curves]
    scatters = job_scatter.with_others([each.scatter for each in curves], jobs, sizes)
    surveyed = [n for n, count in enumerate(jobs) if not count]
    of_processes = job_scatter.of_processes(
        [sizes[n] for n in surveyed], [curves[n].kind for n in surveyed]
    )
    for n, scatter in zip(surveyed, of_processes, strict=True):
        scatters[n] = scatter
    pairs = zip(curves, scatters, strict=True)
    return [each._replace(scatter=scatter) for each, scatter in pairs]


def _fitted(curve: CurveTimes, times: Array, postal: Postal | None, form: CurveForm) -> CurveModel:
    is_line = postal is not None and describes(postal.deviations)
    lines = () if postal is None or is_line else form.describing
    falls = drop_text(curve.blocks.bytes, times.tolist())
    latency, inverse_rate = _parameters(postal, is_line, lines, falls)
    return CurveModel(
        text=curve.text,
        kind=curve.kind,
        sizes=tuple(curve.blocks.bytes),
        times=tuple(times.tolist()),
        form=form.form,
        deviations=tuple(None if each != each else each for each in form.deviations.tolist()),
        postal=postal,
        lines=lines,
        is_line=is_line,
        latency=latency,
        inverse_rate=inverse_rate,
        switches=form.switches,
        scatter=curve.scatter,
        least=curve.least,
    )


def _on_lines(lines: Sequence[ProtocolRange], at: Array, chord: Array) -> Array:
    """The times of sizes by the line of their range; between two ranges by the neighbours."""
    found = chord.copy()
    for n, line in enumerate(lines):
        within = (at >= line.low) & (at <= line.high)
        within |= (at < line.low) if n == 0 else (at > line.high) & (n == len(lines) - 1)
        found = np.where(within, line.latency + line.inverse_rate * at, found)
    return np.where(found > 0, found, chord)


def _parameters(
    postal: Postal | None, is_line: bool, lines: Sequence[ProtocolRange], falls: str
) -> tuple[FittedParameter, FittedParameter]:
    """(latency, inverse rate), each with the reason if the measurements do not determine it."""
    if postal is None:
        few = FittedParameter(None, reason="the sizes are too few, or too close, for a fit")
        return few, few
    flat = falls or "the time does not grow with the size"
    if is_line:
        return (
            _identified(postal.latency, postal.latency_interval, "the line may begin at 0"),
            _identified(postal.inverse_rate, postal.inverse_rate_interval, flat, falls=bool(falls)),
        )
    if not lines:
        none = FittedParameter(None, reason="one to three lines do not describe the curve")
        return none, FittedParameter(None, reason=falls, falls=True) if falls else none
    why = falls or f"{flat} from {format_bytes(lines[-1].low)} on"
    return (
        _identified(lines[0].latency, None, "the first line begins below 0"),
        _identified(lines[-1].inverse_rate, None, why, falls=bool(falls)),
    )


def _identified(
    value: float, around: Interval | None, reason: str, *, falls: bool = False
) -> FittedParameter:
    """A parameter that is above 0, or else the ``reason`` why it is not identified."""
    if (around.low if around else value) <= 0:
        return FittedParameter(None, reason=reason, falls=falls)
    return FittedParameter(value, around)


def _borrowed(model: CurveModel, longest: CurveModel | None) -> CurveModel:
    """The model with the shape of the longest of its class, if that is longer and the sizes of
    this one are too few for a form."""
    if longest is None or longest is model or len(longest.sizes) <= len(model.sizes):
        return model
    if len(model.sizes) >= LEAST_SIZES:
        return model
    shape = np.array([longest.seconds(size) for size in model.sizes])
    ratios = np.log(np.array(model.times) / shape)
    added = [size for size in longest.sizes if size not in model.sizes]
    at = np.interp(np.log(added), np.log(model.sizes), ratios)
    nodes = dict(zip(model.sizes, model.times, strict=True))
    for size, ratio in zip(added, at.tolist(), strict=True):
        nodes[size] = longest.seconds(size) * math.exp(ratio)
    scatter = float(np.std(ratios, ddof=1)) if len(ratios) > 1 else 0.0
    return msgspec.structs.replace(
        model,
        form="neighbours",
        deviations=tuple(
            dict(zip(longest.sizes, longest.deviations, strict=True)).get(size)
            for size in model.sizes
        ),
        borrowed_from=longest.text,
        nodes=tuple(sorted(nodes.items())),
        ratio_spread=scatter / 2,
    )
