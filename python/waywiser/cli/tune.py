"""``waywiser tune``: says what it will search and for how long, searches, and shows the winners."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from waywiser.cli.progress import (
    LINE_SECONDS,
    REDRAW_SECONDS,
    describe,
    estimate_text,
    is_live,
    redraw,
)
from waywiser.cli.signals import stopped_by_signals
from waywiser.cli.streams import print_json, put_line, say
from waywiser.machine import machine_line
from waywiser.measure.option import stored
from waywiser.measure.probe.supervisor import Progress
from waywiser.measure.survey_request import require_output_name, require_ranks, selection_of
from waywiser.measure.survey_run import require_free_host
from waywiser.measure.tune.run import Tuning, prepare_tuning, tune
from waywiser.measure.tune.search import Ratio, SearchAxis
from waywiser.measure.tune.targets import Target, TuneRequest
from waywiser.measure.tune.tuner import REPORTED, ROUNDS, Tuned, Tuner
from waywiser.measure.tune_options import TuneOptions
from waywiser.profile import require_output
from waywiser.words import (
    Visit,
    count,
    format_bytes,
    format_rate,
    format_seconds,
    format_settings,
    grouped,
    with_units,
)


def run_tune(options: TuneOptions, *, dry_run: bool, json: bool) -> None:
    """The verb. Raises `WaywiserError`; what is finished by then is in the profile."""
    file = Path(options.profile)
    if not os.path.exists(file):  # Path.exists() raises if it is too long
        require_output(str(file))
    tuning = prepare(options)
    if dry_run:
        if json:
            print_json({"schema": 1, **_plan(tuning)})
        else:
            put_line("\n".join([*_before(tuning), *_target_lines(tuning)]))
        return
    require_free_host()
    say("\n".join(_before(tuning)) + "\n")
    with stopped_by_signals(), closing(TuneProgress(tuning.budget_seconds)) as watching:
        tuner = tune(tuning, file, watching, command=("waywiser", *sys.argv[1:]))
    _show(tuning, tuner, json=json)
    say(f"profile: {file}\n")


def prepare(options: TuneOptions) -> Tuning:
    """What the options ask for, on this machine."""
    require_output_name(options.profile)
    # A search of files writes and reads for long: only where the user named a place.
    selection = selection_of(options)
    request = TuneRequest(memory_bytes=selection.memory_bytes, **stored(options, "request"))
    file, seconds = Path(options.profile), options.budget_seconds
    if not file.exists():
        require_ranks(options)
    return prepare_tuning(file, request, selection, seconds)


def _before(tuning: Tuning) -> Iterator[str]:
    """What is said before long work starts."""
    yield machine_line(tuning.machine)
    yield from tuning.scope.notes
    for unsupported in tuning.scope.unsupported_paths:
        yield f"{unsupported.path} is skipped: {unsupported.reason}"
    targets, grid = tuning.targets, tuning.note.request.grid
    paths = len({target.point.curve.text for target in targets})
    names = dict.fromkeys(p.name for target in targets for p in target.parameters)
    every = sum(target.configurations for target in targets)
    processes = f"{grid} process{'es' if grid > 1 else ''}"
    what = f"measures all of them in {processes}" if grid else "measures a part of them"
    of_sizes = f"{len(targets)} size{'s' if len(targets) > 1 else ''} in all"
    yield (
        f"{count(paths, 'path')}, {of_sizes}; parameters: {', '.join(names)}; "
        f"{count(every, 'configuration')}: {what}"
    )
    yield (
        f"at most {format_seconds(tuning.budget_seconds)} (--budget), about "
        f"{format_seconds(tuning.seconds)} expected"
        + ("" if grid else f": {ROUNDS} processes search, {REPORTED} more measure the winners")
    )
    if tuning.cut:
        sizes = Counter(target.point.size for target in tuning.cut)
        listed = ", ".join(format_bytes(size) for size in sorted(sizes))
        yield (
            f"no time for {len(tuning.cut)} more ({listed}): "
            f"--budget {max(tuning.all_seconds, 1):.0f}s is enough for all"
        )


def _target_lines(tuning: Tuning) -> Iterator[str]:
    """One line for each path."""
    for text, group in _by_path(tuning.targets).items():
        sizes = ", ".join(format_bytes(target.point.size) for target in group)
        axes = "; ".join(f"{axis.name} {', '.join(_values(axis))}" for axis in group[0].axes)
        yield f"  {with_units(text)}: {sizes}; {axes} ({group[0].configurations} configurations)"
    for text, group in _by_path(tuning.cut).items():
        sizes = ", ".join(format_bytes(target.point.size) for target in group)
        yield f"  no time for {with_units(text)}: {sizes}"


def _values(axis: SearchAxis) -> list[str]:
    """The values of a parameter, sizes with units, those that are ordered in their order."""
    values = axis.ascending if axis.kind == "ordered" else axis.values
    return [with_units(f"{axis.name}={value}").partition("=")[2] for value in values]


def _by_path(targets: Sequence[Target]) -> dict[str, list[Target]]:
    return grouped((target.point.curve.text, target) for target in targets)


def _plan(tuning: Tuning) -> dict[str, object]:
    return {
        "budget_seconds": tuning.budget_seconds,
        "expected_seconds": tuning.seconds,
        "expected_seconds_of_all": tuning.all_seconds,
        "targets": [
            {
                "workload": str(target.point.workload),
                "bytes": target.point.size,
                "parameters": {axis.name: axis.values for axis in target.axes},
                "configurations": target.configurations,
                "plain": str(target.plain.workload) if target.plain else None,
            }
            for target in tuning.targets
        ],
        "left_out": [str(target.point.workload) for target in tuning.cut],
    }


def _show(tuning: Tuning, tuner: Tuner, *, json: bool) -> None:
    """The winners, or what a grid has."""
    request = tuning.note.request
    results = [] if request.grid else tuner.results()
    if json:
        said: dict[str, object] = {"schema": 1, "complete": tuner.is_complete}
        print_json({**said, "grid": request.grid, "results": results})
        return
    if request.grid:
        put_line("the grid is complete" if tuner.is_complete else "the grid is not complete")
    last = ""
    for tuned in sorted(results, key=lambda each: (each.default.way, each.default.bytes)):
        if (path := with_units(tuned.default.way)) != last:
            last = path
            put_line(path)
        put_line(f"  {result_line(tuned)}")
    if not tuner.is_complete:
        put_line("the budget is over: the same command goes on with what is missing")


def result_line(tuned: Tuned) -> str:
    """``16 MiB: staged[chunk=1MiB,threads=10]: 45.2 GB/s, 1.12x [1.09, 1.15] of the defaults``."""
    size = format_bytes(tuned.default.bytes)
    if tuned.winner is None:
        return f"{size}: {tuned.reason}"
    method = tuned.winner.path.executor + with_units(format_settings(tuned.winner.parameters))
    parts = [f"{format_rate(tuned.bandwidth)} GB/s"] if tuned.bandwidth else []
    if tuned.over_default is None:
        parts.append("the defaults: no setting is faster")
    else:
        around = tuned.over_default.interval
        note = " (not shown to be faster)" if around is None or around.low <= 1 else ""
        parts.append(f"{_ratio(tuned.over_default)} of the defaults{note}")
    if tuned.over_plain is not None:
        parts.append(f"{_ratio(tuned.over_plain)} of {tuned.plain}")
    tried = f"{tuned.measured} of {tuned.configurations} configurations measured"
    return f"{size}: {method}: {', '.join(parts)} ({tried})"


def _ratio(ratio: Ratio) -> str:
    """``1.12x [1.09, 1.15]``, or why there is no interval."""
    digits = 2 if ratio.value < 10 else 1
    if ratio.interval is None:
        return f"{ratio.value:.{digits}f}x [too few processes for an interval]"
    low, high = ratio.interval.low, ratio.interval.high
    return f"{ratio.value:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"


class TuneProgress:
    """How a tuning goes: a live line in a terminal, plain lines in a pipe, on standard error."""

    def __init__(self, budget_seconds: float) -> None:
        self._budget = budget_seconds
        self._stream = sys.stderr
        self._begun = self._shown = time.monotonic()
        self._visits = 0
        self._live = is_live(self._stream)

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
