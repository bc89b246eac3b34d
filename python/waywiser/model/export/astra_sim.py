"""The network of ASTRA-sim (YAML of its analytical network): GPUs of one dimension.

Its grammar (``inputs/network/analytical`` of ASTRA-sim): ``topology``, ``npus_count``,
``bandwidth`` (GB/s, of one link and direction) and ``latency`` (ns) are lists with an entry for
each dimension.
"""

from __future__ import annotations

from statistics import median

from waywiser.model.capacity import CapacityModel
from waywiser.model.errors import ModelError
from waywiser.model.export.exported_routes import ExportedRoute, exported_routes
from waywiser.version import __version__

EQUAL = 0.05
"""Links whose bandwidths differ by less from their median are equal."""


def astra_sim_yaml(model: CapacityModel) -> str:
    """The network between all GPUs: ``Switch`` if each GPU is linked to a switch,
    ``FullyConnected`` if all are linked directly.

    Raises `ModelError` for fewer than two GPUs, for pairs that were not measured, and for links
    that differ: one dimension has one bandwidth.
    """
    gpus = model.machine.gpus
    routes = _equal_routes(model)
    middle = median(each.demand.rate for each in routes)
    links = {link.to.partition(":")[0] for gpu in gpus for link in gpu.nvlinks}
    topology = "FullyConnected" if links == {"gpu"} else "Switch"
    # A copy through a switch takes two of its links, and ASTRA-sim adds the latency of each.
    hops = 2 if topology == "Switch" else 1
    latency = median(each.demand.latency for each in routes) / hops
    return (
        f"# GPUs of {_comment(model.machine.hostname or 'machine')}, made by waywiser "
        f"{__version__}.\n"
        + (
            f"# The machine is simulated {_comment(model.machine.simulated)}.\n"
            if model.machine.simulated
            else ""
        )
        + "# It loses: all copies with the host; limits of both directions together; times of\n"
        "# small copies; differences between GPUs up to 5 %; intervals.\n"
        f"topology: [ {topology} ]\n"
        f"npus_count: [ {len(gpus)} ]\n"
        f"bandwidth: [ {middle / 1e9:.3f} ] # GB/s\n"
        f"latency: [ {latency * 1e9:.1f} ] # ns\n"
    )


def _equal_routes(model: CapacityModel) -> list[ExportedRoute]:
    """The routes between all GPUs. Raises `ModelError` if one is missing or they differ."""
    gpus = model.machine.gpus
    routes = [each for each in exported_routes(model) if each.source.kind == each.destination.kind]
    if len(gpus) < 2 or len(routes) < len(gpus) * (len(gpus) - 1):
        raise ModelError(
            f"{len(routes)} of {len(gpus) * (len(gpus) - 1)} pairs of GPUs were measured, and "
            "ASTRA-sim needs all of at least two GPUs",
            remedy="survey the machine with all its GPUs",
        )
    middle = median(each.demand.rate for each in routes)
    worst = max(routes, key=lambda each: abs(each.demand.rate / middle - 1))
    if abs(worst.demand.rate / middle - 1) > EQUAL:
        raise ModelError(
            f"the links of the GPUs differ: {worst.source} to {worst.destination} has "
            f"{worst.demand.rate / 1e9:.1f} GB/s, the median is {middle / 1e9:.1f} GB/s",
            remedy="ASTRA-sim has one bandwidth for all: use --for simgrid",
        )
    return routes


def _comment(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())
