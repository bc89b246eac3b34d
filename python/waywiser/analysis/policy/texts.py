"""Methods and costs as the command line and reports write them."""

from __future__ import annotations

from waywiser.analysis.policy.decision_table import Method
from waywiser.analysis.policy.table import MethodCosts, collectives_of
from waywiser.machine import DECLARED
from waywiser.machine.traits import BY_MULTIPROCESSORS
from waywiser.words import count, format_settings, size_text, with_units

SLOWED = 1.05
"""Other work that takes less than this many times as long is shown as not slowed down."""


def is_by_multiprocessors(method: Method, costs: MethodCosts) -> bool:
    """Whether it is a copy of the runtime that multiprocessors were observed to make."""
    return costs.multiprocessors is None and DECLARED.executor(method.executor).either_unit


def method_text(method: Method, *, by_multiprocessors: bool = False) -> str:
    """``staged[chunk=1 MiB, threads=10]``; of copies that multiprocessors make
    ``cudaMemcpyAsync, by multiprocessors``."""
    if not by_multiprocessors:
        return with_units(str(method))
    traits = DECLARED.executor(method.executor)
    calls = (call.text for call in traits.calls if not call.settings and not call.two_places)
    call = next(calls, method.executor)
    return with_units(f"{call}{format_settings(method.settings)}{BY_MULTIPROCESSORS}")


def costly_text(method: Method, costs: MethodCosts) -> str:
    """`method_text` of a method with these costs."""
    return method_text(method, by_multiprocessors=is_by_multiprocessors(method, costs))


def costs_text(costs: MethodCosts) -> str:
    """``10 CPUs, 48 MiB pinned``; ``nothing known`` if it takes none of these, and no work was
    measured beside it."""
    parts = [count(costs.threads, "CPU")] if costs.threads else []
    if costs.multiprocessors is None:
        parts.append("multiprocessors")
    elif costs.multiprocessors:
        parts.append(count(costs.multiprocessors, "multiprocessor"))
    parts += [f"{size_text(costs.pinned_bytes)} pinned"] if costs.pinned_bytes else []
    parts += [f"links of {count(costs.relays, 'GPU')}"] if costs.relays else []
    if costs.small_copy is not None:
        parts.append(_slowdown("small copies", costs.small_copy))
    if costs.matrix_product is not None:
        parts.append(_slowdown("matrix products", costs.matrix_product))
    for name, factor in collectives_of(costs).items():
        parts.append(_slowdown(f"calls of {name}", factor))
    return ", ".join(parts) or "nothing known"


def _slowdown(work: str, factor: float) -> str:
    """How much longer other work takes that runs beside a large copy."""
    if factor < SLOWED:
        return f"{work} as fast as alone"
    return f"{work} take {factor:.3g} × the time"
