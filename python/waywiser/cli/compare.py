"""``waywiser compare``: is it as it was?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from waywiser.cli.percent import parse_fraction
from waywiser.words import WaywiserError
from waywiser.words.sizes_in_text import size_of, with_units

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.analysis.comparison.path_change import PathChange, PathVerdict, ProfileComparison
    from waywiser.stats.order import Interval

SEPARATOR = "\0"
"""What stands for ``--`` between the sides after parsing: a word that no file is named by."""

CLEAN, FINDING, INCONCLUSIVE = 0, 1, 3

MOST = 8
"""Paths of one kind that are named without ``--all``."""

TABLE_COLUMNS = 132
"""Width of a terminal that shows a table of paths without folding it."""

LEGEND = (
    "before, now: median over the processes at this size, without outliers, as in show; change: "
    "from before to now, with its 95 % confidence interval; size: if several sizes of a path "
    "changed, that of the median change; detectable: the noise hides smaller losses"
)
"""What the figures of a path are."""

FAILING: dict[str, tuple[PathVerdict, ...]] = {
    "regression": ("regression", "missing"),
    "suspected": ("regression", "missing", "suspected"),
    "never": (),
}
"""What ``--fail-on`` takes, and the verdicts that are findings then."""

STYLES = {
    "regression": "bold red",
    "missing": "red",
    "suspected": "yellow",
    "improvement": "green",
}


class CompareError(WaywiserError):
    """A comparison that cannot be made as asked."""


def run_compare(
    words: Sequence[str],
    threshold: str,
    fail_on: str = "regression",
    only: Sequence[str] = (),
    json: bool = False,
    junit: str = "",
    everything: bool = False,
    repeat: Sequence[str] = (),
) -> int:
    """Compares files. ``words`` are files with `SEPARATOR` between the sides, or two files;
    ``repeat`` are profiles in which suspected paths were measured again.

    Returns 1 for a regression or a missing path, or a verdict that ``fail_on`` includes; 3 if a
    change is suspected or nothing could be compared; else 0. With ``fail_on`` ``never``: 0.
    Raises `CompareError`, `ProfileError`, `NotWritable`; `ExistingFile` for a file of ``junit``
    that no comparison wrote.
    """
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        require_one_output,
        require_output,
        write_output,
    )

    limit = parse_fraction(threshold, "threshold")
    failing = failing_verdicts(fail_on)
    require_one_output(json=json, junit=junit)
    if junit:
        from waywiser.cli.junit import JUNIT_FILE

        require_output(junit, JUNIT_FILE)
    before, after = sides_of(words)
    from waywiser.analysis.comparison.comparison import compare
    from waywiser.analysis.comparison.node import read_node

    base, new = [read_node(file) for file in before], [read_node(file) for file in after]
    found = compare(base, new, limit, only, [read_node(file) for file in repeat])
    if junit:
        from waywiser.cli.junit import junit as as_junit

        write_output(junit, as_junit(found, failing), JUNIT_FILE)
    if json:
        from waywiser.cli.streams import print_json

        print_json(found)
    else:
        from waywiser.cli.picture import plain_console

        console = plain_console(to_errors=junit == STANDARD_OUTPUT)
        print_comparison(found, console, everything)
        if found.counts["suspected"]:
            from waywiser.cli.remeasure import print_commands

            options = [word for each in only for word in ("--only", each)]
            options += ["--fail-on", fail_on] if fail_on != "regression" else []
            print_commands(console, new[0], found, "compare", options)
    return exit_code(found, failing)


def failing_verdicts(word: str) -> tuple[PathVerdict, ...]:
    """Raises `CompareError` for a word that is none of them."""
    if word not in FAILING:
        raise CompareError(
            f"--fail-on does not know {word!r}", remedy=f"write {' or '.join(FAILING)}"
        )
    return FAILING[word]


def sides_of(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Raises `CompareError` if it is not clear which file is on which side."""
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


def exit_code(found: ProfileComparison, failing: Sequence[PathVerdict]) -> int:
    if not failing:
        return CLEAN
    if any(found.counts[verdict] for verdict in failing):
        return FINDING
    return INCONCLUSIVE if found.counts["suspected"] or not found.measured else CLEAN


def print_comparison(
    found: ProfileComparison, console: Console | None = None, everything: bool = False
) -> None:
    """Prints the answer, the notes, and the paths that changed; ``everything``: all paths."""
    from waywiser.analysis.comparison.comparison_text import (
        answer_lines,
        note_lines,
        suspected_lines,
    )
    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console

    console = console or plain_console()
    for line in answer_lines(found):
        say(console, line, "" if line.startswith(" ") else "bold")
    for line in note_lines(found, "" if everything else "; --all lists them"):
        say(console, line)
    print_paths(console, found, everything)
    for line in suspected_lines(found):
        say(console, line)


def print_paths(console: Console, found: ProfileComparison, everything: bool = False) -> None:
    """Prints the paths that changed, then those that one side has not measured."""
    from waywiser.analysis.comparison.comparison_text import plural, verdict_text
    from waywiser.cli.lines import say
    from waywiser.cli.text_table import TextColumn, print_table
    from waywiser.words.number_format import count

    shown: list[PathChange] = []
    left: list[str] = []
    for verdict in ("regression", "suspected", "improvement", "no change"):
        paths = [path for path in found.of(verdict) if path.parts]
        most = len(paths) if everything else 0 if verdict == "no change" else MOST
        shown += paths[:most]
        if verdict != "no change" and len(paths) > most:
            left.append(f"{len(paths) - most} more {plural(verdict, len(paths) - most)}")
    if shown and console.width < TABLE_COLUMNS:
        for path in shown:
            _print_narrow(console, path, found)
    elif shown:
        headings = (
            "verdict",
            "path",
            "size",
            "before",
            "now",
            "change",
            "95 %",
            "detectable",
            "at",
        )
        words = "verdict", "path", "at"
        columns = [
            TextColumn(name, left=name in words, folds=name in words[1:]) for name in headings
        ]
        cells = [(verdict_text(found, path), *_cells(path, found)) for path in shown]
        print_table(console, columns, cells, [STYLES.get(path.verdict, "") for path in shown])
    if shown:
        say(console, LEGEND)
    if left:
        say(console, f"and {', '.join(left)}: see --all")
    for verdict, why, names in _one_sided(found):
        for name in names if everything else names[: MOST if verdict == "missing" else 0]:
            say(console, f"{verdict}  {with_units(name)}: {why}")
        if not everything and verdict != "missing":
            say(console, f"{verdict}  {count(len(names), 'path')}: {why}")
        elif not everything and len(names) > MOST:
            say(console, f"and {len(names) - MOST} more {verdict}: {why} (see --all)")


def _print_narrow(console: Console, path: PathChange, found: ProfileComparison) -> None:
    """Prints a line for the path, and one for its figures."""
    from rich.text import Text

    from waywiser.analysis.comparison.comparison_text import verdict_text
    from waywiser.cli.lines import say

    name, size, before, now, change, interval, hidden, about = _cells(path, found)
    verdict = (f"{verdict_text(found, path):<12}", STYLES.get(path.verdict, ""))
    console.print(Text.assemble(verdict, name))
    figures = f"{before} before, {now} now, {change}" + (f" ({interval})" if interval else "")
    detectable = f"detectable {hidden}" if hidden else ""
    say(console, "; ".join(filter(None, (size, figures, detectable, about))), indent=12)


def _one_sided(found: ProfileComparison) -> Iterator[tuple[PathVerdict, str, list[str]]]:
    """Paths that one side has not measured, by verdict and reason."""
    reasons: dict[tuple[PathVerdict, str], list[str]] = {}
    for path in found.of("missing", "skipped", "new"):
        reasons.setdefault((path.verdict, path.why), []).append(path.name)
    for (verdict, why), names in reasons.items():
        yield verdict, why, names


def _cells(path: PathChange, found: ProfileComparison) -> Iterator[str]:
    from waywiser.analysis.comparison.comparison_text import figures_before_and_now

    yield with_units(path.name)
    evidence = path.evidence
    if evidence is None:
        yield from ("", "", "", "", "", "")
    else:
        size, decision = evidence.size, evidence.decision
        yield size_of(size.series)
        yield from figures_before_and_now(size)
        yield f"{decision.ratio - 1:+.1%}"
        yield _span(decision.interval)
        yield f"{decision.detectable:.1%}" if decision.detectable is not None else "not known"
    yield path.why or ("changed if tested alone" if found.is_changed_alone(path) else "")


def _span(interval: Interval | None) -> str:
    """``-5.9 % to -4.7 %``; empty without replicates."""
    if interval is None:
        return ""
    return f"{interval.low - 1:+.1%} to {min(interval.high, MOST_RATIO) - 1:+.1%}"


MOST_RATIO = 100.0
"""An interval that goes further is shown to here."""
