"""A comparison in a few lines of text, as the terminal and notebooks show it."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.comparison.path_change import ProfileComparison
from waywiser.plan.headline import in_order
from waywiser.words.number_format import count


def summary(found: ProfileComparison) -> str:
    """``2 regressions, 88 no change, of 90 paths, at a threshold of 3 %``."""
    unknown = sum(path.detectable is None for path in found.of("no change"))
    counts = [
        f"{n} {plural(verdict, n)}"
        + (f" ({unknown} with unknown noise)" if unknown and verdict == "no change" else "")
        for verdict, n in found.counts.items()
        if n
    ]
    head = (
        f"{', '.join(counts)}, of {count(len(found.paths), 'path')}"
        if counts
        else "no path in common"
    )
    return f"{head}, at a threshold of {found.threshold * 100:.3g} %"


def changed_alone(found: ProfileComparison) -> str:
    """How many paths have no change although their own interval excludes none; empty without."""
    paths = found.changed_alone
    if not paths:
        return ""
    slower = sum(path.ratio < 1 for path in paths)
    kinds = [
        f"{n} {word}" for n, word in ((len(paths) - slower, "faster"), (slower, "slower")) if n
    ]
    return (
        f"{count(len(paths), 'path')} changed by more than the threshold by "
        f"{'its' if len(paths) == 1 else 'their'} own 95 % interval ({', '.join(kinds)}), but not "
        f"among all {len(found.measured)} that were tested, of which some do by chance"
    )


def headline_lines(found: ProfileComparison) -> Iterator[str]:
    """A line for each group of headline paths: the member with the lowest ratio, and what could be
    missed."""
    paths = [path for path in found.measured if path.headline]
    for group in in_order(path.headline for path in paths if path.headline):
        members = [path for path in paths if path.headline == group]
        worst = min(members, key=lambda path: path.ratio)
        known = [path.detectable for path in members if path.detectable is not None]
        hidden = detectable_text(max(known, default=None))
        lowest = f"lowest of {len(members)} " if len(members) > 1 else ""
        # What is detectable holds for the largest sizes; the lowest ratio may be of others.
        elsewhere = worst.evidence and worst.evidence.decision != worst.parts[-1].decision
        where = f"{worst.why} " if elsewhere and worst.why else ""
        large = "at the largest sizes " if where else ""
        yield f"  {group:<17} {worst.ratio - 1:+.1%} {where}{lowest}({large}{hidden})"


def plural(verdict: str, count: int) -> str:
    return f"{verdict}s" if verdict in ("regression", "improvement") and count != 1 else verdict


def detectable_text(loss: float | None) -> str:
    """``detectable from 3.1%``; without a loss, that the noise is not known."""
    return "noise not known" if loss is None else f"detectable from {loss:.1%}"
