"""A comparison of profiles as a text and as a table of paths."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import (
    NOT_DECIDED,
    answer_lines,
    change_text,
    note_lines,
    suspected_lines,
    verdict_text,
)
from waywiser.analysis.comparison.path_change import (
    REGIMES,
    PathChange,
    ProfileComparison,
)
from waywiser.curves import Subject, read_subject
from waywiser.notebook.data_table import DataTable, html_table
from waywiser.notebook.profile_view import ProfileView
from waywiser.notebook.verb_result import CLEAN, FINDING, INCONCLUSIVE, FileName, VerbResult
from waywiser.profile.estimate import rate
from waywiser.stats import THRESHOLD
from waywiser.words import STATUSES, Reason, Status, WaywiserError, size_of, visible
from waywiser.words.numbers import parse_fraction

if TYPE_CHECKING:
    from waywiser.render.parts import Block, Section

MOST_CHANGES = 8
"""Changed paths that a comparison shows of itself."""

CHANGED: tuple[Reason, ...] = ("regression", "missing", "suspected", "improvement")
"""Verdicts whose paths a comparison shows of itself."""

PATH_TYPES: dict[str, type] = {
    "verdict": str,
    "path": str,
    "group": str,
    "regime": str,
    "bytes": int,
    "gb_per_s_before": float,
    "gb_per_s_now": float,
    "seconds_before": float,
    "seconds_now": float,
    "change_percent": float,
    "change_percent_low": float,
    "change_percent_high": float,
    "detectable_percent": float,
    "processes_before": int,
    "processes_now": int,
    "why": str,
    "curve": str,
}
"""The change is that of the bandwidth in the regime that the verdict is about (of the size, if
there is no regime), with its 95 % interval; times and bandwidths are those of one typical size,
medians over processes as in all views."""

Side = str | os.PathLike[str] | ProfileView


FAILING = {"regression": Status.FAILED, "suspected": Status.SUSPECTED, "never": None}
"""What ``fail_on`` takes, and from which status on a path is a finding then."""


class ComparisonError(WaywiserError):
    """Sides that cannot be compared."""


class ComparisonView(VerbResult):
    """New profiles against baseline profiles, as ``waywiser compare`` decides."""

    result: ProfileComparison
    """Its `for_json` is what ``waywiser compare --json`` writes."""

    def __init__(
        self,
        result: ProfileComparison,
        failing: Status | None = Status.FAILED,
        parts: Callable[[], Iterable[Block | Section]] = tuple,
    ) -> None:
        super().__init__(result, result.for_json, parts, exit_code=exit_code(result, failing))

    @property
    def counts(self) -> dict[str, int]:
        """Paths by verdict."""
        return self.result.counts

    @property
    def notes(self) -> tuple[str, ...]:
        """What else differs, or what the decisions lack, one line each."""
        return self.result.notes

    @cached_property
    def paths(self) -> DataTable:
        """One row per path, the worst first."""
        return DataTable.of("paths", PATH_TYPES, map(_row, self.result.paths))

    def to_pandas(self) -> Any:
        """`paths` as a `pandas.DataFrame`. Raises `MissingPackage`."""
        return self.paths.to_pandas()

    def to_polars(self) -> Any:
        """`paths` as a `polars.DataFrame`. Raises `MissingPackage`."""
        return self.paths.to_polars()

    def to_arrow(self) -> Any:
        """`paths` as a `pyarrow.Table`. Raises `MissingPackage`."""
        return self.paths.to_arrow()

    def __repr__(self) -> str:
        changes = [
            "  ".join((f"{verdict:<11}", path, *filter(None, (size, change, why))))
            for verdict, path, size, change, why in self._changes()
        ]
        return visible("\n".join([*self._lines(), *changes, *self._more()]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        lines = "\n".join([*self._lines(), *self._more()])
        changes = list(self._changes())
        table = html_table(("verdict", "path", "size", "change", "at"), changes) if changes else ""
        return f"<pre>{html.escape(visible(lines))}</pre>{visible(table)}"

    def _lines(self) -> Iterator[str]:
        found = self.result
        yield f"{', '.join(found.base)} -> {', '.join(found.new)}"
        yield from answer_lines(found)
        yield from note_lines(found)

    def _changes(self) -> Iterator[tuple[str, ...]]:
        """Verdict, path, size, change and where it is, of the first changed paths."""
        for path in self.result.of(*CHANGED)[:MOST_CHANGES]:
            size = size_of(path.size.series) if path.size else ""
            change = change_text(path.size) if path.size else ""
            yield path.verdict, path.name, size, change, path.why

    def _more(self) -> Iterator[str]:
        more = len(self.result.of(*CHANGED)) - MOST_CHANGES
        if more > 0:
            yield f"and {more} more: see .paths"
        yield from suspected_lines(self.result)


def compare_profiles(
    base: Side | Sequence[Side],
    new: Side | Sequence[Side],
    *,
    repeat: Side | Sequence[Side] = (),
    threshold: float | str | None = None,
    fail_on: str = "regression",
    only: str | Sequence[str] = (),
    junit: FileName | None = None,
    everything: bool = False,
) -> ComparisonView:
    """As `waywiser.compare`. Raises `ProfileError`, `ComparisonError`."""
    limit, failing = valid_threshold(threshold), failing_status(fail_on)
    if junit:
        from waywiser.exchange.exports.junit import JUNIT_FILE, junit_xml
        from waywiser.profile import require_output, write_output

        require_output(os.fspath(junit), JUNIT_FILE)
    before, after, again = (_nodes(side) for side in (base, new, repeat))
    if not before or not after:
        raise ComparisonError("a side is empty", remedy="name a profile on each side")
    patterns = (only,) if isinstance(only, str) else tuple(only)
    found = compare(before, after, limit, patterns, again)
    if junit:
        write_output(os.fspath(junit), junit_xml(found, failing), JUNIT_FILE)

    def parts() -> Iterator[Block | Section]:
        from waywiser.notebook.remeasure import command_parts
        from waywiser.render.views.comparison import comparison_parts

        yield from comparison_parts(found, everything=everything)
        if found.counts["suspected"]:
            options = [word for each in patterns for word in ("--only", each)]
            options += ["--fail-on", fail_on] if fail_on != "regression" else []
            yield from command_parts(after[0], found, "compare", options)

    return ComparisonView(found, failing, parts)


def failing_status(word: str) -> Status | None:
    """Raises `ComparisonError` for a word that is none of them."""
    if word not in FAILING:
        raise ComparisonError(
            f"--fail-on does not know {word!r}", remedy=f"write {' or '.join(FAILING)}"
        )
    return FAILING[word]


def exit_code(found: ProfileComparison, failing: Status | None) -> int:
    worst = max((STATUSES[path.verdict] for path in found.paths), default=Status.NOT_COMPARED)
    if failing is None:
        return CLEAN
    if worst >= failing:
        return FINDING
    verdicts = {verdict_text(found, path) for path in found.measured}
    is_nothing_decided = verdicts <= {NOT_DECIDED}
    return INCONCLUSIVE if worst is Status.SUSPECTED or is_nothing_decided else CLEAN


def valid_threshold(threshold: float | str | None) -> float:
    """The threshold, or the usual one; a text is one of the command line, ``3%``. Raises
    `ComparisonError` or `WordError` for what is no fraction."""
    if isinstance(threshold, str):
        return parse_fraction(threshold, "threshold")
    limit = THRESHOLD if threshold is None else threshold
    if not 0 <= limit < 1:
        raise ComparisonError(
            f"the threshold {limit!r} is no fraction", remedy="write 0.03 for 3 %"
        )
    return limit


def _nodes(side: Side | Sequence[Side]) -> list[Subject]:
    if isinstance(side, (str, os.PathLike, ProfileView)) or not isinstance(side, Iterable):
        return [_node(side)]
    return [_node(each) for each in side]


def _node(side: object) -> Subject:
    if isinstance(side, ProfileView):
        return side.node
    if not isinstance(side, (str, os.PathLike)):
        raise ComparisonError(
            f"{side!r} is no profile", remedy="name a file, or pass what waywiser.open returns"
        )
    return read_subject(os.fspath(side))


def _row(path: PathChange) -> tuple[Any, ...]:
    size = path.size
    head = (path.verdict, path.name, path.headline)
    if size is None:
        return (*head, *(None,) * 12, path.why or None, path.curve)
    decision = size.decision
    rates = [rate(size.rated_bytes, seconds) for seconds in (size.seconds_before, size.seconds_now)]
    ends = (decision.interval.low, decision.interval.high) if decision.interval else (None, None)
    return (
        *head,
        REGIMES[path.part.regime] if path.part else None,
        size.bytes,
        *(each.value / 1e9 if each else None for each in rates),
        size.seconds_before,
        size.seconds_now,
        *(None if ratio is None else 100 * (ratio - 1) for ratio in (decision.ratio, *ends)),
        None if decision.detectable is None else 100 * decision.detectable,
        *size.processes,
        path.why or None,
        path.curve,
    )
