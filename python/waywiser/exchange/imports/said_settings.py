"""Settings that the lines above a table say, and that are of no command: headings, names of files
and what NCCL read from its environment."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.exchange.imports.commands.launch_state import is_setting
from waywiser.exchange.imports.commands.programs import MENTIONS
from waywiser.exchange.imports.commands.prompts import typed_text

UNSURE = "unknown-"
"""How the setting of a run begins whose settings may be others than those of any other run."""

_BY_NCCL = re.compile(r"NCCL INFO (NCCL_\w+) set by environment(?: variable)? to (\S{1,80}?)\.?$")
_OF_FILE = re.compile(r"==> (.{1,200}) <==$")
_ASSIGNMENT = re.compile(
    r"(?<![\w$./-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)="
    r"([^\s,;]{1,200}(?:,(?![A-Z][A-Z0-9_]*=)[^\s,;]{1,200}){0,40})"
)
"""A variable and its value, which may be a list with commas."""
_HEADING = re.compile(r"[-=*#\s]*(.*?)[-=*#:\s]*$")
_HOSTS = re.compile(
    r"[-=*#\s]*(?:(?:host(?:name|s)?|node(?:s|list|name)?|slurm_(?:job_)?nodelist)\s*[:=]\s*"
    r"|running on (?:(?:node|host)s?\b\s*:?\s*)?(?=\S*[0-9]))([\w.\[\], -]{1,100}?)[-=*#\s]*",
    re.IGNORECASE,
)
MOST_OF_HEADING = 200
MOST_OF_CAPTION = 120
MOST_LINES = 3
"""Lines of a caption, right above a table."""


def said_above(lines: Sequence[str], has_no_command: bool) -> tuple[str, ...]:
    """The settings that lines between two tables say. Assignments count in headings, and of a run
    without a command in any short line."""
    return tuple(dict.fromkeys(_said(lines, has_no_command)))


def hosts_above(lines: Sequence[str]) -> str:
    """The hosts that the last line about them names, or ``hostname`` printed; empty without."""
    for n in range(len(lines) - 1, -1, -1):
        if len(lines[n]) > MOST_OF_HEADING:
            continue
        if found := _HOSTS.fullmatch(lines[n]):
            return " ".join(found[1].split())
        if typed_text(lines[n]).split(" ")[0] == "hostname" and n + 1 < len(lines):
            return lines[n + 1].strip()[:MOST_OF_CAPTION]
    return ""


class Heading(NamedTuple):
    words: str = ""
    is_marked: bool = False
    """Whether signs around it make it a heading, as ``--- … ---``."""


def headings(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[str]:
    """The heading of each run, whose lines above the title begin and end as ``spans`` say: the
    one above it, or above the run before if there is none. What is not marked as a heading counts
    above other texts than JSON, if runs with the same title have different ones."""
    found: list[Heading] = []
    for above, start in spans:
        words = _heading(lines[above:start])
        is_table = not lines[start].lstrip().startswith(("{", "["))
        caption = _caption(lines[above:start]) if is_table and not words else ""
        own = Heading(words or caption, bool(words))
        found.append(own if own.words or not found else found[-1])
    named: dict[str, set[str]] = defaultdict(set)
    for (_, start), each in zip(spans, found, strict=True):
        named[lines[start]].add(each.words)
    return [
        each.words if each.is_marked or len(named[lines[start]]) > 1 else ""
        for (_, start), each in zip(spans, found, strict=True)
    ]


def sections(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[str]:
    """The last marked heading above each run, wherever it stands since the first line."""
    found: list[str] = []
    for above, start in spans:
        own = (words for line in reversed(lines[above:start]) if (words := marked_words(line)))
        found.append(next(own, found[-1] if found else ""))
    return found


def is_marked(line: str) -> bool:
    """Whether signs around the words of a line make it a heading."""
    return bool(_MARKED.match(line[:MOST_OF_HEADING])) and not _OF_PROGRAMS.search(line)


_MARKED = re.compile(r"\s*(?:==|--|\*\*|##)[-=*#\s]*\w")


def _heading(lines: Sequence[str]) -> str:
    """The words of a marked heading right above a table; empty without one."""
    return marked_words(next((line for line in reversed(lines[-3:]) if line.strip()), ""))


def marked_words(line: str) -> str:
    """The words of a marked heading; empty for any other line, and for what only counts."""
    text = line.strip()
    if text[:2] not in ("==", "--", "**", "##") or len(text) > MOST_OF_HEADING:
        return ""
    if _OF_PROGRAMS.search(text):
        return ""
    inner = _HEADING.match(text)
    return _distinctive(inner[1]) if inner else ""


def _caption(lines: Sequence[str]) -> str:
    """The words of the lines right above a table that are of no program."""
    words: list[str] = []
    for line in reversed(lines):
        text = line.strip()
        if not text and words:
            break
        if not re.search(r"\w", text) or _OF_PROGRAMS.search(text) or _HOSTS.fullmatch(line):
            continue
        if typed_text(line):
            continue
        if len(text) > MOST_OF_CAPTION or len(words) == MOST_LINES:
            break
        if own := _distinctive(text):
            words.insert(0, own)
    return " ".join(words)


_OF_PROGRAMS = re.compile(
    r"\b(?:WARN|WARNING|INFO|DEBUG|TRACE|ERROR|[Ww]arning|[Ee]rror)\b|^(?:real|user|sys)\s+[0-9]"
    r"|^#(?!#|\s*[A-Za-z]+ [0-9])|^SUM |^NOTE\b|^Waived\b|^Performance can vary"
    r"|^Running \w+_\w+\.?$"
    r"|^[0-9]+\s+[0-9.]+(?:\s|$)"
)
"""Lines that programs print between two results."""
_COUNTED = (
    r"run|iteration|iter|it|trial|repetition|repeat|rep|round|attempt|pass|sample|job|jobid|step"
    r"|pid|try"
)
_TIMES = re.compile(
    rf"(?:\b(?:{_COUNTED})s?[\s#:=_-]*[0-9]+(?:\s*(?:of|/)\s*[0-9]+)?\b)"
    r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]+)?)?"
    r"|\b[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.?\s+[0-9]{1,2}\b|\b20[0-9]{2}\b"
    r"|\b[0-9]+(?:\.[0-9]+)?\s*(?:s|ms|sec|secs|seconds|min|minutes)\b"
    r"|\b[0-9]+\s*(?:of|/)\s*[0-9]+\b"
    r"|\b[0-9]+(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)  # fmt: skip
"""Dates, times, durations, and the numbers of repetitions and jobs."""


def _distinctive(text: str) -> str:
    """The words of a line without times and without what counts repetitions; empty if no more than
    one number is left."""
    words = re.findall(r"[\w.+/=,:-]*\w", _TIMES.sub(" ", text))
    kept = [each for each in words if not _REPEATED.fullmatch(each)]
    return "" if all(each.isdigit() for each in kept) and len(kept) < 2 else " ".join(kept)


_REPEATED = re.compile(
    rf"(?i:(?:{_COUNTED}|start|begin)(?:s|ing|ning|ed)?[0-9_.-]*|no|of|the|test|date|time|utc|gmt|cest|cet|am|pm"
    r"|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
    r"|elapsed|finished|done|completed?|exit|code|rc|status|results?|output|took|real|user|sys)"
)  # fmt: skip


def _said(lines: Sequence[str], has_no_command: bool) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        if found := _BY_NCCL.search(text):
            if is_setting(found[1]):
                yield f"{found[1]}={found[2]}"
        elif found := _OF_FILE.match(text):
            yield f"file={found[1]}"
        elif "=" in text and len(text) <= MOST_OF_HEADING and not MENTIONS.search(text):
            is_heading = text[:2] in ("==", "--", "**", "##")
            if is_heading or has_no_command:
                inner = _HEADING.match(text)
                named = _ASSIGNMENT.findall(inner[1] if inner else text)
                yield from (f"{name}={value}" for name, value in named if is_setting(name))
