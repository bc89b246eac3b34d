"""A Google Benchmark's name, taken apart.

``Family/8/0/1/min_time:0.100/manual_time`` has a family, arguments in order, arguments with names
(``log2(N):8``), and words of the library about how it was run.
"""

from __future__ import annotations

import re

from waywiser.words import Value

AGGREGATES = ("mean", "median", "stddev", "cv", "min", "max", "BigO", "RMS")
"""Suffixes of rows that sum up repetitions; files before 2018 mark such rows by nothing else."""

_AGGREGATE = re.compile(rf"^(.*)_({'|'.join(AGGREGATES)})$", re.DOTALL)
_ABOUT_THE_RUN = re.compile(
    r"^(?:manual_time|real_time|process_time|(?:min_time|min_warmup_time|repeats|iterations|threads"
    r"|repetitions):[0-9.]+(?:s|x)?)$"
)
_THREADS = re.compile(r"^threads:([0-9]{1,6})$")
_NUMBER = re.compile(r"^-?[0-9]{1,18}$")
_NAMED = re.compile(r"^([A-Za-z][A-Za-z0-9_()]*):(-?[0-9]{1,18})$")


class BenchmarkName(Value, frozen=True):
    family: str
    """Words before the first number, joined by ``_`` if the name has slashes between them."""
    arguments: tuple[int, ...]
    """Those without a name, in order."""
    named: dict[str, int]
    manual: bool
    """The benchmark timed itself; else the library did, by its wall clock."""
    threads: int = 1
    """Threads that ran it at once."""

    @property
    def exponent(self) -> int | None:
        """The exponent of the size, if the name says which argument that is."""
        return self.named.get("log2(N)")


def split_aggregate(name: str) -> tuple[str, str]:
    """(the name of what was repeated, which aggregate), the second empty for a repetition."""
    match = _AGGREGATE.match(name)
    return (match[1], match[2]) if match else (name, "")


def parse_name(name: str) -> BenchmarkName:
    """Parses a repetition's name. Unknown parts belong to the family."""
    family: list[str] = []
    arguments: list[int] = []
    named: dict[str, int] = {}
    manual, threads = False, 1
    for part in name.split("/"):
        if count := _THREADS.match(part):
            threads = int(count[1])
        elif _NUMBER.match(part):
            arguments.append(int(part))
        elif match := _NAMED.match(part):
            if not _ABOUT_THE_RUN.match(part):
                named[match[1]] = int(match[2])
        elif _ABOUT_THE_RUN.match(part):
            manual = manual or part == "manual_time"
        elif part:
            family.append(part)
    return BenchmarkName("_".join(family), tuple(arguments), named, manual, threads)
