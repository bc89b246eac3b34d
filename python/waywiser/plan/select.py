"""Selects series: the patterns of ``--only``.

A pattern is words, terms of the field among them (``h2d sm``), or a glob.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from waywiser.plan.headline import GROUPS, group_of
from waywiser.plan.name import SETS, name_of
from waywiser.plan.terms import GPUS_OF, TERMS, terms_of
from waywiser.words import WaywiserError, WordError, Workload

HEADLINES = frozenset(
    group.casefold()
    for group in GROUPS
    if group not in SETS and not TERMS.keys() & set(group.casefold().split()) - {"local"}
)
"""Groups of headline paths whose names are patterns: ``local copy``, ``host copy``. Names of the
others are words and terms."""

NEAREST = 5
"""How many texts are shown when a pattern matches none."""


class NothingMatches(WaywiserError):
    """A pattern that matches no series of the plan."""


def texts_of(workload: Workload) -> tuple[str, ...]:
    """What a pattern may be meant for: the curve, its name, both together, the same with the terms
    that apply to it, and the group of headline paths that it belongs to."""
    curve, name, group = workload.curve, name_of(workload), group_of(workload)
    named = (curve,) if name == curve else (curve, name, f"{name}: {curve}")
    exact = (group,) if group and group.casefold() in HEADLINES else ()
    return (*named, *_with_terms(workload, named[-1]), *exact)


def sized_texts_of(workload: Workload) -> tuple[str, ...]:
    """The same and the workload with its sizes."""
    text = str(workload)
    return (text, *_with_terms(workload, text), *texts_of(workload))


def texts_of_unsupported(path: str) -> tuple[str, ...]:
    """The same of a path that cannot be measured; the text alone if it names kinds of memory."""
    try:
        return texts_of(Workload.parse(path))
    except WordError:
        return (path,)


def matches(text: str, patterns: Sequence[str]) -> bool:
    """Whether any pattern matches ``text``; no patterns match everything.

    The name of a group of headline paths (`HEADLINES`) matches this name alone, as `texts_of` has
    it. A pattern with ``*`` or ``?`` is a glob over the whole text (brackets are ordinary letters,
    since settings are written in them). Any other is words that must all occur; with an arrow
    (``pinned -> device``) also in that order, since the opposite path has the same words. A word
    that is a term (`TERMS`) stands for all to which the term applies. Case is ignored.
    """
    return not patterns or any(_matches_one(text.casefold(), p.casefold()) for p in patterns)


def matches_any(texts: Iterable[str], patterns: Sequence[str]) -> bool:
    """Whether any of the texts of one thing is matched."""
    return any(matches(text, patterns) for text in texts)


def _matches_one(text: str, pattern: str) -> bool:
    if pattern in HEADLINES or text in HEADLINES:
        return text == pattern
    words = pattern.split()
    if text.startswith(MARK):
        applying, _, text = text[1:].partition(MARK)
        terms = TERMS.keys() & set(words)
        if not terms or terms - set(applying.split()):
            return False
        words = [word for word in words if word not in terms]
    elif "*" in pattern or "?" in pattern:
        return fnmatchcase(text, pattern.strip().replace("[", "[[]"))
    if "->" in words:
        return re.search(".*".join(map(re.escape, words)), text) is not None
    return all(word in text for word in words)


MARK = "\N{INFORMATION SEPARATOR ONE}"
"""Around the terms that apply to a text, before it: no text that a person writes has it."""


def _with_terms(workload: Workload, text: str) -> tuple[str, ...]:
    terms = sorted(terms_of(workload))
    return (f"{MARK}{' '.join(terms)}{MARK}{text}",) if terms else ()


def _corrected(pattern: str, texts: Sequence[str]) -> str:
    """The pattern, with each word that occurs nowhere replaced by the nearest one that does; empty
    if nothing is replaced."""
    known = {word for text in texts for word in re.split(r"[^\w-]+", text.casefold()) if word}
    known |= TERMS.keys()
    words = pattern.casefold().split()
    found = []
    for word in words:
        if word in TERMS or any(word in text.casefold() for text in texts):
            found.append(word)
        else:
            found += difflib.get_close_matches(word, sorted(known), n=1) or [word]
    return " ".join(found) if found != words else ""


def nearest(pattern: str, texts: Iterable[str]) -> list[str]:
    """The texts most like ``pattern``: those sharing most of its words, then by similarity."""
    words = pattern.casefold().replace("*", " ").replace("?", " ").split()

    def similarity(text: str) -> tuple[int, float]:
        folded = text.casefold()
        shared = sum(word in folded for word in words)
        return shared, difflib.SequenceMatcher(None, pattern.casefold(), folded).ratio()

    return sorted(dict.fromkeys(texts), key=similarity, reverse=True)[:NEAREST]


def _lacks_gpus(pattern: str, texts: Sequence[str]) -> bool:
    """Whether all that the pattern names needs a GPU, or two, and the texts have fewer."""
    words = set(pattern.split())
    if pattern in HEADLINES or pattern in SETS:
        return True
    found = {place for text in texts for place in re.findall(r"gpu:[0-9]+", text)}
    needed = max((GPUS_OF.get(word, 0) for word in words), default=0)
    return words <= TERMS.keys() and len(found) < needed


def require_match(
    patterns: Sequence[str], texts: Sequence[str], others: Sequence[str] = ()
) -> None:
    """Raises `NothingMatches`, with the nearest texts, for a pattern that matches none of them and
    none of ``others``, which the message does not name."""
    for pattern in patterns:
        if not any(matches(text, [pattern]) for text in (*texts, *others)):
            if _lacks_gpus(pattern.casefold(), texts):
                raise NothingMatches(
                    f"there is no {pattern} path here: it needs a GPU, or more GPUs",
                    remedy="waywiser doctor shows what this machine has",
                )
            if (words := pattern.casefold().split()) and TERMS.keys() >= set(words):
                meanings = "; ".join(f"{word}: {TERMS[word]}" for word in words)
                raise NothingMatches(f"--only {pattern!r} matches no series", remedy=meanings)
            plain = [text for text in texts if not text.startswith(MARK)]
            meant = _corrected(pattern, plain)
            near = "; ".join(nearest(meant or pattern, plain)) or "nothing can be measured here"
            asked = f"did you mean {meant!r}? " if meant else ""
            raise NothingMatches(
                f"--only {pattern!r} matches no series", remedy=f"{asked}nearest: {near}"
            )
