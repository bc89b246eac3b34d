"""The form of a curve over sizes: one line, several lines, or lines between neighbours.

It is chosen by cross-validation (Stone, *Cross-Validatory Choice and Assessment of Statistical
Predictions*, J. R. Stat. Soc. B 36, 1974): each size but the ends is predicted by the others,

- by one line, the postal model of Bar-Noy & Kipnis (SPAA 1992), which is Hockney's
  (`waywiser.stats.postal`);
- by two or three lines with found switches, since libraries change their protocol at some size
  (`waywiser.stats.line_ranges`);
- by lines between measured neighbours (`waywiser.model.neighbours`);

and the form with the least mean deviation is used. Curves of equally many sizes are worked on
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.model.neighbours import held_out
from waywiser.stats import LEAST_SIZES, ProtocolRange, robust_lines
from waywiser.stats.line_ranges import MOST_LINES, SIZES_OF_LINE, LineRanges, at_once

Array = NDArray[Any]

Form = Literal["line", "switched lines", "neighbours"]

NEARER = 0.6
"""Share of the deviation of neighbours that counts: while a size is held out they are twice as far
apart as when all are there, and lines are not. Of 0.6, 0.75 and 0.85 it predicts the recorded
profiles best."""
MOST_DEVIATION = 0.2
"""A larger deviation counts as this one, so that a single disturbed size does not choose."""
_LEAST_TIME = 1e-3
"""The fraction of a measured time that a predicted one counts as that is less, or below 0."""


class CurveForm(NamedTuple):
    """The form that predicts the sizes of a curve best that were held out."""

    form: Form
    deviations: Array
    """How far each size is from what the others predict of it in this form, as a logarithm;
    not-a-number of the ends."""
    switches: tuple[ProtocolRange, ...] = ()
    """The lines, if the form is switched lines."""
    describing: tuple[ProtocolRange, ...] = ()
    """The fewest lines, of two and more, that describe the curve, in whichever form; none if two
    or three do not."""


def forms_of(sizes: Sequence[Sequence[int]], times: Sequence[Array]) -> list[CurveForm]:
    """The forms of curves, in their order. ``times`` are seconds, above 0."""
    found: dict[int, CurveForm] = {}
    for numbers in _together(sizes):
        n = np.array([sizes[each] for each in numbers], float)
        t = np.array([times[each] for each in numbers])
        found.update(zip(numbers, _forms(n, t), strict=True))
    return [found[number] for number in range(len(sizes))]


def best_lines(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[ProtocolRange, ...]:
    """One to three lines, as many as predict sizes best that are held out."""
    n, t = np.array([sizes], float), np.array([seconds], float)
    ranges, chords = LineRanges(n, t), held_out(n, t)
    most = max(1, min(MOST_LINES, (len(sizes) - 1) // SIZES_OF_LINE))
    errors = {
        count: _means(_off_lines(ranges, count, chords, t))[0] for count in range(1, most + 1)
    }
    return ranges.best(min(errors, key=lambda count: errors[count]))[0]


def _together(sizes: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The positions of curves with equally many sizes, as many at once as are worked on together;
    a curve whose sizes do not ascend alone."""
    by_width: dict[object, list[int]] = {}
    for number, own in enumerate(sizes):
        ascends = all(a < b for a, b in pairwise(own))
        by_width.setdefault(len(own) if ascends else (number,), []).append(number)
    for numbers in by_width.values():
        most = at_once(len(sizes[numbers[0]]))
        yield from (numbers[start : start + most] for start in range(0, len(numbers), most))


def _forms(sizes: Array, times: Array) -> list[CurveForm]:
    """The forms of curves with equally many sizes, which are rows."""
    curves, width = sizes.shape
    if width < 3 or not (np.diff(sizes) > 0).all():
        return [CurveForm("neighbours", np.full(width, np.nan)) for _ in range(curves)]
    chords = held_out(sizes, times)
    off: dict[int, Array] = {0: np.log(chords / times)}
    errors = {0: NEARER * _means(off[0])}
    ranges = LineRanges(sizes, times)
    if width >= LEAST_SIZES:
        off[1] = np.log(_held_out_by_line(sizes, times) / times)
        errors[1] = _means(off[1])
        for count in range(2, min(MOST_LINES, (width - 1) // SIZES_OF_LINE) + 1):
            off[count] = _off_lines(ranges, count, chords, times)
            known = ~np.isnan(off[count][:, 1:-1]).any(axis=1)
            errors[count] = np.where(known, _means(off[count]), np.inf)
    best = np.argmin(list(errors.values()), axis=0).tolist()  # the first of equals
    describing = ranges.describing()
    switches = {count: ranges.best(count) for count in set(best) if count > 1}
    return [
        CurveForm(_NAMES[min(lines, 2)], off[lines][row],
                  switches[lines][row] if lines > 1 else (), describing[row])
        for row, lines in enumerate(best)
    ]  # fmt: skip


_NAMES: tuple[Form, ...] = ("neighbours", "line", "switched lines")
"""By the number of lines, of which 0 are those between neighbours."""


def _means(deviations: Array) -> Array:
    """The mean deviation of each row."""
    found: Array = np.nanmean(np.minimum(np.abs(deviations), MOST_DEVIATION), axis=1)
    return found


def _held_out_by_line(sizes: Array, times: Array) -> Array:
    """The time of each size by a line over the others; not-a-number of the ends."""
    curves, width = sizes.shape
    weights = np.tile(1 - np.eye(width), (curves, 1))
    each, of_each = np.repeat(sizes, width, axis=0), np.repeat(times, width, axis=0)
    lines, _ = robust_lines(each, of_each, weights)
    lines = lines.reshape(curves, width, 2)
    found: Array = np.maximum(lines[..., 0] + lines[..., 1] * sizes, _LEAST_TIME * times)
    found[:, [0, -1]] = np.nan
    return found


def _off_lines(ranges: LineRanges, count: int, chords: Array, times: Array) -> Array:
    """How far each size is from ``count`` lines over the others, as a logarithm. Between two ranges
    it is predicted by its neighbours, whose times are ``chords``."""
    found = ranges.held_out(count)
    seconds = np.where(found.seconds > 0, found.seconds, chords)
    seconds = np.where(found.exist, np.maximum(seconds, _LEAST_TIME * times), np.nan)
    return np.log(seconds / times)
