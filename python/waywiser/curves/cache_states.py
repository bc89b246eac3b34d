"""The state of the caches in which a transfer counts when paths are compared.

Surveys measure every transfer with the caches as the last execution left them, and a few also with
a source that was written or flushed before. Another tool may have measured in such a state only:
then that is how the transfer counts, rather than not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from waywiser.words import Cache, Workload, grouped

_STATES: tuple[Cache, ...] = get_args(Cache)
"""The first that was measured counts."""


def counted_curves(workloads: Iterable[Workload]) -> set[str]:
    """The curves that count: of those that differ in the state of the caches alone, one."""
    states = grouped((_without_state(each), each) for each in workloads)
    return {
        min(found, key=lambda each: _STATES.index(each.cache)).curve for found in states.values()
    }


def _without_state(workload: Workload) -> tuple[object, ...]:
    operation = (str(workload.operation),) if workload.operation else ()
    return *(transfer.way for transfer in workload.transfers), *operation, workload.shared
