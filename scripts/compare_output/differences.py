"""What differs between two records, each difference with its commands."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from compare_output.store import Recorded, Store

MOST_LINES = 14
"""Lines of a difference that are shown."""

MOST_COMMANDS = 5
"""Commands of a difference that are named."""

MOST_DIFFED_LINES = 20_000
"""Lines of an output, from each side, that are compared line by line."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Difference(NamedTuple):
    """One output of one command that is not the same."""

    command: str
    output: str
    lines: tuple[str, ...]
    """Those of a unified diff; its changed ones begin with - and +."""

    @property
    def changed(self) -> tuple[str, ...]:
        return tuple(line for line in self.lines if line[:1] in "-+")

    @property
    def kind(self) -> tuple[str, ...]:
        """What equal differences share: the changed lines without colours and layout."""
        return tuple(" ".join(_COLOURS.sub("", line).split()) for line in self.changed)


@dataclass(frozen=True)
class Expected:
    """Differences that are meant: changed lines that match, in commands that match."""

    reason: str
    commands: re.Pattern[str]
    outputs: re.Pattern[str]
    lines: re.Pattern[str]

    def explains(self, difference: Difference) -> bool:
        return bool(
            self.commands.search(difference.command)
            and self.outputs.search(difference.output)
            and all(self.lines.search(line) for line in difference.kind)
        )


def read_expected(file: Path) -> list[Expected]:
    """The entries of a TOML file: tables ``[[expected]]`` with ``reason``, and the regular
    expressions ``commands``, ``outputs`` and ``lines``, each optional."""
    entries = tomllib.loads(file.read_text()).get("expected", [])
    return [
        Expected(
            entry["reason"],
            *(re.compile(entry.get(name, "")) for name in ("commands", "outputs", "lines")),
        )
        for entry in entries
    ]


def chosen(commands: Iterable[str], only: Sequence[str]) -> set[str]:
    """The names that match all patterns."""
    return {name for name in commands if all(re.search(pattern, name) for pattern in only)}


def differences(before: Store, after: Store, only: Sequence[str]) -> Iterator[Difference]:
    """All of them, by command, of commands that match all of ``only``."""
    old, new = before.index(), after.index()
    for command in sorted(chosen([*old, *new], only)):
        if command not in new:
            yield Difference(command, "command", ("-the command is only in the first record",))
        elif command not in old:
            yield Difference(command, "command", ("+the command is only in the second record",))
        else:
            yield from _of_command(before, after, old[command], new[command])


def _of_command(before: Store, after: Store, old: Recorded, new: Recorded) -> Iterator[Difference]:
    if old.exit_code != new.exit_code:
        lines = (f"-exit code {old.exit_code}", f"+exit code {new.exit_code}")
        yield Difference(old.command, "exit code", lines)
    for name in sorted(old.outputs.keys() | new.outputs.keys()):
        first, second = old.outputs.get(name), new.outputs.get(name)
        if first == second:
            continue
        if first is None or second is None:
            sign, which = ("+", "second") if first is None else ("-", "first")
            yield Difference(old.command, name, (f"{sign}only the {which} tree writes it",))
        else:
            found = _unified(before.content(first), after.content(second))
            yield Difference(old.command, name, tuple(found))


def _unified(old: bytes, new: bytes) -> list[str]:
    if b"\0" in old or b"\0" in new:
        return [f"-{len(old)} bytes, binary", f"+{len(new)} bytes, binary"]
    first, second = (text.decode(errors="replace").split("\n") for text in (old, new))
    start = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    # What is equal before the first difference takes no time.
    shown = slice(max(0, start - 1), max(0, start - 1) + MOST_DIFFED_LINES)
    found = difflib.unified_diff(first[shown], second[shown], n=1, lineterm="")
    lines = [line for line in found if not line.startswith(("---", "+++", "@@"))]
    return lines or [f"-differs after {MOST_DIFFED_LINES} lines", "+"]


def groups(found: Iterable[Difference]) -> list[list[Difference]]:
    """Equal differences together, the most frequent first."""
    by_kind: dict[tuple[str, ...], list[Difference]] = {}
    for difference in found:
        by_kind.setdefault(difference.kind, []).append(difference)
    return sorted(by_kind.values(), key=lambda group: -len(group))


def described(group: Sequence[Difference]) -> Iterator[str]:
    """Lines about equal differences."""
    first = group[0]
    names = list(dict.fromkeys(f"{each.command}: {each.output}" for each in group))
    yield from names[:MOST_COMMANDS]
    if len(names) > MOST_COMMANDS:
        yield f"... and {len(names) - MOST_COMMANDS} more"
    yield from (f"    {_visible(line)}" for line in first.lines[:MOST_LINES])
    if len(first.lines) > MOST_LINES:
        yield f"    ... {len(first.lines) - MOST_LINES} more lines"


def _visible(line: str) -> str:
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return text if len(text) <= 240 else f"{text[:240]}..."
