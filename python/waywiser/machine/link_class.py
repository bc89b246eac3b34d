"""The class of the link that a workload crosses, in the words that figures of machines share.

Generation and width of PCIe are those that device and slot can have together, generation and number
of NVLinks those between the two ends:

    PCIe 5 x16                      between a host and a GPU, or between two GPUs with peer access
    PCIe 4 x16 through the host     between two GPUs without peer access
    4 × PCIe 5 x16                  between a host and four GPUs at the same time
    NVLink 4 x18, NVLink-C2C        between two GPUs, or between a CPU and a GPU
    memory                          within a GPU
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.machine import pcie
from waywiser.machine.machine import Gpu, Machine, NvLink
from waywiser.machine.routes import is_through_host, relays_of, takes_shortest_path
from waywiser.words import Transfer, Workload

MEMORY = "memory"
"""The class of copies within a GPU."""

THROUGH_HOST = " through the host"

_NVLINK_GENERATIONS = {"6": 1, "7": 2, "8": 3, "9": 4, "10": 5}
"""By the major number of the compute capability."""


class LinkClass(NamedTuple):
    """A class, or why it is not known."""

    name: str = ""
    unknown: str = ""


def link_class(machine: Machine, workload: Workload) -> LinkClass:
    """Returns the class of the links that all transfers of a workload cross."""
    found = dict.fromkeys(_of_transfer(machine, transfer) for transfer in workload.copies)
    for each in found:
        if each.unknown:
            return each
    if not found:
        return LinkClass(unknown="it moves no bytes")
    if len(found) > 1:
        return LinkClass(unknown="its transfers cross links of different classes")
    (one,) = found
    gpus = {place for t in workload.copies for place in t.path.places if place.kind == "gpu"}
    hosts = {place for t in workload.copies for place in t.path.places if place.kind == "numa"}
    if hosts and len(gpus) > 1:
        return LinkClass(f"{len(gpus)} × {one.name}")
    return one


def _of_transfer(machine: Machine, transfer: Transfer) -> LinkClass:
    path = transfer.path
    if path.is_among_several or machine.traits.is_between_ranks(path):
        return LinkClass(unknown="messages have no class")
    places = dict.fromkeys(path.places)
    if any(place.kind not in ("gpu", "numa") for place in places):
        return LinkClass(unknown="files have no class")
    if any(place.kind == "numa" and place.index in machine.memory_only for place in places):
        return LinkClass(unknown="which links lead to a NUMA node without CPUs is not known")
    gpus = [machine.gpu(place.index) for place in places if place.kind == "gpu"]
    ends = [gpu for gpu in gpus if gpu is not None]
    if len(ends) < len(gpus):
        return LinkClass(unknown="the machine does not describe the GPU")
    if not ends:
        return LinkClass(unknown="host memory has no class")
    for gpu in ends:
        if gpu.mig not in ("", "off"):
            return LinkClass(unknown="the GPU is a MIG instance, which shares its link")
    if relays_of(transfer, machine):
        return LinkClass(unknown="it crosses the links of several GPUs")
    if len(ends) == 1:
        return LinkClass(MEMORY) if len(places) == 1 else _to_host(ends[0])
    return _between(ends[0], ends[1], transfer, machine)


def _to_host(gpu: Gpu) -> LinkClass:
    cpu = [link for link in gpu.nvlinks if link.to == "cpu"]
    if cpu:
        return LinkClass(cpu[0].kind) if cpu[0].kind != "NVLink" else _nvlink(gpu, cpu)
    if gpu.on_module == "coherent":
        return LinkClass(unknown="the link to the CPU of the module is not visible")
    if gpu.on_module:
        return LinkClass(unknown="the GPU uses the host's memory")
    link = gpu.pcie
    if not pcie.bytes_per_second(link.generation_max, link.width_max):
        return LinkClass(unknown="generation and width of the PCIe link are not visible")
    return LinkClass(f"PCIe {link.generation_max} x{link.width_max}")


def _between(one: Gpu, other: Gpu, transfer: Transfer, machine: Machine) -> LinkClass:
    """Direct NVLinks, else those of both to a switch, else the PCIe links of both."""
    if takes_shortest_path(transfer, machine) and not (one.links_known or other.index in one.peers):
        return LinkClass(unknown="the link between the GPUs is not visible")
    through_host = is_through_host(transfer, machine)
    if not through_host:
        direct = [link for link in one.nvlinks if link.to == f"gpu:{other.index}"]
        if direct:
            return _nvlink(one, direct)
        switched = [[link for link in gpu.nvlinks if link.to == "switch"] for gpu in (one, other)]
        if all(switched):
            return _nvlink(one, switched[0])
    ends = _to_host(one), _to_host(other)
    for end in ends:
        if end.unknown:
            return end
    if ends[0] != ends[1]:
        return LinkClass(unknown="the two GPUs have links of different classes")
    return LinkClass(ends[0].name + THROUGH_HOST) if through_host else ends[0]


def _nvlink(gpu: Gpu, links: Sequence[NvLink]) -> LinkClass:
    generation = _NVLINK_GENERATIONS.get(gpu.compute.partition(".")[0])
    if generation is None:
        return LinkClass(unknown="the generation of the NVLinks is not known")
    if not all(link.lanes for link in links):
        return LinkClass(unknown="the number of the NVLinks is not known")
    return LinkClass(f"NVLink {generation} x{sum(link.lanes for link in links)}")
