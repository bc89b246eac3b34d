"""Who makes the copies of a machine's GPUs, as a survey observed: copy engines or multiprocessors.

A copy that ends while a kernel occupies all multiprocessors of the GPUs at its ends needs none of
them. One that always waits for the kernel, and ends right after it, is made by them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from waywiser.words import Observation, Path, WhileOccupied, WhoCopies, grouped

MADE_BY: dict[WhileOccupied, str] = {
    "waited": "by multiprocessors",
    "ended": "by copy engines",
    "undecided": "not decided",
}
"""What an observation says of a kind of copy. Engines: whatever is not a multiprocessor."""


def who_copies_sentences(found: Sequence[WhoCopies]) -> list[str]:
    """One line for each result, and one for each GPU of which nothing is known; none without
    observations."""
    kinds: dict[tuple[str, str, str], list[Observation]] = {}
    for copy in (copy for each in found for copy in each.copies):
        path, layout = copy.transfer.path, copy.transfer.layout
        key = ends_text(path), path.executor, layout.kind if layout is not None else "contiguous"
        kinds.setdefault(key, []).append(copy.seen)
    lines = []
    for result, made in MADE_BY.items():
        these = [key for key, seen in kinds.items() if _one(seen) == result]
        if these:
            reasons = {each.reason for key in these for each in kinds[key] if each.reason}
            why = f": {'; '.join(sorted(reasons))}" if result == "undecided" and reasons else ""
            lines.append(f"copies {made}: {'; '.join(_named(these, kinds))}{why}")
    return lines + [
        f"who copies on gpu:{each.gpu} is not known: {each.failure.reason}"
        for each in found
        if each.failure is not None
    ]


def _one(seen: Sequence[Observation]) -> WhileOccupied:
    """What all that is decided agrees on. What differs between GPUs, sizes or settings is not
    decided."""
    found = {each.found for each in seen} - {"undecided"}
    return next(iter(found)) if len(found) == 1 else "undecided"


def _named(
    these: Sequence[tuple[str, str, str]], kinds: Collection[tuple[str, str, str]]
) -> Iterable[str]:
    """``pinned -> device, device -> pinned by batch and copy-engine``: layouts are named where not
    all of them have this result."""
    methods: dict[str, list[str]] = {}
    for ends, executor in dict.fromkeys(key[:2] for key in these):
        layouts = [key[2] for key in these if key[:2] == (ends, executor)]
        some = len(layouts) < sum(key[:2] == (ends, executor) for key in kinds)
        named = f"{executor} ({', '.join(layouts)})" if some else executor
        methods.setdefault(ends, []).append(named)
    paths = grouped((" and ".join(names), ends) for ends, names in methods.items())
    return (f"{', '.join(ends)} by {names}" for names, ends in paths.items())


def ends_text(path: Path) -> str:
    """``device -> device within a GPU``."""
    one, other = path.places
    between = " within a GPU" if one == other else " of a peer" if one.kind == other.kind else ""
    return f"{path.source.kind} -> {path.destination.kind}{between}"
