"""Slowdowns by a large copy of other work: small copies, loads and collectives.

A bystander starts together with one large copy between a GPU and host memory, contiguous or a list,
and is timed by itself; it is measured alone too. Small copies are a row of copies in one stream, so
that most of them start while the large copy runs. Loads are executors that declare the
trait ``bystander``. The large copy lasts longer than either of them. A collective repeats while the
copy does, and both are measured alone in turn with that (`Workload.is_sustained`).
`waywiser.analysis.policy.costs` makes the slowdown of it. `waywiser.measure.plan.sets` plans them.
"""

from __future__ import annotations

from waywiser.machine import Traits
from waywiser.words import Workload

SMALL_COPY = 2**16
"""Most bytes of a copy that is small."""

MANY_TIMES = 16
"""The copy beside small ones is so many times as large at least."""


def bystander_of(workload: Workload, traits: Traits) -> int | None:
    """Returns the position of the transfer that is measured beside a large copy, if the workload
    is such a pair: a load, small copies, or a collective."""
    if workload.is_sustained:
        return _collective_of(workload, traits)
    if len(workload.copies) != 2:
        return None
    one, other = workload.copies
    loads = [traits.executor(each.path.executor).bystander for each in (one, other)]
    if any(loads):
        return loads.index(True) if not all(loads) else None
    small, large = (0, other) if one.bytes < other.bytes else (1, one)
    found = workload.transfers[small]
    piece = found.layout.run if found.layout is not None else found.bytes
    is_one = large.layout is None or large.layout.kind == "list"
    is_large = MANY_TIMES * found.bytes <= large.bytes
    return small if piece <= SMALL_COPY and is_one and is_large else None


def _collective_of(workload: Workload, traits: Traits) -> int | None:
    """Returns the position of the collective in a set with one copy, which is no load."""
    collectives = [each.path.is_among_several for each in workload.transfers]
    if len(collectives) != 2 or all(collectives):
        return None
    at = collectives.index(True)
    copy = workload.transfers[1 - at]
    return None if traits.executor(copy.path.executor).bystander else at
