"""Selects series: the patterns of ``--only``.

A pattern is words, terms of the field among them (``h2d sm``), or a glob.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise

from msgspec.structs import replace

from waywiser.curves.headline import (
    FILE_READ,
    GROUPS,
    all_cores_group,
    group_of,
    headline_label,
    headline_title,
    reads_file,
)
from waywiser.curves.name import SETS, label_of, name_of
from waywiser.curves.terms import (
    GPUS_OF,
    LINK_TERMS,
    LINKS_UNKNOWN,
    OTHER_NAMES,
    PHRASES,
    QUANTITIES,
    TERMS,
    terms_of,
)
from waywiser.machine import DECLARED, Machine, declared_names
from waywiser.words import (
    WaywiserError,
    WordError,
    Workload,
    count,
    piece_between,
    with_units,
    without_units,
)

HEADLINES = frozenset(
    group.casefold()
    for group in (*GROUPS, FILE_READ)
    if group not in SETS and not TERMS.keys() & set(group.casefold().split()) - {"local"}
)
"""Groups of headline paths whose names are patterns: ``local copy``, ``host copy``, ``file read``.
Names of the others are words and terms."""

_NAMES = TERMS.keys() | SETS.keys()
"""Words of a pattern that have a meaning of their own."""

NEAREST = 5
"""How many texts are shown when a pattern matches none."""


class NothingMatches(WaywiserError):
    """A pattern that matches no series of the plan."""


class UnknownLinks(WaywiserError):
    """A pattern that asks for kinds of links, of a machine whose links are not known."""


def texts_of(workload: Workload, machine: Machine | None = None) -> tuple[str, ...]:
    """What a pattern may be meant for: the curve, its name, both together, the same with the terms
    that apply to it, and of a headline path its label, its title and its group.

    Without the ``machine`` whose workload it is, no link is known: ``pcie`` and ``nvlink`` apply to
    nothing.
    """
    return _texts_of(workload, name_of(workload), machine, sorted(terms_of(workload, machine)))


def _texts_of(
    workload: Workload, name: str, machine: Machine | None, terms: Sequence[str]
) -> tuple[str, ...]:
    traits = machine.traits if machine else DECLARED
    curve = workload.curve
    headline = group_of(workload, traits)
    group = FILE_READ if reads_file(workload, traits) else headline
    named = (curve,) if name == curve else (curve, name, f"{name}: {curve}")
    if workload.kind == "collective":
        ends = (end for transfer in workload.transfers for end in transfer.path.ends)
        members = dict.fromkeys(str(single) for end in ends for single in end.each)
        named = (*named, f"{curve}: {' '.join(members)}")
    exact = (group,) if group and group.casefold() in HEADLINES else ()
    labels = [headline_label(headline, name)] if headline else []
    if any_state := group or group_of(replace(workload, cache="warm"), traits):
        labels += [headline_title(any_state, workload)]
    if machine is not None and (of_cores := all_cores_group(workload, machine)):
        labels += [of_cores, headline_title(of_cores, workload)]
    equal = (f"{LABEL}{label}" for label in labels)
    return (*named, *_after(terms, named[-1]), *exact, *equal)


def sized_texts_of(workload: Workload, machine: Machine | None = None) -> tuple[str, ...]:
    """The same, and the workload and its name with sizes."""
    name = name_of(workload)
    text, label = str(workload), without_units(label_of(workload, name))
    named = (text,) if label == text else (text, label)
    terms = sorted(terms_of(workload, machine))
    return (*named, *_after(terms, text), *_texts_of(workload, name, machine, terms))


def texts_of_unsupported(path: str, machine: Machine | None = None) -> tuple[str, ...]:
    """The same of a path that cannot be measured; the text alone if it names kinds of memory."""
    try:
        return texts_of(Workload.parse(path), machine)
    except WordError:
        return (path,)


def matches_any(texts: Iterable[str], patterns: Sequence[str]) -> bool:
    """Whether any pattern matches any of the texts of one thing; no patterns match everything.

    The name of a group of headline paths (`HEADLINES`) matches this name alone, as `texts_of` has
    it. A whole path, as tables print it, matches this path alone, also after its group
    (``H2D A -> B by X``) or a term, and so does the title of a headline path
    (``H2D, numa:0 -> gpu:0``). A pattern with ``*`` or ``?`` is a glob over the whole text
    (brackets are ordinary letters, since settings are written in them). Any other is words that
    must all occur, one with a place (``launch@gpu:0``) from the start of a name; with an arrow
    (``pinned -> device``) also in that order, since the opposite path has the same words. A word
    that is a term (`TERMS`) stands for all to which the term applies; the other words may be a glob
    (``h2d pinned*``). Case is ignored.
    """
    folded = [_folded(pattern) for pattern in patterns]
    return not folded or any(_matches_one(_folded(text), p) for text in texts for p in folded)


@cache
def _folded(pattern: str) -> str:
    """A pattern or a text as they are compared: sizes may be written as they are shown,
    ``piece=28KiB``, places as people say them, ``GPU 0``, and terms in words, ``host to device``.
    A text is folded too, since names of files and nodes may have such words: ``/data/gpu0``."""
    found = _SPOKEN_PLACE.sub(r"\1:\2", without_units(pattern).casefold())
    for phrase, term in PHRASES:
        found = re.sub(phrase, term, found)
    return found


_SPOKEN_PLACE = re.compile(r"\b(gpu|numa) ?([0-9]+)\b")


def nodes_in(patterns: Iterable[str]) -> frozenset[int]:
    """The NUMA nodes that patterns name, each by its number."""
    return frozenset(int(n) for each in patterns for n in _NODE.findall(_folded(each)))


_NODE = re.compile(r"\bnuma:([0-9]{1,9})(?![0-9])")


_PLACES = re.compile(r"(?<=[a-z])(:\d+)[-,\d]+(?= )")
"""The places of a set, ``:0-7``: the first is kept."""


_PREFIXES = sorted({*SETS, *map(str.casefold, GROUPS)}, key=len, reverse=True)
"""Names of sets, and of groups of headline paths, the longest first."""


def without_group(pattern: str) -> str:
    """A pattern without the name of the set or of the group that it starts with."""
    folded = _folded(pattern)
    first = next((prefix for prefix in _PREFIXES if folded.startswith(f"{prefix} ")), "")
    return without_units(pattern)[len(first) :].strip()


def is_whole_path(pattern: str) -> bool:
    """Whether a pattern stands for one path or set."""
    return bool(_meant(_folded(pattern)))


@cache
def _meant(pattern: str) -> tuple[str, ...]:
    """The texts that a folded pattern stands for if it is the text or the name of a path or of a
    set, as tables print it: ``A -> B by sm``, ``A <-> B by sm[blocks=2]``, ``host-to-all A ->
    device@gpu:0-7 by sm``, ``H2D A -> B by sm``. Empty for any other pattern.

    A path also stands for its kinds of memory, as paths are listed that no places support.
    """
    if "*" in pattern or "?" in pattern or " by " not in pattern:
        return ()
    try:
        ends = _PLACES.sub(r"\1", without_group(pattern))
        workload = Workload.parse(ends.replace("<->", "->"))
    except WordError:
        return ()
    kinds = [transfer.path.kinds for transfer in workload.transfers]
    return (pattern, *(kinds if "<->" not in pattern and len(kinds) == 1 else ()))


def asks_for_latency(pattern: str) -> bool:
    """Whether a pattern has the term that applies to small sizes alone."""
    return "latency" in pattern.casefold().split()


def _matches_one(text: str, pattern: str) -> bool:
    if text.startswith(LABEL):
        return text.removeprefix(LABEL) == pattern
    if pattern in HEADLINES or text in HEADLINES:
        return text == pattern
    words = pattern.split()
    if text.startswith(MARK):
        applying, _, text = text[1:].partition(MARK)
        terms = _ALL_TERMS & set(words)
        if not terms or terms - set(applying.split()):
            return False
        words = [word for word in words if word not in terms]
        pattern = " ".join(words)
    if meant := _meant(pattern):
        return text in meant
    if "*" in pattern or "?" in pattern:
        return fnmatchcase(text, pattern.strip().replace("[", "[[]"))
    if "->" in words:
        return re.search(".*".join(map(_found_by, words)), text) is not None
    return all(word in text and re.search(_found_by(word), text) for word in words)


@cache
def _found_by(word: str) -> str:
    """The expression that finds a word of a pattern in a text. A place, or a memory or an operation
    at one, is found as a whole: ``launch@gpu:1`` is neither in ``graph-launch@gpu:1`` nor in
    ``launch@gpu:10``, and ``gpu:1`` not in ``gpu:10``."""
    if "@" not in word and not _PLACE.fullmatch(word):
        return re.escape(word)
    start = r"(?<![\w-])" if word[0].isalnum() else ""
    end = r"(?!\d)" if word[-1].isdigit() else ""
    return f"{start}{re.escape(word)}{end}"


_ALL_TERMS = TERMS.keys() | {LINKS_UNKNOWN}

MARK = "\N{INFORMATION SEPARATOR ONE}"
"""Around the terms that apply to a text, before it: no text that a person writes has it."""

LABEL = MARK * 2
"""Before a text that a pattern has to equal."""


def with_terms(workload: Workload, text: str, machine: Machine | None = None) -> tuple[str, ...]:
    """The text after the terms that apply to the workload; nothing if none does."""
    return _after(sorted(terms_of(workload, machine)), text)


def _after(terms: Sequence[str], text: str) -> tuple[str, ...]:
    return (f"{MARK}{' '.join(terms)}{MARK}{text}",) if terms else ()


def _plain(texts: Iterable[str]) -> dict[str, set[str]]:
    """The texts without terms before them, each with the terms that apply to it."""
    found: dict[str, set[str]] = {}
    for text in texts:
        if text.startswith(LABEL):
            continue
        applying, _, plain = text.removeprefix(MARK).rpartition(MARK)
        found.setdefault(plain, set()).update(applying.split())
    return found


def _corrected(pattern: str, texts: Iterable[str]) -> str:
    """The pattern, with each word that is no term and no name of a memory, an executor or a set,
    and occurs in no text, replaced by the nearest one that is or does and has the same digits or
    none (``gpu:7`` does not mean ``gpu:1``); empty if nothing is replaced."""
    folded = [text.casefold() for text in texts]
    names = {*_NAMES, *map(str.casefold, declared_names())}
    known = names | {word for text in folded for part in _PARTS for word in part.findall(text)}
    words = pattern.casefold().split()
    found = []
    for word in words:
        if word in names or any(word in text for text in folded):
            found.append(word)
        elif word in OTHER_NAMES:
            found.append(OTHER_NAMES[word])
        else:
            alike = sorted(each for each in known if _digits(each) in ("", _digits(word)))
            near = [] if _PLACE.fullmatch(word) else difflib.get_close_matches(word, alike, n=1)
            found += near or [word]
    return " ".join(found) if found != words else ""


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))


_PLACE = re.compile(r"[a-z]+:[0-9]+")
"""A place that is not there is no misspelt word."""

_PARTS = tuple(map(re.compile, (r"[\w-]+", r"[a-z]+:[0-9]+", r"[^\s:;,]+@[a-z]+:[0-9]+")))
"""Words of a text, places, and memories at places."""


def nearest(pattern: str, texts: Iterable[str]) -> list[str]:
    """The texts most like ``pattern``: those sharing most of its words and terms, then by
    similarity."""
    words = pattern.casefold().replace("*", " ").replace("?", " ").split()
    terms = _plain(texts)

    def similarity(text: str) -> tuple[int, float]:
        folded = text.casefold()
        shared = sum(word in folded or word in terms[text] for word in words)
        return shared, difflib.SequenceMatcher(None, pattern.casefold(), folded).ratio()

    return sorted(terms, key=similarity, reverse=True)[:NEAREST]


def suggestion(pattern: str, texts: Iterable[str], others: Iterable[str] = ()) -> str:
    """``did you mean 'pinned'? nearest: …``: the pattern with its misspelt words corrected one by
    one, and the texts nearest to that, if it matches any; empty without texts. A correction that
    matches ``others`` alone, or of which each word has a meaning of its own, is the whole answer;
    one that matches nothing is none."""
    known = list(texts)
    meant = _corrected(pattern, _plain(known))
    if meant and not matches_any(known, [meant]):
        if set(meant.split()) <= _NAMES or matches_any(others, [meant]):
            return f"did you mean {meant!r}?"
        meant = ""
    meaning = f"did you mean {meant!r}? " if meant else ""
    near = "; ".join(nearest(meant or pattern, known))
    return f"{meaning}nearest: {near}" if near else ""


def _gpus_needed(pattern: str) -> int:
    """How many GPUs a machine needs for what the pattern names; 0 if it has other words."""
    words = [pattern] if pattern in HEADLINES else pattern.split()
    if not set(words) <= _NAMES | HEADLINES:
        return 0
    return max((GPUS_OF.get(word, 0) for word in words), default=0)


def _require_known_links(pattern: str, texts: Iterable[str]) -> None:
    words = pattern.casefold().split()
    if not LINK_TERMS & set(words):
        return
    unknown = " ".join([LINKS_UNKNOWN, *(word for word in words if word not in LINK_TERMS)])
    if any(text.startswith(MARK) and _matches_one(text, unknown) for text in texts):
        raise UnknownLinks(
            f"--only {pattern!r}: the links of these paths are not known",
            remedy="write p2p or h2d, or import again: waywiser import --topology FILE",
        )


def require_match(
    patterns: Sequence[str],
    texts: Sequence[str],
    others: Sequence[str] = (),
    *,
    gpus: int | None = None,
    measured: bool = False,
    option: str = "--only",
) -> None:
    """Raises `NothingMatches`, with the nearest texts, for a pattern that matches none of them and
    none of ``others``, which the message does not name. Raises `UnknownLinks` for one that asks for
    a kind of link, if the links of anything else that it matches are not known.

    ``gpus`` is the number of GPUs of the machine, None if it is not known. ``measured`` are texts
    of a profile, not of a plan. ``option`` is the name by which the command line has the patterns.
    """
    for pattern in patterns:
        if not pattern.strip():
            raise NothingMatches(f"{option} {pattern!r} is empty", remedy=f"write {option} h2d")
        _require_known_links(pattern, texts)
        if not matches_any((*texts, *others), [pattern]):
            raise _nothing_matches(pattern, texts, others, option, gpus=gpus, measured=measured)


def _repeated(patterns: Sequence[str], option: str) -> str:
    return " ".join(f"{option} {shlex.quote(pattern)}" for pattern in patterns)


_LAYOUT = re.compile(r"\b(list|box)\[([^\]\s]*)\]?")


def _other_layouts(pattern: str, texts: Iterable[str], *, measured: bool) -> str:
    """What to do if the settings of a layout in the pattern keep it from matching: which layouts
    there are, and how to measure others. Empty if it names no layout."""
    folded = _folded(pattern)
    named = _LAYOUT.search(folded)
    if named is None:
        return ""
    kind, settings = named[1], named[2]
    any_settings = folded.replace(named[0], f"{kind}[")
    known = {
        found[0]: text.rpartition(MARK)[2].partition(" as ")[0]
        for text in texts
        if matches_any([text], [any_settings]) and (found := _LAYOUT.search(text))
    }
    if not known:
        other = f"waywiser survey --only {kind} measures such layouts"
        return other if measured else "name another --preset, or the transfers with --workload"
    numbers = {layout: [int(n) for n in re.findall("[0-9]{1,20}", layout)] for layout in known}
    ordered = sorted(known, key=lambda layout: numbers[layout])
    workload = f"{next(iter(known.values()))} as {with_units(f'{kind}[{settings}]')}"
    remedy = f"{'measured are' if measured else 'presets measure'} " + ", ".join(
        map(with_units, ordered)
    )
    remedy += f"; waywiser survey --workload {shlex.quote(workload)} measures another one"
    pieces = [numbers[layout][0] for layout in ordered if kind == "list"]
    between = {piece_between(low, high) for low, high in pairwise(pieces)} - {None}
    if settings in {f"piece={piece}" for piece in between}:
        remedy += "; waywiser show FILE --only list --all interpolates these pieces"
    return remedy


def _nothing_matches(
    pattern: str,
    texts: Sequence[str],
    others: Sequence[str],
    option: str,
    *,
    gpus: int | None,
    measured: bool,
) -> NothingMatches:
    name = " ".join(pattern.casefold().split())
    if gpus is not None and gpus < (needed := _gpus_needed(name)):
        return NothingMatches(
            f"there is no {pattern} path here: it needs {count(needed, 'GPU')}, available: {gpus}",
            remedy="waywiser topology FILE shows the machine of a profile"
            if measured
            else "waywiser doctor shows what this machine has",
        )
    if missing := _absent_gpu(pattern, texts, gpus):
        known = "no GPU" if not gpus else "gpu:0 alone" if gpus == 1 else f"gpu:0 to gpu:{gpus - 1}"
        what = f"{option} {pattern!r}: there is no {missing} here"
        return NothingMatches(what, remedy=f"the machine has {known}")
    absent = "was not measured" if measured else "matches no series"
    remedy = _remedy_of_names(pattern, texts, option, measured=measured)
    if not remedy and (remedy := _remedy_of_quantity(pattern, option)):
        absent = "matches no series"
    remedy = remedy or _other_layouts(pattern, texts, measured=measured)
    if not remedy:
        absent = "matches no series"
        remedy = suggestion(pattern, texts, others) or "nearest: nothing can be measured here"
    return NothingMatches(f"{option} {pattern!r} {absent}", remedy=remedy)


def _absent_gpu(pattern: str, texts: Iterable[str], gpus: int | None) -> str:
    """The first GPU that a pattern names and that a machine with so many GPUs does not have; empty
    if there is none, or if the number of GPUs is not known. Those of a selection keep their
    numbers, so that one with a path is there."""
    named = _GPU.findall(_folded(pattern))
    if gpus is None or all(int(number) < gpus for number in named):
        return ""
    known = {number for text in texts for number in _GPU.findall(text)}
    absent = (number for number in named if int(number) >= gpus and number not in known)
    return next((f"gpu:{number}" for number in absent), "")


_GPU = re.compile(r"\bgpu:([0-9]{1,9})(?![0-9])")


def _remedy_of_names(pattern: str, texts: Sequence[str], option: str, *, measured: bool) -> str:
    """What to do if the pattern is made of terms, of several patterns, or is the name of what is
    measured only on request; empty if it is none of these."""
    words = pattern.casefold().split()
    name = " ".join(words)
    if words and TERMS.keys() >= set(words):
        meanings = "; ".join(f"{word}: {TERMS[word]}" for word in words)
        either = f"; to select each of them: {_repeated(words, option)}" if len(words) > 1 else ""
        return meanings + either
    parts = [part.strip() for part in pattern.split(",") if part.strip()]
    if len(parts) > 1 and all(matches_any(texts, [part]) for part in parts):
        return f"to select each of them: {_repeated(parts, option)}"
    if name in HEADLINES or (words and set(words) <= _NAMES):
        other = "a --file" if name == FILE_READ else "the transfers with --workload"
        if measured:
            return f"waywiser survey --only {pattern!r} measures it"
        return f"name another --preset, or {other}"
    return ""


def _remedy_of_quantity(pattern: str, option: str) -> str:
    """What to do if the pattern names a quantity; empty if it does not."""
    words = pattern.casefold().split()
    quantity = next((word for word in words if word in QUANTITIES), "")
    if not quantity:
        return ""
    others = " ".join(word for word in words if word not in QUANTITIES) or "h2d"
    return f"every path has a {quantity}: leave this word out, write {option} {shlex.quote(others)}"
