"""The bandwidth of one path over its nights: a point for each night, the levels between changes as
lines, and changes with their date."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import partial
from itertools import pairwise

from waywiser.analysis.history.history import DatedChange, PathHistory
from waywiser.analysis.history.history_texts import change_text
from waywiser.render.figures.drawing import HALF_CAPITAL, Drawing
from waywiser.render.figures.theme import INK, LINE, SERIES, SOFT
from waywiser.render.parts import Picture, Sheet, numbers
from waywiser.words import format_rate

WIDTH, HEIGHT = 348.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 332.0, 26.0, 166.0

LEAST_RANGE = 0.1
"""The least range of the axis, relative to its middle: noise looks small then."""

LABEL, TITLE = 72.0, 92.0
"""Widths of the label of a change, and of the title of the axis."""

MOST_LABELS = 2
"""Changes with a label, the last ones: there is no room for more."""

MOST_TICKS = 5
MOST_DATES = 4

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def nights_picture(path: PathHistory, number: int) -> Picture:
    """The picture of a path; ``number`` makes its name its own."""
    changes = "; ".join(change_text(each) for each in path.changes)
    return Picture(
        name=f"nights-{number}",
        title=f"{path.node}: {path.path}",
        description=f"Bandwidth of {path.path} on {path.node} in {len(path.nights)} nights. "
        f"{changes or 'No change'}.",
        draw=partial(_draw, path),
        data=_data(path),
    )


def _data(path: PathHistory) -> Sheet:
    rows = [
        (night.date[:16].replace("T", " "), format_rate(night.rate, path.noise), night.surveys)
        for night in path.nights
    ]
    return Sheet.of(f"{path.node}: {path.path}", ("night, UTC", *numbers("GB/s", "surveys")), rows)


def _draw(path: PathHistory) -> Drawing:
    found = Drawing(WIDTH, HEIGHT)
    days = [_day(night.date) for night in path.nights]
    rates = [night.rate / 1e9 for night in path.nights]
    first, last = days[0], max(days[-1], days[0] + 1)
    low, high = min(rates), max(rates)
    room = max(0.0, LEAST_RANGE * (low + high) / 2 - (high - low)) / 2 + (high - low) * 0.06
    low, high = low - room, high + room

    def x(day: float) -> float:
        return LEFT + 6 + (RIGHT - LEFT - 12) * (day - first) / (last - first)

    def y(rate: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (rate - low) / (high - low)

    for value in _ticks(low, high):
        found.line([(LEFT, y(value)), (RIGHT, y(value))], LINE, 0.7)
        found.text(LEFT - 5, y(value), f"{value:g}", SOFT, anchor="end")
    for day in _dates(first, last):
        found.text(x(day), BOTTOM + 5 + HALF_CAPITAL * 11, _date(day), SOFT, anchor="middle")
    found.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], LINE, 0.8)
    found.text(LEFT, TOP - 8, "bandwidth, GB/s", INK, on_baseline=True)
    texts = [f"{_percent(change)} {change.date[5:10]}" for change in path.changes]
    ends = _ends([x(_day(change.date)) for change in path.changes])
    for number, change in enumerate(path.changes):
        at = x(_day(change.date))
        dashes = () if change.confirmed else (3.0, 3.0)
        found.line([(at, TOP), (at, BOTTOM)], SOFT, 1.0, dashes)
        if number >= len(texts) - MOST_LABELS:
            found.text(ends[number], TOP - 8, texts[number], INK, size=10, anchor="end",
                       on_baseline=True)  # fmt: skip
    for start, stop, level, end in _levels(path, rates):
        if stop - start > 1:
            found.line([(x(days[start]), y(level)), (x(days[stop - 1]), y(end))], SERIES[1], 1.6)
    found.markers([(x(d), y(r)) for d, r in zip(days, rates, strict=True)], 0, SERIES[0], 4)
    return found


def _ends(places: Sequence[float]) -> list[float]:
    """Where the labels of changes end, right of the title of the axis. Of those that have no room
    beside each other the last ones are within the drawing."""
    found: list[float] = []
    right = RIGHT
    for at in reversed(places):
        found.append(max(min(at + LABEL / 2, right), LEFT + TITLE + LABEL))
        right = found[-1] - LABEL
    return found[::-1]


def _levels(path: PathHistory, rates: Sequence[float]) -> Iterator[tuple[int, int, float, float]]:
    """The nights between two changes, with the level at their start and their end."""
    place = {night.date: number for number, night in enumerate(path.nights)}
    starts = sorted({0, *(place[change.date] for change in path.changes if change.date in place)})
    drifts = {place[c.date]: c for c in path.changes if c.kind == "drift" and c.date in place}
    for start, stop in pairwise([*starts, len(rates)]):
        ordered = sorted(rates[start:stop])
        middle = ordered[len(ordered) // 2]
        half = math.sqrt(drifts[start].ratio) if start in drifts else 1.0
        yield start, stop, middle / half, middle * half


def _percent(change: DatedChange) -> str:
    return f"{(change.ratio - 1) * 100:+.1f} %".replace("-", "−")


def _day(moment: str) -> float:
    found = datetime.fromisoformat(moment)
    return found.toordinal() + found.hour / 24


def _date(day: float) -> str:
    return date.fromordinal(int(day)).isoformat()[5:]


def _ticks(low: float, high: float) -> list[float]:
    """Round values, at most `MOST_TICKS`."""
    scale = 10.0 ** math.floor(math.log10((high - low) / MOST_TICKS))
    step = next(s * scale for s in STEPS if (high - low) / (s * scale) <= MOST_TICKS)
    first = math.ceil(low / step)
    return [round(n * step, 12) for n in range(first, math.floor(high / step) + 1)]


def _dates(first: float, last: float) -> list[int]:
    """Days with a label, equally far apart."""
    days = int(last) - int(first)
    step = max(1, math.ceil(days / (MOST_DATES - 1)))
    return list(range(int(first), int(last) + 1, step))
