"""Changes of a history in words, for every form of output."""

from __future__ import annotations

from datetime import datetime, timedelta

from waywiser.analysis.history.history import DatedChange, NodeChange, PathHistory
from waywiser.curves import percent

GAP = timedelta(days=1.75)
"""The time between two surveys from which on the date of a change is not known to a night."""


def change_text(change: DatedChange) -> str:
    """``5.1 % slower since 2026-11-12``; ``1.0 % a week slower since 2026-10-01 (drift)``."""
    side = "slower" if change.ratio < 1 else "faster"
    day = change.date[:10]
    if change.kind == "drift":
        a_week = percent(change.per_week)
        return f"drift: {a_week} a week {side} since {day}, {percent(1 - change.ratio)} in all"
    size = percent(1 - change.ratio)
    sure = "" if change.confirmed else ", suspected"
    gap = f" (not measured after {change.after[:10]})" if _has_gap(change) else ""
    return f"{size} {side} since {day}{gap}{sure}"


def _has_gap(change: DatedChange) -> bool:
    """Whether nights are missing before a change, so that its date is not known to a night."""
    before, first = (datetime.fromisoformat(each) for each in (change.after, change.date))
    return first - before > GAP


def node_change_text(change: NodeChange) -> str:
    """``all 10 paths 5.1 % slower since 2026-11-12: since driver 550.54 before, 560.28 now``."""
    which = f"all {change.paths}" if change.paths == change.of else f"{change.paths} of {change.of}"
    side = "slower" if change.ratio < 1 else "faster"
    size = percent(1 - change.ratio)
    because = f": since {'; '.join(change.since)}" if change.since else ""
    return f"{which} paths {size} {side} since {change.date[:10]}{because}"


def path_text(path: PathHistory) -> str:
    """The last change of a path, or that there is none, in a sentence without an end."""
    if (change := path.last_change) is not None:
        since = f" ({'; '.join(change.since)})" if change.since else ""
        return f"{path.status}: {change_text(change)}{since}"
    least = ", and how large a change would be found is not known"
    if path.detectable:
        least = f", changes from {percent(path.detectable)} on are found"
    return f"{path.status}: no change in {len(path.nights)} nights{least}"
