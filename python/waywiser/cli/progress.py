"""How a survey goes: a live line in a terminal, plain lines in a pipe; always on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from waywiser.cli.streams import say
from waywiser.curves import name_of
from waywiser.profile import default_name
from waywiser.words import (
    RATE_BYTES,
    Visit,
    Workload,
    format_rate,
    format_relative,
    format_seconds,
    format_time,
    size_of,
    with_units,
)

if TYPE_CHECKING:
    from waywiser.measure.plan.plan import Plan
    from waywiser.measure.plan.tally import Tally
    from waywiser.measure.probe.supervisor import Progress
    from waywiser.measure.survey_run import Survey

BAR = 12
"""Cells of the bar: what 80 columns have left beside a path and its estimate."""

ECHO = 3
"""Columns left free at the end of the live line: a terminal writes ``^C`` there."""

REDRAW_SECONDS = 0.1
"""Seconds between two states of the live line: faster than anyone reads."""

LINE_SECONDS = 5.0
"""Seconds between two plain lines, unless a tenth of the work was done in less."""


def format_value(workload: Workload, seconds: float, relative: float | None = None) -> str:
    """One execution's performance as the table will show it: a rate, of little the time."""
    if workload.rated_bytes < RATE_BYTES:
        return format_time(seconds, relative)
    return f"{format_rate(workload.bytes / seconds, relative)} GB/s"


def watcher(
    stream: TextIO | None = None, variables: Mapping[str, str] = os.environ
) -> LiveLine | PlainLines:
    """The one that suits where the lines go."""
    stream = stream or sys.stderr
    if is_live(stream, variables):
        return LiveLine(stream, colour="NO_COLOR" not in variables)
    return PlainLines(stream)


class Following:
    """A `waywiser.notebook.survey_call.SurveyWatcher` that writes to standard error. ``before``
    says what will be measured."""

    def __init__(self, before: Callable[[Survey | Path], None] | None = None) -> None:
        self.command = ("waywiser", *sys.argv[1:])
        self._before = before
        self._lines = watcher()
        self.begin, self.progress = self._lines.begin, self._lines.progress
        self.visit, self.close = self._lines.visit, self._lines.close

    def begin_run(self, what: Survey | Path) -> None:
        """Says what will be measured."""
        if self._before is not None:
            self._before(what)

    def file_for(self, hostname: str) -> Path:
        """A file of the working directory."""
        return Path(default_name(hostname))

    def note(self, line: str) -> None:
        """Says something below what stands in the line."""
        self._lines.close()
        say(f"{line}\n")

    warn = note


@contextmanager
def following(before: Callable[[Survey | Path], None] | None = None) -> Iterator[Following]:
    """A watcher while a verb measures, which a signal ends."""
    from waywiser.cli.signals import stopped_by_signals

    with stopped_by_signals(), closing(Following(before)) as watching:
        yield watching


def is_live(stream: TextIO, variables: Mapping[str, str] = os.environ) -> bool:
    """Whether a line of it can be redrawn."""
    return stream.isatty() and variables.get("TERM", "dumb") != "dumb"


def redraw(
    stream: TextIO, head: str, series: str, estimate: str, *, bar: str = "", taken: int = 1
) -> None:
    """Replaces the live line: ``taken`` columns are for the ``bar``, and left free at the end."""
    tail = f"  {estimate}" if estimate else ""
    width = shutil.get_terminal_size().columns - taken - len(head) - len(tail)
    say(f"\r\x1b[K{bar}{head}{fitted(series, width)}{tail}", stream)


def _tally(plan: Plan, finished: Iterable[Visit], clock: Callable[[], float]) -> Tally:
    """Loads what plans a survey when one begins: a command that reads files needs none of it."""
    from waywiser.measure.plan.tally import Tally

    return Tally(plan, finished, clock)


def show_rest(tally: Tally, stream: TextIO) -> None:
    """Shows, before a resumed survey continues, what is there and what is missing."""
    if tally.visits == tally.of_visits:
        say(f"all {tally.visits} visits are stored already: nothing is left to measure\n", stream)
    elif tally.visits:
        left = format_seconds(tally.seconds_left)
        text = f"{tally.visits} of {tally.of_visits} visits are stored already, about {left} left"
        say(text + "\n", stream)


def say_correction(tally: Tally, stream: TextIO, before: str = "") -> None:
    """Says once that a survey takes longer or shorter than was announced, if it does. ``before``
    takes away what stands in the line."""
    if (found := tally.correction()) is not None:
        expected, now = map(format_seconds, found)
        say(f"{before}now about {now} in all: {expected} were expected\n", stream)


class PlainLines:
    """A line per tenth of the work or per five seconds, whichever is seldom enough to read."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._tally: Tally | None = None
        self._shown_tenth = 0
        self._shown_at = 0.0

    def begin(self, plan: Plan, finished: Iterable[Visit]) -> None:
        self._tally = _tally(plan, finished, self._clock)
        show_rest(self._tally, self._stream)
        self._shown_at = self._clock()
        self._shown_tenth = int(self._tally.share * 10)

    def progress(self, progress: Progress) -> None:
        """Says nothing: lines are printed when something is finished."""

    def visit(self, visit: Visit) -> None:
        assert self._tally is not None, "begin() comes first"
        self._tally.finished(visit)
        say_correction(self._tally, self._stream)
        tenth = int(self._tally.share * 10)
        overdue = self._clock() - self._shown_at >= LINE_SECONDS
        if tenth > self._shown_tenth or overdue:
            self._shown_tenth, self._shown_at = tenth, self._clock()
            say(self._line(self._tally, visit) + "\n", self._stream)

    def close(self) -> None:
        """Nothing to put back."""

    @staticmethod
    def _line(tally: Tally, visit: Visit) -> str:
        left = format_seconds(tally.seconds_left)
        done = f"{tally.share:4.0%}  {tally.visits} of {tally.of_visits} visits"
        return f"{done}, {left} left; last: {describe(visit.workload)}"


class LiveLine:
    """One line, redrawn in place: bar, time left, current series and its estimate."""

    def __init__(
        self, stream: TextIO, *, colour: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._colour = colour
        self._clock = clock
        self._tally: Tally | None = None
        self._drawn_at = float("-inf")

    def begin(self, plan: Plan, finished: Iterable[Visit]) -> None:
        self._tally = _tally(plan, finished, self._clock)
        show_rest(self._tally, self._stream)
        self._draw("", "")

    def progress(self, progress: Progress) -> None:
        self._draw(describe(progress.order.workload), estimate_text(progress))

    def visit(self, visit: Visit) -> None:
        assert self._tally is not None, "begin() comes first"
        self._tally.finished(visit)
        say_correction(self._tally, self._stream, "\r\x1b[K")
        self._draw(describe(visit.workload), "")

    def close(self) -> None:
        """Takes the line away."""
        say("\r\x1b[K", self._stream)

    def _draw(self, series: str, estimate: str) -> None:
        now = self._clock()
        if self._tally is None or now - self._drawn_at < REDRAW_SECONDS:
            return
        self._drawn_at = now
        share = self._tally.share
        cells = "█" * round(share * BAR)
        bar = f"\x1b[32m{cells}\x1b[0m" if self._colour else cells
        bar += "░" * (BAR - len(cells))
        head = f" {share:4.0%}  {format_seconds(self._tally.seconds_left)} left  "
        redraw(self._stream, head, series, estimate, bar=bar, taken=BAR + ECHO)


def describe(workload: Workload) -> str:
    """A workload in few words: its name, and the size of its transfers."""
    name = with_units(name_of(workload))
    return f"{name} of {size_of(str(workload))}" if workload.transfers else name


def estimate_text(progress: Progress) -> str:
    """``55.4 GB/s ±0.2 % n=23``; only the count while there is no median."""
    if not progress.median > 0:
        return f"n={progress.n}"
    workload = progress.order.workload
    if progress.low is None or progress.high is None:
        return f"{format_value(workload, progress.median)} n={progress.n}"
    relative = (progress.high - progress.low) / 2 / progress.median
    value = format_value(workload, progress.median, relative)
    return f"{value} {format_relative(relative)} n={progress.n}"


def fitted(text: str, width: int) -> str:
    """The text in at most ``width`` columns: its middle goes first, where paths are most alike."""
    if len(text) <= width:
        return text
    if width < 3:
        return ""
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
