"""Collectives: what several memories do together in one transfer.

The bytes of a collective are those of the larger side of each GPU or rank, as nccl-tests count
them: of an allgather the whole that each receives, of a reduce-scatter and an alltoall the whole
that each sends. Bytes over time is the *algorithm bandwidth*. The *bus bandwidth* is that times a
factor, by which rates of different collectives and numbers of GPUs are compared with one link:
what an ideal implementation sends over the link of each GPU, over the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

COLLECTIVE = "collective"
"""The parameter of an executor that says what several memories do."""

ALLREDUCE = "allreduce"
"""What they do if it is not named, by an executor that does not say it with its name."""

EXCHANGE, UNEVEN_EXCHANGE = "alltoall", "alltoallv"
"""What an executor of this name does: each sends to each, messages of one size or of several."""

ROOT = "root"
"""The parameter that says which member a collective starts or ends at: 0 if it is not named."""


def said_by(executor: str) -> bool:
    """Whether the name of the executor says what several memories do."""
    return executor in (EXCHANGE, UNEVEN_EXCHANGE)


def _share(count: int) -> float:
    return (count - 1) / count


FACTORS: Mapping[str, Callable[[int], float]] = {
    ALLREDUCE: lambda count: 2 * _share(count),
    "allgather": _share,
    "reduce-scatter": _share,
    EXCHANGE: _share,
    "gather": _share,
    "scatter": _share,
    "broadcast": lambda count: 1.0,
    "reduce": lambda count: 1.0,
}
"""Bus bandwidth over algorithm bandwidth of so many GPUs or ranks. Messages of several sizes have
none: what one link carries of them is in no proportion to the bytes."""


def collective_of(executor: str, parameters: Mapping[str, str]) -> str:
    """What several memories do by the executor with these parameters."""
    return parameters.get(COLLECTIVE, executor if said_by(executor) else ALLREDUCE)


def bus_factor(collective: str, count: int) -> float:
    """Bus bandwidth over algorithm bandwidth; 1 for a collective that has no factor."""
    factor = FACTORS.get(collective)
    return factor(count) if factor is not None else 1.0
