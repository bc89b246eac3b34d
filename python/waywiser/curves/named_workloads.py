"""Workloads by the names of paths that tables print and ``--only`` takes: ``h2d gpu:0 of 64MiB``,
``host-to-all pinned@numa:0 -> device@gpu:0-3 by copy-engine of 4 × 256 MiB``.

A transfer in the grammar of `waywiser.words`, ``A -> B by X``, stays as it is. Any other piece of
a text is a pattern of `waywiser.curves.select`, which has to mean one path, or set, of those that
are known; or a path with ``*`` in the number of a place, which means all such paths together; or
the name of a set, of which none need be known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from waywiser.curves.headline import headline
from waywiser.curves.name import SETS, name_of
from waywiser.curves.select import matches_any, require_match, texts_of, without_group
from waywiser.machine import Machine
from waywiser.words import Memory, Transfer, WaywiserError, WordError, Workload, without_units

MOST_NAMED = 4
"""Paths of a pattern with several that an error names."""

MOST_PLACES = 64
"""Places on one side of a set that is written by its name."""

_PIECE = re.compile(
    r"(?P<pattern>.*?)(?P<size>\s+of\s+[^()]+?)?(?P<flags>\s*\(.*\))?\s*", re.DOTALL
)

_TIMES = re.compile(r"(\s+of\s+)(\d+)\s*[×x]\s*")
"""``of 4 × 256 MiB``: the size of each of four transfers, as tables print it."""

_ALL_PLACES = re.compile(r"@(numa|gpu|rank):\*")

_SEVERAL_PLACES = re.compile(r"(?P<kind>.+@(?:numa|gpu|rank):)(?P<places>[0-9][-,0-9]*)")


class SeveralPaths(WaywiserError):
    """A name that means several paths."""


def is_name(piece: str) -> bool:
    """Whether a piece of a text is no transfer in the grammar of words. What is wrong in such a
    transfer is said by the grammar."""
    text = " ".join(piece.split())
    if not text or _is_transfer(text):
        return False
    if " by " not in f" {text} " or "*" in text or "?" in text:
        return True
    without = without_group(text)
    return without != without_units(text) or _set_of(text) is not None


def _is_transfer(text: str) -> bool:
    try:
        Workload.parse(without_units(_TIMES.sub(r"\1", text)).replace("<->", "->"))
    except WordError:
        return False
    return True


def has_name(text: str) -> bool:
    """Whether a text of workloads has a piece that is a name."""
    return any(map(is_name, text.split(";")))


def with_paths(
    text: str, known: Iterable[Workload], machine: Machine, option: str = "--workload"
) -> str:
    """The text with the transfers of each name, of the ``known`` workloads, in its place.

    Raises `NothingMatches` for a name that means none of them, `SeveralPaths` for one that means
    several. Of several the headline paths count, then those without settings.
    """
    if not has_name(text):
        return text
    workloads = list(known)
    pieces = text.split(";")
    return "; ".join(
        _written(piece, workloads, machine, option) if is_name(piece) else piece.strip()
        for piece in pieces
    )


def size_of_each(text: str, number: int) -> str:
    """A text with ``of 4 × 256 MiB``, as tables print it, with the size of each of so many
    transfers alone; other texts as they are."""
    found = _TIMES.search(text)
    return _TIMES.sub(r"\1", text) if found and int(found[2]) == number else text


def _written(piece: str, known: Sequence[Workload], machine: Machine, option: str) -> str:
    parts = _PIECE.fullmatch(" ".join(piece.split()))
    assert parts is not None  # each part may be any text of one line, or missing
    pattern, size, flags = parts["pattern"].strip(), parts["size"] or "", parts["flags"] or ""
    found = _all_together(pattern, known, machine)
    if not found:
        titled = f"{pattern}{flags}"  # the states are part of a title
        try:
            of_state = flags and any(matches_any(texts_of(e, machine), [titled]) for e in known)
            name = titled if of_state else pattern
            workload = named_workload(name, known, machine, option)
            found, flags = workload.transfers, flags or workload.states
        except WaywiserError:
            if not (found := _set_of(pattern) or ()):
                raise
    size = size_of_each(size.rstrip(), len(found))
    transfers = (msgspec.structs.replace(each, bytes=0) for each in found)
    return "; ".join(f"{transfer}{size}" for transfer in transfers) + flags


def _all_together(
    pattern: str, known: Sequence[Workload], machine: Machine
) -> tuple[Transfer, ...]:
    """The known copies that a path with ``@gpu:*`` means, of which no two are between the same
    places; empty for any other pattern."""
    if not _ALL_PLACES.search(pattern) or " by " not in f" {pattern} ":
        return ()
    own = {each.curve: each.transfer for each in known if each.transfer is not None}
    found = [t for text, t in own.items() if t is not None and matches_any([text], [pattern])]
    places = {transfer.path.places for transfer in found}
    return tuple(found) if len(places) == len(found) else ()


def _set_of(text: str) -> tuple[Transfer, ...] | None:
    """The transfers of a set by its name, ``host-to-all pinned@numa:0 -> device@gpu:0-3 by sm``;
    None for any other text, and for a set whose name does not say which places belong together."""
    parts = _PIECE.fullmatch(" ".join(text.split()))
    assert parts is not None
    path = parts["pattern"].strip()
    shape, _, rest = path.partition(" ")
    if shape not in SETS:
        return None
    arrow = "<->" if " <-> " in rest else "->"
    left, _, right = rest.partition(f" {arrow} ")
    right, _, method = right.partition(" by ")
    try:
        sources, destinations = list(_memories(left)), list(_memories(right))
        pairs = [(s, d) for s, d in product(sources, destinations) if s.place != d.place]
        if shape == "ring":
            pairs = list(zip(sources, [*sources[1:], sources[0]], strict=True))
        ways = [f"{s} -> {d} by {without_units(method)}" for s, d in pairs]
        if arrow == "<->":
            ways = [way for s, d in pairs for way in (
                f"{s} -> {d} by {without_units(method)}", f"{d} -> {s} by {without_units(method)}",
            )]  # fmt: skip
        found = Workload.parse("; ".join(ways)) if ways else None
    except (WordError, IndexError):
        return None
    return found.transfers if found is not None and name_of(found) == without_units(path) else None


def _memories(text: str) -> Iterator[Memory]:
    """``device@gpu:0-2,5`` as one memory for each place. Raises `WordError`."""
    found = _SEVERAL_PLACES.fullmatch(text)
    if found is None:
        raise WordError(f"{text!r} has no numbered places")
    for run in found["places"].split(","):
        first, _, last = run.partition("-")
        numbers = range(int(first[:9]), int((last or first)[:9]) + 1)
        for number in numbers[:MOST_PLACES]:
            yield Memory.parse(f"{found['kind']}{number}")


def named_workload(
    pattern: str, known: Sequence[Workload], machine: Machine, option: str = "--workload"
) -> Workload:
    """The one of the ``known`` workloads that a pattern means. Raises as `with_paths` does."""
    # One of each curve: a path is known at many sizes.
    moving = list({each.curve: each for each in known if each.transfers}.values())
    texts = [texts_of(each, machine) for each in moving]
    every = [text for several in texts for text in several]
    meant = _meant(moving, texts, pattern)
    if not meant and "*" in pattern:
        meant = _meant(moving, texts, f"*{pattern}*")  # ``gpu:*`` is a part of a path
    if not meant:
        require_match([pattern], every, gpus=len(machine.gpus), option=option)
    first = headline(machine, meant)
    own = [each for each in meant if first.get(each.curve, "").casefold() == pattern.casefold()]
    found = own or [each for each in meant if each.curve in first] or meant
    plain = [each for each in found if not _has_settings(each)] or found
    fewest = min(len(each.transfers) for each in plain)
    found = [each for each in plain if len(each.transfers) == fewest]
    if len(found) > 1:
        named = "; ".join(map(name_of, found[:MOST_NAMED]))
        more = len(found) - MOST_NAMED
        raise SeveralPaths(
            f"{option} {pattern!r} means {len(found)} paths",
            remedy=f"name one of them: {named}{f'; and {more} more' if more > 0 else ''}",
        )
    return found[0]


def _meant(
    known: Sequence[Workload], texts: Sequence[Sequence[str]], pattern: str
) -> list[Workload]:
    return [each for each, own in zip(known, texts, strict=True) if matches_any(own, [pattern])]


def _has_settings(workload: Workload) -> bool:
    return workload.cache != "warm" or any(
        transfer.parameters or transfer.layout is not None or not transfer.path.is_plain
        for transfer in workload.transfers
    )
