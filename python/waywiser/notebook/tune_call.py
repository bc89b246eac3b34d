"""Searches the fastest settings: `waywiser.tune`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from waywiser.machine import machine_line
from waywiser.measure.option import stored
from waywiser.measure.probe.supervisor import Progress
from waywiser.measure.survey_request import require_output_name, require_ranks, selection_of
from waywiser.measure.survey_run import VisitWatcher, require_free_host
from waywiser.measure.tune.run import Tuning, prepare_tuning, tune
from waywiser.measure.tune.search import Ratio, SearchAxis
from waywiser.measure.tune.targets import Target, TuneRequest
from waywiser.measure.tune.tuner import REPORTED, ROUNDS, Tuned
from waywiser.measure.tune_options import TuneOptions
from waywiser.notebook.survey_call import options_of
from waywiser.notebook.verb_result import VerbResult
from waywiser.profile import require_output
from waywiser.render.parts import Block, Words
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


class TuneWatcher(VisitWatcher, Protocol):
    """Follows a search as a command does."""

    command: tuple[str, ...]
    """What the profile says of how it was made."""

    def begin_run(self, tuning: Tuning, lines: Sequence[str]) -> None:
        """What will be searched, and that in lines of text."""


class _Silent:
    command = ("waywiser.tune()",)

    def begin_run(self, tuning: Tuning, lines: Sequence[str]) -> None:
        """Nothing is printed."""

    def progress(self, progress: Progress) -> None:
        """Nothing is printed."""

    def visit(self, visit: Visit) -> None:
        """Nothing is printed."""


def tune_machine(
    arguments: Mapping[str, Any], *, dry_run: bool = False, progress: TuneWatcher | None = None
) -> VerbResult:
    """As `waywiser.tune`. Raises `WaywiserError`; what is finished by then is in the profile."""
    options = options_of(TuneOptions, arguments, "tune")
    file = Path(options.profile)
    if not os.path.exists(file):  # Path.exists() raises if it is too long
        require_output(str(file))
    tuning = prepare(options)
    before = [*_before(tuning)]
    if dry_run:
        plan = {"schema": 1, **_plan(tuning)}
        lines = [Words(line) for line in before]
        return VerbResult(tuning, lambda: plan, lambda: [*lines, *_target_lines(tuning)])
    require_free_host()
    watcher = progress or _Silent()
    watcher.begin_run(tuning, before)
    tuner = tune(tuning, file, watcher, command=watcher.command)
    request = tuning.note.request
    results = [] if request.grid else tuner.results()
    document = {
        "schema": 1, "complete": tuner.is_complete, "grid": request.grid, "results": results
    }  # fmt: skip
    return VerbResult(
        results,
        lambda: document,
        lambda: _result_parts(results, request.grid, is_complete=tuner.is_complete),
        said=(f"profile: {file}",),
    )


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


def _target_lines(tuning: Tuning) -> Iterator[Block]:
    """One line for each path."""
    for text, group in _by_path(tuning.targets).items():
        sizes = ", ".join(format_bytes(target.point.size) for target in group)
        axes = "; ".join(f"{axis.name} {', '.join(_values(axis))}" for axis in group[0].axes)
        tried = f"{group[0].configurations} configurations"
        yield Words(f"{with_units(text)}: {sizes}; {axes} ({tried})", indent=2)
    for text, group in _by_path(tuning.cut).items():
        sizes = ", ".join(format_bytes(target.point.size) for target in group)
        yield Words(f"no time for {with_units(text)}: {sizes}", indent=2)


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


def _result_parts(results: Sequence[Tuned], grid: int, *, is_complete: bool) -> Iterator[Block]:
    """The winners, or what a grid has."""
    if grid:
        yield Words("the grid is complete" if is_complete else "the grid is not complete")
    last = ""
    for tuned in sorted(results, key=lambda each: (each.default.way, each.default.bytes)):
        if (path := with_units(tuned.default.way)) != last:
            last = path
            yield Words(path)
        yield Words(result_line(tuned), indent=2)
    if not is_complete:
        yield Words("the budget is over: the same command goes on with what is missing")


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
