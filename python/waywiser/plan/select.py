"""Which series a person asks for: the patterns of ``--only``.

A pattern is the name of a group of headline paths (``H2D``), a glob, or words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from waywiser.plan.headline import GROUPS, group_of
from waywiser.plan.name import SETS, name_of
from waywiser.words import WaywiserError, Workload

HEADLINES = frozenset(group.casefold() for group in GROUPS if group not in SETS)
"""Groups of headline paths whose names are patterns. The name of a set matches as words do: each
such set has it in its own name."""

NEAREST = 5
"""How many texts are shown when a pattern matches none."""


class NothingMatches(WaywiserError):
    """A pattern that matches no series of the plan."""


def texts_of(workload: Workload) -> tuple[str, ...]:
    """What a pattern may be meant for: the curve, its name, both together, or the group of headline
    paths that it belongs to."""
    curve, name, group = workload.curve, name_of(workload), group_of(workload)
    named = () if name == curve else (name, f"{name}: {curve}")
    return (curve, *named, *([group] if group else ()))


def sized_texts_of(workload: Workload) -> tuple[str, ...]:
    """The same and the workload with its sizes."""
    return str(workload), *texts_of(workload)


def matches(text: str, patterns: Sequence[str]) -> bool:
    """Whether any pattern matches ``text``; no patterns match everything.

    The name of a group of headline paths (`HEADLINES`) matches this name alone, as `texts_of` has
    it. A pattern with ``*`` or ``?`` is a glob over the whole text (brackets are ordinary letters,
    since settings are written in them). Any other is words that must all occur; with an arrow
    (``pinned -> device``) also in that order, since the opposite path has the same words. Case is
    ignored.
    """
    return not patterns or any(_matches_one(text.casefold(), p.casefold()) for p in patterns)


def matches_any(texts: Iterable[str], patterns: Sequence[str]) -> bool:
    """Whether any of the texts of one thing is matched."""
    return any(matches(text, patterns) for text in texts)


def _matches_one(text: str, pattern: str) -> bool:
    if pattern in HEADLINES or text in HEADLINES:
        return text == pattern
    if "*" in pattern or "?" in pattern:
        return fnmatchcase(text, pattern.strip().replace("[", "[[]"))
    words = pattern.split()
    if "->" in words:
        return re.search(".*".join(map(re.escape, words)), text) is not None
    return all(word in text for word in words)


def nearest(pattern: str, texts: Iterable[str]) -> list[str]:
    """The texts most like ``pattern``: those sharing most of its words, then by similarity."""
    words = pattern.casefold().replace("*", " ").replace("?", " ").split()

    def similarity(text: str) -> tuple[int, float]:
        folded = text.casefold()
        shared = sum(word in folded for word in words)
        return shared, difflib.SequenceMatcher(None, pattern.casefold(), folded).ratio()

    return sorted(dict.fromkeys(texts), key=similarity, reverse=True)[:NEAREST]


def require_match(
    patterns: Sequence[str], texts: Sequence[str], others: Sequence[str] = ()
) -> None:
    """Raises `NothingMatches`, with the nearest texts, for a pattern that matches none of them and
    none of ``others``, which nobody is pointed to."""
    for pattern in patterns:
        if not any(matches(text, [pattern]) for text in (*texts, *others)):
            if pattern.casefold() in HEADLINES or pattern.casefold() in SETS:
                raise NothingMatches(
                    f"there is no {pattern} path here: it needs a GPU, or more of them",
                    remedy="waywiser doctor says what this machine has",
                )
            near = "; ".join(nearest(pattern, texts)) or "nothing can be measured here"
            raise NothingMatches(f"--only {pattern!r} matches no series", remedy=f"nearest: {near}")
