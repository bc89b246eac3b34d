"""``waywiser tune``: says what it will search and for how long, searches, and shows the winners."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing

import waywiser
from waywiser.cli.app import print_verb
from waywiser.cli.progress import (
    LINE_SECONDS,
    REDRAW_SECONDS,
    describe,
    estimate_text,
    is_live,
    redraw,
)
from waywiser.cli.signals import stopped_by_signals
from waywiser.cli.streams import say
from waywiser.measure.option import given
from waywiser.measure.probe.supervisor import Progress
from waywiser.measure.tune.run import Tuning
from waywiser.measure.tune_options import TuneOptions
from waywiser.words import Visit, count, format_seconds


def run_tune(options: TuneOptions, *, dry_run: bool, json: bool) -> None:
    """The verb. Raises `WaywiserError`; what is finished by then is in the profile."""
    others = {name: value for name, value in given(options).items() if name != "profile"}
    with stopped_by_signals(), closing(TuneProgress()) as watching:
        found = waywiser.tune(options.profile, **others, dry_run=dry_run, progress=watching)
    print_verb(found, json=json)


class TuneProgress:
    """How a tuning goes: a live line in a terminal, plain lines in a pipe, on standard error."""

    def __init__(self) -> None:
        self.command = ("waywiser", *sys.argv[1:])
        self._budget = 0.0
        self._stream = sys.stderr
        self._begun = self._shown = time.monotonic()
        self._visits = 0
        self._live = is_live(self._stream)

    def begin_run(self, tuning: Tuning, lines: Sequence[str]) -> None:
        """Says what will be searched."""
        self._budget = tuning.budget_seconds
        self._begun = self._shown = time.monotonic()
        say("\n".join(lines) + "\n")

    def progress(self, progress: Progress) -> None:
        """Shows the estimate of what is being measured."""
        self._draw(describe(progress.order.workload), estimate_text(progress))

    def visit(self, visit: Visit) -> None:
        """Counts a visit that is finished."""
        self._visits += 1
        self._draw(describe(visit.workload), "")

    def close(self) -> None:
        """Takes the live line away."""
        if self._live:
            say("\r\x1b[K", self._stream)

    def _draw(self, series: str, estimate: str) -> None:
        now = time.monotonic()
        if now - self._shown < (REDRAW_SECONDS if self._live else LINE_SECONDS):
            return
        self._shown = now
        head = (
            f"{format_seconds(now - self._begun)} of at most {format_seconds(self._budget)}, "
            f"{count(self._visits, 'visit')}; "
        )
        if not self._live:
            say(f"{head}last: {series}\n", self._stream)
            return
        redraw(self._stream, head, series, estimate)
