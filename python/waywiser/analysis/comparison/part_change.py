"""What a comparison compares: the sizes of a curve in one regime, before and after, and what was
decided about them.

All sizes of a curve that one process measures share its memory, and change together. So a part has
changed as its typical size has: the one whose change is the median over sizes, so that a drop at
one size is that size's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, product
from statistics import fmean
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from waywiser.curves import START_BYTES, Regime
from waywiser.profile import BlockSummary
from waywiser.stats import (
    FALSE_LOSSES,
    SURVEYS_FOR_VARIANCE,
    Decision,
    Effect,
    Noise,
    Surveys,
    Variance,
    averaged,
    of_difference,
    process_variance,
    survey_variance,
)
from waywiser.stats.level_shift import may_return, returned
from waywiser.stats.noise_model import variance_of
from waywiser.words import Reason, Value, Workload, format_bytes, grouped, size_of


class OtherSize(Value, frozen=True):
    """Bytes of the largest transfer, of a series that was measured at one size before and at
    another one now (`waywiser.analysis.comparison.other_sizes`)."""

    before: int
    now: int
    plateau: Literal["before", "now"]
    """The side on its plateau."""

    @property
    def one_value(self) -> str:
        """Why a path is not decided of which the other side has one value."""
        one, plateau = self.now, self.before
        if self.plateau == "now":
            one, plateau = plateau, one
        return f"one value of {format_bytes(one)} beside the plateau at {format_bytes(plateau)}"

    def __str__(self) -> str:
        return f"{format_bytes(self.before)} to {format_bytes(self.now)}"


def one_value_text(size: SizeChange) -> str:
    """Why a size is not decided of which one side has one value."""
    return size.other_size.one_value if size.other_size else f"one value of {size_of(size.series)}"


Key = tuple[str, Regime]

Process = tuple[int, int]
"""The file of a side, and the process in it."""

Medians = Mapping[Process, float]
"""The median seconds of one series on one side."""

SIDES = 2
"""Sides of a comparison: both show the noise, so that one alone has half of the freedom."""

BOTH = slice(0, SIDES)
"""The sides before and now; ``slice(0, 1)`` is that of before alone."""

_UNSET: Any = msgspec.UNSET


class SizeChange(Value, frozen=True, dict=True):
    """One series of a path, before and now."""

    series: str
    bytes: int
    rated_bytes: int
    """The bytes that a bandwidth counts; 0 if it has none."""
    seconds_before: float
    seconds_now: float
    """Medians over processes, as `waywiser.profile.estimate` has them, and over surveys. The
    decision is about their ratio."""
    processes: tuple[int, int]
    """Processes that measured it, before and now."""
    surveys: tuple[int, int]
    decision: Decision = _UNSET
    """Not set before all sizes of all paths are decided together."""
    verdict: Reason = "not decided"
    regime: Regime = "bandwidth"
    other_size: OtherSize | None = None
    """The sizes that were measured, if they differ: the time of the side on its plateau is then
    that of as many bytes as the other side has measured."""
    workload: Workload = _UNSET
    """Not set once it is decided, as all that follows: what the sides have measured."""
    medians: tuple[Medians, ...] = _UNSET
    blocks: tuple[tuple[BlockSummary, ...], ...] = _UNSET
    """What each process measured, by side."""
    sides: tuple[Surveys, ...] = _UNSET
    """``medians`` by survey."""
    is_in_order: bool | None = _UNSET
    """Whether the first side was measured before the second; None if that is not known."""
    is_only: bool = _UNSET
    """Whether both sides have no other size of its part."""

    def decided(self, decision: Decision, verdict: Reason) -> SizeChange:
        """The same with what it means, and without what was measured."""
        return replace(
            self, decision=decision, verdict=verdict, workload=_UNSET, medians=_UNSET,
            blocks=_UNSET, sides=_UNSET, is_in_order=_UNSET, is_only=_UNSET,
        )  # fmt: skip

    @property
    def is_time(self) -> bool:
        """Whether its figures are times, and its change is one of time."""
        return self.regime in ("operation", "latency") or self.rated_bytes < START_BYTES

    @property
    def log_ratio(self) -> float:
        """The logarithm of the time now over that before."""
        return math.log(self.seconds_now / self.seconds_before)

    @property
    def is_one_value(self) -> bool:
        """Whether one value stands beside the plateau of another size, or one figure of another
        tool, at one size, beside processes with samples."""
        before, now = self.medians
        if self.other_size is not None:
            return len(now if self.other_size.plateau == "before" else before) == 1
        have_samples = [_have_samples(blocks) for blocks in self.blocks]
        return self.is_only and any(
            len(medians) == 1 and not own and other
            for medians, own, other in (
                (before, have_samples[0], have_samples[1]),
                (now, have_samples[1], have_samples[0]),
            )
        )

    def process_variance(self, sides: slice) -> Variance:
        """The variance between processes, at least that of a process by its samples, of the side
        where it is larger. Processes of one survey show themselves how much their samples depend on
        each other: then the least is that of independent samples."""
        replicates = [*chain(*(side.replicates for side in self.sides[sides]))]
        are_several = any(len(survey) > 1 for survey in replicates)
        within = [
            sorted([_least_error(block, are_several) ** 2 for block in of])
            for of in self.blocks[sides]
        ]
        return process_variance(replicates, max([each[len(each) // 2] for each in within]))

    def shift(self, sides: slice) -> float:
        """The size of a level that shifted within a survey and returned, in it or in the later one
        of the other side."""
        seconds = [side.seconds for side in self.sides[sides]]
        times = [each for side in seconds for survey in side for each in survey]
        if not may_return(times):
            return 0.0
        orders = {True: (1,), False: (-1,), None: (1, -1)}[self.is_in_order]
        return min(max(map(_returned, product(*seconds[::order]))) for order in orders)

    def outliers(self, side: int) -> dict[Process, float]:
        """The bandwidth of each process of a side that is an outlier, over that of the median
        process of its survey."""
        surveys = self.sides[side]
        numbers = list(by_survey(self.medians[side]))
        kept = dict(zip(numbers, surveys.replicates, strict=True))
        middle = dict(zip(numbers, surveys.medians, strict=True))
        return {
            process: middle[process[0]] / seconds
            for process, seconds in self.medians[side].items()
            if math.log(seconds) not in kept[process[0]]
        }

    def ratio_with_outliers(self) -> float:
        """The mean bandwidth of all processes now, outliers too, over the bandwidth before."""
        before, now = self.sides
        mean = fmean(fmean(map(math.log, survey)) for survey in now.seconds)
        return before.middle / math.exp(mean)


class SideNoise(Value, frozen=True):
    """How one side scatters between its processes; a path borrows from equivalent paths."""

    deviation: float | None
    """Relative deviation between processes; None if no path of its kind has two processes."""
    detectable: float | None
    """The smallest relative loss that would have been found if both sides were as this one."""


UNKNOWN_NOISE = SideNoise(None, None)


class PartChange(Value, frozen=True, dict=True):
    """The sizes of a path in which the same thing sets the time, the smallest first."""

    regime: Regime
    processes: tuple[int, int]
    surveys: tuple[int, int]
    noise: tuple[SideNoise, SideNoise]
    """The noise of before and of now, each alone."""
    decision: Decision
    """That of the typical size."""
    ratio_with_outliers: float
    """The ratio of bandwidths if the outliers of now count, in the mean over processes."""
    verdict: Reason
    sizes: tuple[SizeChange, ...]
    between_surveys: float = 0.0
    """Relative deviation between surveys, beside that by their processes."""
    curve: str = _UNSET
    """Not set once it is decided, as what follows."""
    threshold: float = _UNSET
    """The relative change of the path that matters."""

    @classmethod
    def of(
        cls, curve: str, regime: Regime, sizes: Sequence[SizeChange], threshold: float
    ) -> PartChange:
        """What is not decided yet."""
        is_only = len(sizes) == 1
        own = tuple(replace(size, is_only=is_only) for size in sizes)
        size = _typical(own)
        known = UNKNOWN_NOISE, UNKNOWN_NOISE
        ratio = size.ratio_with_outliers()
        return cls(
            regime, size.processes, size.surveys, known, size.decision, ratio, size.verdict, own,
            curve=curve, threshold=threshold,
        )  # fmt: skip

    def decided(
        self, sizes: Iterable[SizeChange], alone: Sequence[Noise], together: Noise
    ) -> PartChange:
        """The same with decided sizes, and without what was measured. ``alone`` is the noise of
        before and of now, as each alone shows it."""
        sizes, sides = tuple(sizes), []
        for number, noise in enumerate(alone):
            side, shift = self.typical.sides[number], self.typical.shift(slice(number, number + 1))
            once = of_difference(side, side, noise, shift)
            both = Effect(0.0, Variance(once.value, SIDES * once.freedom), threshold=self.threshold)
            deviation = noise.process.deviation if noise.process.freedom > 0 else None
            sides.append(SideNoise(deviation, both.detectable()))
        (before, now), size = sides, _typical(sizes)
        return replace(
            self, decision=size.decision, verdict=size.verdict, sizes=sizes, noise=(before, now),
            between_surveys=(together.survey or together.machine).deviation, curve=_UNSET,
            threshold=_UNSET,
        )  # fmt: skip

    @cached_property
    def typical(self) -> SizeChange:
        """The size that most processes measured and whose change is the median of these; the
        smaller change of two. Of sizes with one decision the smallest shows it."""
        if self.decision is _UNSET:
            return _typical(self.sizes)
        return next(size for size in self.sizes if size.decision == self.decision)

    @property
    def key(self) -> Key:
        return self.curve, self.regime

    @cached_property
    def peers(self) -> Key:
        """What equivalent paths have in common: the curve without the numbers of its places."""
        return equivalence_class(self.curve), self.regime

    @cached_property
    def similar(self) -> Key:
        """The same without the executor's parameters."""
        return _PARAMETERS.sub(r"\1", self.peers[0]), self.regime

    def most_replicated(self, sides: slice) -> list[SizeChange]:
        return _most_replicated(self.sizes, sides)

    @cached_property
    def own_noise(self) -> Noise:
        """The noise of a size by the processes and surveys that measured this part; of single
        numbers by its sizes (`size_variance`)."""
        return self.noise_of(BOTH)

    def noise_of(self, sides: slice) -> Noise:
        """`own_noise` as these sides show it."""
        replicated = self.most_replicated(sides)
        processes = [size.process_variance(sides) for size in replicated]
        surveys = [survey_variance(size.sides[sides]) for size in replicated]
        highest = Variance(max(each.value for each in processes), 0.0)
        known = averaged(processes) or size_variance(self.sizes, sides) or highest
        return Noise(known, averaged([each for each in surveys if each]))


def _most_replicated(sizes: Iterable[SizeChange], sides: slice = BOTH) -> list[SizeChange]:
    """The sizes that most surveys have measured, and of these most processes of these sides."""
    number = [*range(SIDES)][sides]
    counts = grouped(
        ((sum(s.surveys[n] for n in number), min(s.processes[n] for n in number)), s) for s in sizes
    )
    return counts[max(counts)]


def _typical(sizes: Iterable[SizeChange]) -> SizeChange:
    ordered = sorted(_most_replicated(sizes), key=lambda size: size.log_ratio)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return min(middle, key=lambda size: abs(size.log_ratio))


FEWEST_SIZES = 5
"""Sizes that show how far they scatter around a line."""


def size_variance(sizes: Sequence[SizeChange], sides: slice = BOTH) -> Variance | None:
    """The variance of sizes of which each is one number, around a line over all sizes of a part,
    each side by itself; None for fewer than `FEWEST_SIZES`, and if samples say how they scatter."""
    import numpy as np

    from waywiser.stats import robust_lines

    blocks = (of for size in sizes for of in size.blocks[sides])
    if len(sizes) < FEWEST_SIZES or any(map(_have_samples, blocks)):
        return None
    of_sides = zip(*(size.sides[sides] for size in sizes), strict=True)
    seconds = np.array([[side.median for side in of] for of in of_sides])
    bytes_ = np.array([[size.bytes for size in sizes]] * len(seconds), float)
    lines, _ = robust_lines(bytes_, seconds, np.ones_like(seconds))
    off = np.log(seconds / (lines[:, :1] + lines[:, 1:] * bytes_))
    return variance_of(float((off**2).sum()), off.size - lines.size)


_PARAMETERS = re.compile(r"(?<= by )([a-z-]+)\[[^\]]*\]")
_NUMBERED = re.compile(r"\b(numa|gpu):([0-9]+)")


def equivalence_class(curve: str) -> str:
    """The text of a curve with its places numbered as they occur: ``gpu:3`` becomes ``gpu:#1``."""
    seen: dict[str, str] = {}

    def ordinal(match: re.Match[str]) -> str:
        kinds = sum(known.startswith(match[1]) for known in seen)
        return seen.setdefault(match[0], f"{match[1]}:#{kinds + 1}")

    return _NUMBERED.sub(ordinal, curve)


def by_survey(medians: Medians) -> dict[int, list[float]]:
    return grouped((file, value) for (file, _), value in medians.items())


def _least_error(block: BlockSummary, are_several: bool) -> float:
    known = block.independent_error if are_several else None
    return block.standard_error if known is None else known


def _have_samples(blocks: Iterable[BlockSummary]) -> bool:
    """Whether samples say how the medians of these processes scatter."""
    return any(block.standard_error for block in blocks)


def _returned(surveys: Iterable[Sequence[float]]) -> float:
    return returned([math.log(each) for each in chain.from_iterable(surveys)])


OF_OTHERS = 0.05
"""The share of `FALSE_LOSSES` that all effects have together that are no headline effects."""


def is_change(decision: Decision) -> bool:
    """Whether it is about a difference that is significant, or should be looked at again."""
    return decision.suspected or decision.outcome == "different"


def verdict_of(effect: Effect, decision: Decision, before: Surveys, now: Surveys) -> Reason:
    """The verdict on a part or size of a path.

    From `waywiser.stats.noise_model.SURVEYS_FOR_VARIANCE` surveys of a side on, a loss is a
    regression if it `is_certain`. With fewer each new survey has to show the change too, and there
    must be two of them.
    """
    if not is_change(decision):
        return "no change"
    direction = 1 if decision.slower else -1
    changes = [direction * math.log(survey / before.middle) for survey in now.medians]
    are_enough = max(len(before.medians), len(changes)) >= SURVEYS_FOR_VARIANCE
    if not are_enough and min(changes) <= effect.limit:
        return "no change"
    if not decision.slower:
        return "improvement"
    is_shown = are_enough or len(changes) > 1
    return "regression" if is_shown and is_certain(effect, decision) else "suspected"


def is_certain(effect: Effect, decision: Decision) -> bool:
    """Whether noise makes such a loss, among all that was tested together, with a chance of less
    than `FALSE_LOSSES`."""
    p = decision.p_corrected
    return decision.outcome == "different" and p is not None and p <= certain_level(effect)


def certain_level(effect: Effect) -> float:
    """The chance of all effects of its kind together at which a loss is certain. It has gains too,
    as that of a decision."""
    return 2 * FALSE_LOSSES * (1 - OF_OTHERS if effect.headline else OF_OTHERS)
