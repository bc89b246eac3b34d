"""Workloads by the names of paths that ``--only`` takes: ``h2d gpu:0 of 64MiB``, ``host-to-all``.

A transfer in the grammar of `waywiser.words`, ``A -> B by X``, stays as it is. Any other piece of
a text is a pattern of `waywiser.curves.select`, which has to mean one path, or set, of those that
are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from waywiser.curves.headline import headline
from waywiser.curves.select import matches_any, require_match, texts_of
from waywiser.machine.machine import Machine
from waywiser.words import WaywiserError, Workload

MOST_NAMED = 4
"""Paths of a pattern with several that an error names."""

_PIECE = re.compile(
    r"(?P<pattern>.*?)(?P<size>\s+of\s+[^()]+?)?(?P<flags>\s*\(.*\))?\s*", re.DOTALL
)


class SeveralPaths(WaywiserError):
    """A name that means several paths."""


def is_name(piece: str) -> bool:
    """Whether a piece of a text is no transfer in the grammar of words."""
    return bool(piece.strip()) and " by " not in f" {piece.strip()} "


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


def _written(piece: str, known: Sequence[Workload], machine: Machine, option: str) -> str:
    parts = _PIECE.fullmatch(" ".join(piece.split()))
    assert parts is not None  # each part may be any text of one line, or missing
    pattern, size, flags = parts["pattern"].strip(), parts["size"] or "", parts["flags"] or ""
    found = named_workload(pattern, known, machine, option)
    transfers = (msgspec.structs.replace(each, bytes=0) for each in found.transfers)
    return "; ".join(f"{transfer}{size.rstrip()}" for transfer in transfers) + flags


def named_workload(
    pattern: str, known: Sequence[Workload], machine: Machine, option: str = "--workload"
) -> Workload:
    """The one of the ``known`` workloads that a pattern means. Raises as `with_paths` does."""
    # One of each curve: a path is known at many sizes.
    moving = list({each.curve: each for each in known if each.transfers}.values())
    texts = [texts_of(each, machine) for each in moving]
    every = [text for several in texts for text in several]
    require_match([pattern], every, gpus=len(machine.gpus), option=option)
    meant = [each for each, own in zip(moving, texts, strict=True) if matches_any(own, [pattern])]
    first = headline(machine, meant)
    found = [each for each in meant if each.curve in first] or meant
    plain = [each for each in found if not _has_settings(each)] or found
    fewest = min(len(each.transfers) for each in plain)
    found = [each for each in plain if len(each.transfers) == fewest]
    if len(found) > 1:
        named = "; ".join(each.curve for each in found[:MOST_NAMED])
        more = len(found) - MOST_NAMED
        raise SeveralPaths(
            f"{option} {pattern!r} means {len(found)} paths",
            remedy=f"name one of them: {named}{f'; and {more} more' if more > 0 else ''}",
        )
    return found[0]


def _has_settings(workload: Workload) -> bool:
    return workload.cache != "warm" or any(
        transfer.parameters or transfer.layout is not None or not transfer.path.is_plain
        for transfer in workload.transfers
    )
