"""The copies that simulators of networks know: between pinned memory and GPUs, and between GPUs.

Each pair of places has one latency and one bandwidth: those of a copy of some size, 64 MiB if not
said, by the executor that paths with GPUs are compared by, with default settings.
"""

from __future__ import annotations

from typing import NamedTuple

from waywiser.model.capacity import CapacityModel, CapacityModelReader
from waywiser.model.errors import ModelError
from waywiser.model.share import Demand
from waywiser.words import Memory, Path, Place, Transfer, Workload

ROUTE_BYTES = 64 * 2**20
"""The size of the copies: large enough that bandwidth counts."""


class ExportedRoute(NamedTuple):
    """A copy from one place to another."""

    source: Place
    destination: Place
    demand: Demand


def exported_routes(model: CapacityModel, bytes: int = ROUTE_BYTES) -> list[ExportedRoute]:
    """The routes of all pairs that the model knows. Raises `ModelError` if there are none."""
    machine, traits = model.machine, model.machine.traits
    executor = traits.reference_executor("gpu")
    kinds = {kind: traits.reference_memory("gpu", kind) for kind in ("numa", "gpu")}
    places = [Place("numa", node.index) for node in machine.numa]
    places += [Place("gpu", gpu.index) for gpu in machine.gpus]
    reader = CapacityModelReader(model)
    found = []
    for source in places:
        for destination in places:
            if source == destination or "gpu" not in (source.kind, destination.kind):
                continue
            first, second = (Memory(kinds[each.kind], each) for each in (source, destination))
            workload = Workload((Transfer(Path(first, second, executor), bytes),))
            try:
                (demand,) = reader.demands(workload)
            except ModelError:
                continue  # this pair was not measured
            found.append(ExportedRoute(source, destination, demand))
    if not found:
        raise ModelError(
            "no copy between a GPU and another place was measured",
            remedy="survey the machine with its GPUs: waywiser survey --model -o FILE",
        )
    return found
