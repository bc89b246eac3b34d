"""``waywiser compare``: is it as it was?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from waywiser.cli.percent import parse_fraction
from waywiser.words import WaywiserError, format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.analysis.compared import Comparison, PathVerdict
    from waywiser.analysis.verdict import Verdict
    from waywiser.stats.order import Interval

SEPARATOR = "\0"
"""What stands for ``--`` between the sides after parsing: a word that no file is named by."""

CLEAN, FINDING, INCONCLUSIVE = 0, 1, 3

MOST = 8
"""Paths that are named of those that are unclear, or missing for one reason; ``--json`` names all.
"""

FARTHEST = 100
"""Times as fast or slow: an interval that goes further says nothing."""

TABLE_COLUMNS = 132
"""Of a terminal in which a table of paths is not folded to pieces."""

_FAILING: dict[str, tuple[Verdict, ...]] = {
    "worse": ("worse",),
    "missing": ("worse", "missing"),
    "unclear": ("worse", "missing", "unclear"),
}
"""Each word includes the graver ones."""

STYLES = {"worse": "bold red", "missing": "red", "better": "green", "unclear": "yellow"}


class CompareError(WaywiserError):
    """A comparison that cannot be made as asked."""


def run_compare(
    words: Sequence[str],
    threshold: str,
    fail_on: str = "worse",
    only: Sequence[str] = (),
    json: bool = False,
    junit: str = "",
) -> int:
    """``words`` are files with `SEPARATOR` between the sides, or two files.

    Returns 1 where a path has a verdict that ``fail_on`` includes; 3 where nothing could be told,
    or where unclear ones were asked to be told and there are any; else 0. Raises `CompareError`,
    `ProfileError`, `NotWritten`.
    """
    limit = parse_fraction(threshold, "threshold")
    failing = failing_verdicts(fail_on)
    before, after = sides_of(words)
    from waywiser.analysis.comparison import compare
    from waywiser.analysis.node import read_node

    base, new = [read_node(file) for file in before], [read_node(file) for file in after]
    found = compare(base, new, limit, only)
    if junit:
        from waywiser.cli.junit import junit as as_junit
        from waywiser.cli.replacing import write_over

        write_over(junit, as_junit(found, failing))
    if json:
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(found), indent=2)
        sys.stdout.write(text.decode() + "\n")
    else:
        print_comparison(found)
    return exit_code(found, failing)


def failing_verdicts(word: str) -> tuple[Verdict, ...]:
    """Raises `CompareError` for a word that is none of them."""
    if word not in _FAILING:
        raise CompareError(
            f"{word!r} is nothing to fail on", remedy=f"write {' or '.join(_FAILING)}"
        )
    return _FAILING[word]


def sides_of(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Raises `CompareError` where it is not clear which file is on which side."""
    if SEPARATOR in words:
        at = words.index(SEPARATOR)
        before, after = list(words[:at]), list(words[at + 1 :])
    else:
        before, after = list(words[:1]), list(words[1:])
        if len(words) != 2:
            raise CompareError(
                "one file has nothing to be compared with"
                if len(words) == 1
                else f"{len(words)} files, and it is not said which are the base",
                remedy="write BASE NEW, or BASE... -- NEW...",
            )
    if not before or not after or SEPARATOR in after:
        raise CompareError("a side is empty", remedy="write BASE... -- NEW...")
    return before, after


def exit_code(found: Comparison, failing: Sequence[Verdict]) -> int:
    if any(found.counts[verdict] for verdict in failing if verdict != "unclear"):
        return FINDING
    if ("unclear" in failing and found.counts["unclear"]) or not found.told:
        return INCONCLUSIVE
    return CLEAN


def print_comparison(found: Comparison, console: Console | None = None) -> None:
    """The verdict, what to know, and a line for each path that is not the same."""
    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console

    console = console or plain_console()
    say(console, headline(found), "bold")
    for note in found.notes:
        say(console, f"note: {note}")
    print_paths(console, found)


def print_paths(console: Console, found: Comparison) -> None:
    """The paths that differ in a table; of many that are missing for one reason, or unclear, the
    first."""
    from rich.table import Table
    from rich.text import Text

    from waywiser.cli.lines import say

    unclear = [path for path in found.of("unclear") if path.parts]
    shown = [*found.of("worse", "better"), *unclear[:MOST]]
    if shown and console.width < TABLE_COLUMNS:
        for path in shown:
            _print_narrow(console, path)
    elif shown:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("verdict", "path", "size", "before", "now", "ratio", "95 %", "about"):
            right = column in ("size", "before", "now", "ratio", "95 %")
            table.add_column(column, justify="right" if right else "left", overflow="fold")
        for path in shown:
            style = STYLES.get(path.verdict, "")
            table.add_row(Text(path.verdict, style), *map(Text, _cells(path)))
        console.print(table)
    if (more := len(unclear) - MOST) > 0:
        say(console, f"and {more} more unclear (--json names all)")
    if unclear:
        say(console, _why_unclear(unclear, found.threshold))
    for verdict, why, names in _one_sided(found):
        for name in names[:MOST]:
            say(console, f"{verdict}  {name}: {why}")
        if len(names) > MOST:
            say(console, f"and {len(names) - MOST} more {verdict}: {why} (--json names all)")


def _print_narrow(console: Console, path: PathVerdict) -> None:
    """A line for the path, and one for its figures."""
    from rich.text import Text

    from waywiser.cli.lines import say

    name, size, before, now, ratio, interval, about = _cells(path)
    verdict = (f"{path.verdict:<9}", STYLES.get(path.verdict, ""))
    console.print(Text.assemble(verdict, name))
    figures = f"{before} before, {now} now, ratio {ratio} ({interval})" if before else ""
    say(console, "; ".join(filter(None, (size, figures, about))), indent=9)


def _why_unclear(paths: Sequence[PathVerdict], threshold: float) -> str:
    """What keeps them from being told, and what would tell them."""
    judged = [path.evidence.judged for path in paths if path.evidence is not None]
    low, high = 1 / (1 + threshold), 1 + threshold
    beyond = sum(each.interval.high < low or each.interval.low > high for each in judged)
    reasons = []
    if beyond < len(judged):
        reasons.append(f"the interval of {len(judged) - beyond} reaches across the threshold")
    if beyond:
        reasons.append(
            f"{beyond} differ by more, as such paths also do by chance or from process to process"
        )
    return f"unclear: {'; '.join(reasons)}. More surveys a side tell more."


def _one_sided(found: Comparison) -> Iterator[tuple[Verdict, str, list[str]]]:
    """Paths that are not there now, by the verdict and the reason."""
    reasons: dict[tuple[Verdict, str], list[str]] = {}
    for path in (*found.of("missing"), *(p for p in found.of("unclear") if not p.parts)):
        reasons.setdefault((path.verdict, path.why), []).append(path.name)
    for (verdict, why), names in reasons.items():
        yield verdict, why, names


def headline(found: Comparison) -> str:
    """``3 worse, 61 same, 26 unclear of 90 paths, at a threshold of 3 %``."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in found.counts.items() if n)
    head = f"{counts} of {len(found.paths)} paths" if counts else "no path in common"
    return f"{head}, at a threshold of {found.threshold * 100:.3g} %"


def _cells(path: PathVerdict) -> Iterator[str]:
    yield path.name
    evidence = path.evidence
    if evidence is None:
        yield from ("", "", "", "", "")
    else:
        size, judged = evidence.size, evidence.judged
        yield format_bytes(size.bytes) if size.bytes else ""
        yield _figure(size.rated_bytes, size.seconds_before)
        yield _figure(size.rated_bytes, size.seconds_now)
        yield f"{judged.ratio:.3f}"
        yield _span(judged.interval)
    yield path.why


def _span(interval: Interval) -> str:
    """``0.951–1.043``; beyond a hundredfold no digit says anything."""
    low = f"{interval.low:.3f}" if interval.low >= 1 / FARTHEST else f"<{1 / FARTHEST:g}"
    high = f"{interval.high:.3f}" if interval.high <= FARTHEST else f">{FARTHEST:g}"
    return f"{low}–{high}"


def _figure(rated_bytes: int, seconds: float) -> str:
    from waywiser.stats.figures import RATE_BYTES, format_rate, format_time

    if rated_bytes < RATE_BYTES:
        return format_time(seconds, 0.002)
    return f"{format_rate(rated_bytes / seconds, 0.002)} GB/s"
