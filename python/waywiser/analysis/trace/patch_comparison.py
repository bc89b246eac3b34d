"""Two traces of one program, before and after a change, line by line: predicted and measured
savings side by side."""

from __future__ import annotations

from waywiser.analysis.trace.copy_lines import CopyLine, copy_lines, exposed_seconds
from waywiser.analysis.trace.savings import Saving, TraceAdvice
from waywiser.profile import Trace
from waywiser.words import Value


class ComparedLine(Value, frozen=True):
    """The copies of a line before and now."""

    place: str
    path: str
    copies_before: int
    copies_now: int
    exposed_before: float
    """Seconds."""
    exposed_now: float
    predicted: float | None
    """What was predicted to be saved, seconds; None if nothing was."""
    predicted_low: float
    predicted_high: float

    @property
    def saved(self) -> float:
        """Seconds."""
        return self.exposed_before - self.exposed_now

    @property
    def is_as_predicted(self) -> bool | None:
        """Whether the saving is within the predicted interval or within 20 % of the prediction;
        None without one, and for copies that are gone: another line may make them."""
        if self.predicted is None or not self.copies_now:
            return None
        tolerance = 0.2 * self.predicted
        low = min(self.predicted_low, self.predicted - tolerance)
        high = max(self.predicted_high, self.predicted + tolerance)
        return low <= self.saved <= high


class TraceComparison(Value, frozen=True):
    """A program before and now."""

    seconds_before: float
    seconds_now: float
    exposed_before: float
    exposed_now: float
    lines: tuple[ComparedLine, ...]
    reason: str = ""
    """Why the two are not comparable; empty if they are."""


def compare_traces(before: Trace, now: Trace, predicted: TraceAdvice) -> TraceComparison:
    """``predicted`` is the advice for the trace ``before``. A program that runs patched now does
    what that advises of the library, and nothing else."""
    after = _by_key(now)
    lines = []
    for advised in predicted.lines:
        best = advised.best
        if now.patched:
            best = next((each for each in advised.savings if each.kind == "library"), None)
        lines.append(_compared(advised.line, after.pop(advised.line.key, []), best))
    for own in after.values():
        lines += [_compared(None, [line], None) for line in own]
    return TraceComparison(
        before.seconds,
        now.seconds,
        sum(map(exposed_seconds, before.processes)),
        sum(map(exposed_seconds, now.processes)),
        tuple(sorted(lines, key=lambda line: -abs(line.saved))),
        _not_comparable(before, now),
    )


def _not_comparable(before: Trace, now: Trace) -> str:
    if before.processes and not now.processes:
        return "nothing was traced now"
    if before.exit_code != now.exit_code:
        return f"the exit code was {before.exit_code}, and is {now.exit_code} now"
    if not all(process.cupti for process in now.processes) and all(
        process.cupti for process in before.processes
    ):
        return "copies were not recorded now"
    return ""


def _by_key(trace: Trace) -> dict[str, list[CopyLine]]:
    found: dict[str, list[CopyLine]] = {}
    for line in copy_lines(trace):
        found.setdefault(line.key, []).append(line)
    return found


def _compared(before: CopyLine | None, now: list[CopyLine], saving: Saving | None) -> ComparedLine:
    known = before or now[0]
    return ComparedLine(
        place=known.place,
        path=known.path,
        copies_before=before.copies if before is not None else 0,
        copies_now=sum(line.copies for line in now),
        exposed_before=before.exposed_seconds if before is not None else 0.0,
        exposed_now=sum(line.exposed_seconds for line in now),
        predicted=saving.seconds if saving is not None else None,
        predicted_low=saving.low if saving is not None else 0.0,
        predicted_high=saving.high if saving is not None else 0.0,
    )
