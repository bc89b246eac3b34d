"""The theoretical peak of a workload: what its links could carry at best, and what that is made of.

Line encoding is subtracted, packet headers and flow control are not, so nothing can be faster and
nothing reaches it. One exception says so itself: a bare topology file gives a link's speed only as
it was when the file was written. What no system reports (the bandwidth of the host's memory) bounds
nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from waywiser.machine import pcie
from waywiser.machine.machine import Gpu, Machine, NvLink
from waywiser.machine.routes import is_through_host, relays_of, takes_shortest_path
from waywiser.words import Transfer, Value, Workload, count

_GPU = re.compile(r"gpu:\d+")


_ON_MODULE = {
    "coherent": "the GPU is on a module with the CPU: the rate of the NVLink between them is not "
    "known",
    "integrated": "the GPU uses the host's memory, whose bandwidth the system does not show",
}
"""Why the link between a GPU and the host has no bound, by `waywiser.machine.machine.Gpu.host`."""


class Bound(Value, frozen=True):
    """The most that a workload can move, over all its transfers together."""

    bytes_per_second: float
    made_of: str
    """As in ``PCIe 5 x16: 16 lanes × 32 GT/s × 128/130 / 8 = 63.0 GB/s``."""
    narrowest: str
    """The resource that limits: ``PCIe to gpu:0``, ``NVLink out of gpu:0``, ``memory of gpu:0``."""
    note: str = ""
    """What to know of it: the state of a link that was not at its most when captured."""


class Resource(NamedTuple):
    """Something that carries bytes one way, shared by all transfers that pass."""

    name: str
    bytes_per_second: float
    made_of: str
    note: str = ""
    link: str = ""
    """The link that this is one direction of, as in ``PCIe of gpu:0``; empty if it is none."""


class Use(NamedTuple):
    """A resource that a transfer uses."""

    resource: Resource
    passes: int = 1
    """How often one byte of the transfer goes through it."""


def bound(machine: Machine, workload: Workload) -> Bound | None:
    """The workload's theoretical peak, None if it is not known (see `why_unbounded`)."""
    found = _bound(machine, workload)
    return found if isinstance(found, Bound) else None


def why_unbounded(machine: Machine, workload: Workload) -> str:
    """The reason why `bound` knows none; empty if it does."""
    found = _bound(machine, workload)
    return found if isinstance(found, str) else ""


def _bound(machine: Machine, workload: Workload) -> Bound | str:
    """Each resource needs its bytes over its rate; the slowest one bounds the whole."""
    if not workload.transfers:
        return "an operation moves no bytes"
    moved = 0
    load: dict[str, int] = {}
    resources: dict[str, Resource] = {}
    for transfer in workload.transfers:
        found = uses(machine, transfer)
        if isinstance(found, str):
            return found
        size = transfer.bytes or 1  # a curve, without sizes: all transfers alike
        moved += size
        for resource, passes in found:
            resources[resource.name] = resource
            load[resource.name] = load.get(resource.name, 0) + passes * size
    seconds = {name: load[name] / resources[name].bytes_per_second for name in load}
    narrowest = max(seconds, key=lambda name: seconds[name])
    rate = moved / seconds[narrowest]
    made_of = resources[narrowest].made_of
    if workload.kind == "set":
        made_of += f"; {len(workload.transfers)} transfers together {rate / 1e9:.1f} GB/s"
    return Bound(rate, made_of, narrowest, resources[narrowest].note)


def uses(machine: Machine, transfer: Transfer) -> tuple[Use, ...] | str:
    """The resources that a transfer passes through, or why they are unknown."""
    found = _shown_by_topology(machine, transfer)
    if isinstance(found, str) or not machine.assumed_peaks:
        return found
    return tuple(each._replace(resource=_assumed(machine, each.resource)) for each in found)


def of_any_gpu(resource: str) -> str:
    """The name of a resource without the numbers of GPUs: ``PCIe to gpu:*``."""
    return _GPU.sub("gpu:*", resource)


def _assumed(machine: Machine, resource: Resource) -> Resource:
    """The resource with the peak that a simulated machine is assumed to have, if there is one: that
    of this resource, else that of all GPUs."""
    peaks = {each.resource: each for each in machine.assumed_peaks}
    peak = peaks.get(resource.name) or peaks.get(of_any_gpu(resource.name))
    if peak is None:
        return resource
    return resource._replace(bytes_per_second=peak.bytes_per_second, made_of=peak.made_of)


def _shown_by_topology(machine: Machine, transfer: Transfer) -> tuple[Use, ...] | str:
    """The resources with the peaks that the topology shows."""
    if transfer.path.is_among_several:
        return "what a collective can reach is not in the topology"
    source, destination = transfer.path.places
    gpus = {gpu.index: gpu for gpu in machine.gpus}
    if machine.traits.is_between_ranks(transfer.path):
        return "which links messages between ranks cross is not in the topology"
    for place in (source, destination):
        if place.kind == "gpu" and place.index not in gpus:
            return f"{place} is not on this machine"
        if place.kind == "numa" and place.index in machine.memory_only:
            return f"which links lead to {place}, which has no CPUs, is not in the topology"
        if place.kind == "file":
            return "the bandwidth of file systems is not in the topology"
    if source.kind == "gpu" and destination.kind == "gpu":
        if source.index == destination.index:
            return _local(gpus[source.index])
        ends = gpus[source.index], gpus[destination.index]
        if takes_shortest_path(transfer, machine) and not (
            ends[0].links_known or destination.index in ends[0].peers
        ):
            return "the link between the GPUs is not described"
        return _between(*ends, through_host=is_through_host(transfer, machine))
    relays = [gpus[index] for index in relays_of(transfer, machine) if index in gpus]
    if source.kind == "gpu":
        return _host_links(gpus[source.index], relays, "from")
    if destination.kind == "gpu":
        return _host_links(gpus[destination.index], relays, "to")
    return "the system does not show the bandwidth of host memory: it must be measured"


def _host_link(gpu: Gpu, direction: str) -> tuple[Use, ...] | str:
    name = f"gpu:{gpu.index}"
    cpu = [link for link in gpu.nvlinks if link.to == "cpu"]
    if cpu:
        kind = cpu[0].kind
        return _nvlink(f"{kind} {direction} {name}", cpu, f"{kind} of {name} to the host")
    if gpu.on_module:
        return _ON_MODULE[gpu.on_module]
    link = gpu.pcie
    rate = pcie.bytes_per_second(link.generation_max, link.width_max)
    if rate:
        made_of = pcie.describe(link.generation_max, link.width_max)
    elif link.gb_per_s_now:
        rate = link.gb_per_s_now * 1e9
        made_of = (
            f"PCIe: {link.gb_per_s_now:.1f} GB/s at the link state of the capture (more, "
            "if the GPU was idle)"
        )
    else:
        return "the link between the GPU and the host is not described"
    resource = Resource(
        f"PCIe {direction} {name}", rate, made_of, _lower_now(gpu), f"PCIe of {name}"
    )
    return (Use(resource),)


def _host_links(own: Gpu, relays: Sequence[Gpu], direction: str) -> tuple[Use, ...] | str:
    """The GPU's own link to the host, and with it those of other GPUs.

    Together they carry the sum of their rates, but of what goes over the others no more than the
    NVLinks between them and the GPU. A relay without NVLink to it adds nothing: its bytes reach the
    GPU over the GPU's own link.
    """
    links = _host_link(own, direction)
    if not relays or isinstance(links, str):
        return links
    first = links[0].resource
    direct, switched = 0.0, 0.0
    for relay in relays:
        further = _host_link(relay, direction)
        if isinstance(further, str):
            return further
        rate = further[0].resource.bytes_per_second
        lanes = [link for link in own.nvlinks if link.to == f"gpu:{relay.index}"]
        if lanes:
            direct += min(rate, nvlink_rate(lanes))
        elif _switch_lanes(relay):
            switched += min(rate, nvlink_rate(_switch_lanes(relay)))
    most = nvlink_rate(_switch_lanes(own))
    total = first.bytes_per_second + direct + min(switched, most)
    indices = "+".join(str(index) for index in sorted(gpu.index for gpu in (own, *relays)))
    made_of = f"{first.made_of}; the links of gpu:{indices} together {total / 1e9:.1f} GB/s"
    if switched > most:
        made_of += f", {most / 1e9:.1f} GB/s of it over the NVLinks of gpu:{own.index}"
    return (Use(Resource(f"host links {direction} gpu:{indices}", total, made_of, first.note)),)


def _lower_now(gpu: Gpu) -> str:
    """The link's state when captured, where it is not at its most; idle GPUs lower it."""
    link = gpu.pcie
    generation = link.generation_now or link.generation_max
    width = link.width_now or link.width_max
    if (generation, width) == (link.generation_max, link.width_max):
        return ""
    return f"gpu:{gpu.index}'s link was at PCIe {generation} x{width} when captured"


def _between(source: Gpu, destination: Gpu, *, through_host: bool) -> tuple[Use, ...] | str:
    """The bound over direct lanes, else through a switch that both hang on, else over both PCIe
    links."""
    if not through_host:
        name = f"gpu:{source.index} to gpu:{destination.index}"
        direct = [link for link in source.nvlinks if link.to == f"gpu:{destination.index}"]
        if direct:
            low, high = sorted((source.index, destination.index))
            return _nvlink(f"NVLink {name}", direct, f"NVLink of gpu:{low} and gpu:{high}")
        up, down = _switch_lanes(source), _switch_lanes(destination)
        if up and down:
            return _both(
                _nvlink(f"NVLink out of gpu:{source.index}", up, f"NVLink of gpu:{source.index}"),
                _nvlink(
                    f"NVLink into gpu:{destination.index}",
                    down,
                    f"NVLink of gpu:{destination.index}",
                ),
            )
    return _both(_host_link(source, "from"), _host_link(destination, "to"))


def _both(first: tuple[Use, ...] | str, second: tuple[Use, ...] | str) -> tuple[Use, ...] | str:
    if isinstance(first, str):
        return first
    return second if isinstance(second, str) else first + second


def _switch_lanes(gpu: Gpu) -> list[NvLink]:
    return [link for link in gpu.nvlinks if link.to == "switch"]


def _nvlink(name: str, links: list[NvLink], link: str) -> tuple[Use, ...] | str:
    rate = nvlink_rate(links)
    if not rate:
        return "the bandwidth of an NVLink lane is unknown"
    return (Use(Resource(name, rate, describe_nvlinks(links), link=link)),)


def nvlink_rate(links: Iterable[NvLink]) -> float:
    """Bytes per second of some links in one direction; 0 if the rate of one is unknown."""
    rates = [link.gb_per_s * 1e9 for link in links]
    return sum(rates) if all(rates) else 0.0


def describe_nvlinks(links: Iterable[NvLink]) -> str:
    """``NVLink: 18 lanes × 26.562 GB/s = 478.1 GB/s``; without the lanes if their number is
    unknown."""
    bundles = list(links)
    kind, total = bundles[0].kind, f"{nvlink_rate(bundles) / 1e9:.1f} GB/s"
    if not all(link.lanes for link in bundles):
        return f"{kind}: {total}, the number of lanes is unknown"
    lanes = " + ".join(
        f"{count(link.lanes, 'lane')} × {link.gb_per_s_per_lane:g} GB/s" for link in bundles
    )
    return f"{kind}: {lanes} = {total}"


def _local(gpu: Gpu) -> tuple[Use, ...] | str:
    rate = memory_rate(gpu)
    if not rate:
        return "the clock or bus width of the GPU's memory is unknown"
    return (Use(Resource(f"memory of gpu:{gpu.index}", rate, describe_copy_within(gpu)), passes=2),)


def memory_rate(gpu: Gpu) -> float:
    """Bytes per second of the GPU's memory, reads and writes together; 0 if unknown.

    Two transfers per clock that NVML reports, for HBM as for GDDR.
    """
    return gpu.clock_memory_max_mhz * 1e6 * 2 * gpu.memory_bus_bits / 8


def describe_copy_within(gpu: Gpu) -> str:
    """``memory: 3201 MHz × 2 × 6016 bit / 8 / 2 (read and written) = 2407.2 GB/s``."""
    return (
        f"memory: {gpu.clock_memory_max_mhz} MHz × 2 × {gpu.memory_bus_bits} bit / 8 / 2 "
        f"(read and written) = {memory_rate(gpu) / 2e9:.1f} GB/s"
    )
