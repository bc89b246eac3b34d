"""Host lists as Slurm writes them: ``n[001-003,7],gpu-a[1-2]-b[0-1]``.

A name may have several brackets; each holds numbers and ranges, and the first number of a range
says how many digits all have: ``n[001-003]`` is ``n001``, ``n002``, ``n003``. Written lists have
one bracket per name, at its end, which every Slurm reads.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from waywiser.words.errors import WordError
from waywiser.words.grouping import grouped

MOST_HOSTS = 100_000
"""Hosts of one list: more is a mistake of writing."""

LONGEST_NAME = 253
"""Characters of a host name (RFC 1035)."""

HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")

_MOST_DIGITS = 18
_RANGE = re.compile(rf"([0-9]{{1,{_MOST_DIGITS}}})(?:-([0-9]{{1,{_MOST_DIGITS}}}))?")
_NUMBERED = re.compile(rf"(.*?)([0-9]{{1,{_MOST_DIGITS}}})", re.DOTALL)
_WORDS = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def is_host_name(name: str) -> bool:
    """Whether the text may be the name of a host or its IPv4 address."""
    return len(name) <= LONGEST_NAME and HOST_NAME.fullmatch(name) is not None


def expand_hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list, in its order, with those that it repeats. Raises `WordError`."""
    found: list[str] = []
    for word in _words(text):
        for name in _names(word):
            if not is_host_name(name):
                raise WordError(f"{name!r} is no host name", where=_where(text))
            found.append(name)
            if len(found) > MOST_HOSTS:
                raise WordError(f"names more than {MOST_HOSTS:,} hosts", where=_where(text))
    return tuple(found)


def compress_hosts(hosts: Iterable[str]) -> str:
    """The list of the hosts, each once, sorted by name and number; empty for none."""
    parts: list[tuple[str, str]] = []
    for prefix, numbers in grouped(map(_divided, set(hosts))).items():
        ranges = list(_ranges([each for each in numbers if each]))
        if "" in numbers:
            parts.append((prefix, prefix))
        if len(ranges) == 1 and "-" not in ranges[0]:
            parts.append((prefix, prefix + ranges[0]))
        elif ranges:
            parts.append((prefix, f"{prefix}[{','.join(ranges)}]"))
    return ",".join(text for _, text in sorted(parts))


@lru_cache(maxsize=65536)  # fleets are sorted by the same names again and again
def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts ``n9`` before ``n10``."""
    pieces = re.split(r"([0-9]+)", name)
    return tuple((int(p), "") if n % 2 else (-1, p) for n, p in enumerate(pieces))


def _where(text: str) -> str:
    return f"host list {text!r}"


def _words(text: str) -> Iterator[str]:
    """The parts between commas and spaces outside of brackets."""
    end = 0
    for found in _WORDS.finditer(text):
        _require_separator(text, end, found.start())
        yield found[0]
        end = found.end()
    _require_separator(text, end, len(text))


def _require_separator(text: str, start: int, end: int) -> None:
    if text[start:end].strip(", \t\r\n"):
        raise WordError(
            "a bracket is not closed or not opened",
            where=_where(text),
            remedy="write n[1-3,7]",
        )


def _names(word: str) -> Iterator[str]:
    pieces = _BRACKETS.split(word)
    if len(pieces) == 1:
        yield word
        return
    numbers = [list(_numbers(inside, word)) for inside in pieces[1::2]]
    total = 1
    for each in numbers:
        total *= len(each)
    if total > MOST_HOSTS:
        raise WordError(f"names more than {MOST_HOSTS:,} hosts", where=_where(word))
    for chosen in itertools.product(*numbers):
        yield "".join(itertools.chain(*itertools.zip_longest(pieces[::2], chosen, fillvalue="")))


def _numbers(inside: str, word: str) -> Iterator[str]:
    """The numbers of a bracket, with their leading zeros."""
    count = 0
    for part in inside.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise WordError(
                f"{part.strip()!r} is no number and no range",
                where=_where(word),
                remedy="write n[1-3,7]",
            )
        first, last = int(found[1]), int(found[2] or found[1])
        count += last - first + 1
        if last < first:
            raise WordError(f"the range {part.strip()} counts down", where=_where(word))
        if count > MOST_HOSTS:
            raise WordError(f"names more than {MOST_HOSTS:,} hosts", where=_where(word))
        yield from (f"{number:0{len(found[1])}d}" for number in range(first, last + 1))


def _divided(host: str) -> tuple[str, str]:
    """A name without the number at its end, and the number; empty if Slurm does not count it."""
    found = _NUMBERED.fullmatch(host)
    return (found[1], found[2]) if found else (host, "")


def _ranges(numbers: Sequence[str]) -> Iterator[str]:
    """``3-5``, ``8``: a number without leading zeros follows one with them if it has as many
    digits."""
    padded = {len(each) for each in numbers if each[0] == "0" and len(each) > 1}
    run: list[str] = []
    for digits in sorted(numbers, key=lambda each: (len(each) in padded and len(each), int(each))):
        if run and digits == f"{int(run[-1]) + 1:0{len(run[0])}d}":
            run.append(digits)
            continue
        if run:
            yield _range(run)
        run = [digits]
    if run:
        yield _range(run)


def _range(run: Sequence[str]) -> str:
    return run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}"
