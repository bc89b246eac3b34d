"""What a machine does not support: the number of paths and the reason, or all of them by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from waywiser.hardware.machine import Machine
from waywiser.records import Unsupported
from waywiser.words.members import counted, merged
from waywiser.words.number_format import count
from waywiser.words.sizes_in_text import with_sizes

MOST_REASONS = 3
"""More reasons than these are one line with their number."""

Groups = Iterable[tuple[str, Sequence[str]]]
"""Reasons, each with the paths and operations that it concerns."""


def unsupported_lines(groups: Groups, machine: Machine, where: str) -> Iterator[str]:
    """One line for what needs a GPU on a machine without one, and one for each other reason; if
    there are more than `MOST_REASONS`, one for all. ``where`` is the option that lists them."""
    known = [(reason, list(members)) for reason, members in groups if members]
    needs_gpu = [] if machine.gpus else [g for g in known if g[0] == machine.gpu_reason]
    hint = f"; {where} lists them"
    for reason, members in needs_gpu:
        yield f"not measured: {_amount(members)} that need a GPU: {reason}{hint}"
    others = merged(group for group in known if group not in needs_gpu)
    if len(others) > MOST_REASONS:
        members = [member for _, found in others for member in found]
        yield f"not measured: {_amount(members)}, for {count(len(others), 'reason')}{hint}"
        return
    for reason, members in others:
        named = f": {with_sizes(members[0])}" if len(members) == 1 else ""
        more = f" ({counted(members)}){hint}" if len(members) > 1 else ""
        yield f"not measured{named}: {reason}{more}"


def all_unsupported_lines(groups: Groups) -> Iterator[str]:
    """Every reason, followed by everything that it concerns."""
    for reason, members in merged(groups):
        many = f" ({counted(members)})" if len(members) > 1 else ""
        yield f"not measured: {reason}{many}"
        yield from (f"  {with_sizes(member)}" for member in members)


def reasons_of(unsupported_paths: Iterable[Unsupported]) -> dict[str, list[str]]:
    """The paths and operations by reason."""
    found: dict[str, list[str]] = {}
    for unsupported in unsupported_paths:
        found.setdefault(unsupported.reason, []).append(unsupported.path)
    return found


def _amount(members: Sequence[str]) -> str:
    """``87 paths and 18 operations``; a combination is of kinds of memory and names no place."""
    sorts = Counter(
        "operation" if " by " not in member else "path" if "@" in member else "combination"
        for member in members
    )
    amounts = [
        f"{count(number, sort)}{' of kinds of memory' if sort == 'combination' else ''}"
        for sort, number in sorted(sorts.items(), reverse=True)
    ]
    return " and ".join(filter(None, (", ".join(amounts[:-1]), amounts[-1])))
