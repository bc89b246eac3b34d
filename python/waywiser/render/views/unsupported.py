"""What a machine does not support: the number of paths and the reason, or all of them by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.machine import Machine
from waywiser.render.parts import Words
from waywiser.words import MOST_REASONS, Unsupported, count, counted, grouped, with_sizes
from waywiser.words.member_lines import merged

Groups = Iterable[tuple[str, Sequence[str]]]
"""Reasons, each with the paths and operations that it concerns."""


def unsupported_words(groups: Groups, machine: Machine, where: str) -> Iterator[Words]:
    """A line for what needs a GPU on a machine without one, and one for each other reason; if
    there are more than `MOST_REASONS`, one for all. ``where`` is the option that lists them. Pairs
    of memories without places, which no machine supports, are counted if there is nothing else."""
    hint = f"; {where} lists them"
    others = []
    known = [(reason, members) for reason, members in groups if members]
    of_places = [(reason, [each for each in own if "@" in each]) for reason, own in known]
    known = [group for group in of_places if group[1]] or known
    for reason, members in merged(known):
        if machine.gpus or reason != machine.gpu_reason:
            others.append((reason, members))
            continue
        need = "needs" if len(members) == 1 else "need"
        yield Words(f"not measured: {counted(members)} that {need} a GPU: {reason}{hint}")
    if len(others) > MOST_REASONS:
        all_members = [member for _, members in others for member in members]
        reasons = count(len(others), "reason")
        yield Words(f"not measured: {counted(all_members)}, for {reasons}{hint}")
        return
    for reason, members in others:
        named = f": {with_sizes(members[0])}" if len(members) == 1 else ""
        more = f" ({counted(members)}){hint}" if len(members) > 1 else ""
        yield Words(f"not measured{named}: {reason}{more}")


def all_unsupported_words(groups: Groups) -> Iterator[Words]:
    """Every reason, followed by everything that it concerns."""
    for reason, members in merged(groups):
        many = f" ({counted(members)})" if len(members) > 1 else ""
        yield Words(f"not measured: {reason}{many}")
        yield from (Words(with_sizes(member), indent=2) for member in members)


def reasons_of(unsupported_paths: Iterable[Unsupported]) -> dict[str, list[str]]:
    """The paths and operations by reason."""
    return grouped((unsupported.reason, unsupported.path) for unsupported in unsupported_paths)
