"""The GPUs of a machine, from NVML's answers or from a bare topology file."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence

import msgspec

from waywiser.machine.facts import GpuFacts, GpuProcess, NvmlFacts, PciFacts, SystemFacts
from waywiser.machine.hwloc import HwlocObject, HwlocTree
from waywiser.machine.hwloc_faults import HwlocVersion, hwloc_version, is_pcie_3_for_later
from waywiser.machine.machine import Gpu, HostAttachment, NvLink, PcieLink
from waywiser.machine.no_gpu import why_all_hidden, why_no_gpu
from waywiser.machine.nvlink import links_from_c2c, links_from_distances, links_from_lanes
from waywiser.machine.system_files import format_list
from waywiser.machine.visible_devices import Visible, visible_devices
from waywiser.words import count

_OF_PART = ("name", "memory_bytes", "memory_free_bytes")
_ALIKE = {*Gpu.__struct_fields__} & {*GpuFacts.__struct_fields__} - {"uuid", "processes", "peers"}
"""Fields of a GPU that are as NVML shows them, and those that it shows of a MIG instance."""

_NVIDIA_DISPLAY = re.compile(r"^030[02] \[10de:")
"""PCI class of display and 3-D controllers, and NVIDIA's vendor number."""

_AMD = re.compile(r"^(030[02]|0380|1200) \[1002:")
"""PCI class of display and 3-D controllers and of processing accelerators, and AMD's number."""

_BY_AMD_TOOLS = re.compile(r"rsmi(\d{1,4})")
"""hwloc's name for a GPU by the number that AMD's tools and HIP give it."""


def gpus_of_nvml(
    nvml: NvmlFacts,
    system: SystemFacts,
    tree: HwlocTree,
    hosts: frozenset[int],
    notes: list[str],
) -> tuple[tuple[Gpu, ...], str]:
    """The GPUs that a CUDA process will see, and why there are none."""
    if not nvml.gpus:
        return (), why_no_gpu(nvml, system, gpu_objects(tree))
    visibility = visible_devices(nvml.gpus, system.visible_devices)
    notes += visibility.notes
    if not visibility.devices:
        return (), why_all_hidden(len(nvml.gpus), system.visible_devices)
    index_of = {device.gpu.pci: i for i, device in enumerate(visibility.devices)}
    by_uuid = {device.uuid: i for i, device in enumerate(visibility.devices)}
    pci = {facts.address: facts for facts in system.pci}
    objects = {item.attributes.get("pci_busid", ""): item for item in gpu_objects(tree)}
    gpus = []
    for index, device in enumerate(visibility.devices):
        facts = pci.get(device.gpu.pci)
        numa = facts.numa if facts else local_node(objects.get(device.gpu.pci), hosts)
        gpus.append(
            _gpu(
                index,
                device,
                numa=numa if numa in hosts else -1,
                link=_pcie(device.gpu, facts),
                index_of=index_of,
                by_uuid=by_uuid,
            )
        )
        notes += _hidden_ends(device, gpus[-1])
    return tuple(gpus), ""


def _hidden_ends(device: Visible, gpu: Gpu) -> list[str]:
    """A note on the NVLinks whose other end is unknown, if there are any."""
    lanes, named = len(device.gpu.lanes), sum(link.lanes for link in gpu.nvlinks)
    if device.instance is not None or named >= lanes:
        return []
    return [
        f"gpu:{gpu.index}: the other end of {lanes - named} of its {lanes} NVLinks is hidden or "
        "unknown"
    ]


def _gpu(
    index: int,
    device: Visible,
    *,
    numa: int,
    link: PcieLink,
    index_of: Mapping[str, int],
    by_uuid: Mapping[str, int],
) -> Gpu:
    facts, part = device.gpu, device.instance
    alike = {name: getattr(facts, name) for name in _ALIKE}
    if part:
        alike |= {name: getattr(part, name) for name in _OF_PART}
        alike["mig"] = part.name.rpartition("MIG ")[2]
    peers = () if part else sorted(by_uuid[uuid] for uuid in facts.peers if uuid in by_uuid)
    return Gpu(
        index=index,
        uuid=device.uuid,
        numa=numa,
        pcie=link,
        nvlinks=() if part else _nvlinks(facts, index_of),
        peers=tuple(peers),
        processes=tuple(map(_process, facts.processes)),
        pageable_access=facts.addressing in ("hmm", "ats"),
        host=_host(facts),
        **alike,
    )


def _nvlinks(facts: GpuFacts, index_of: Mapping[str, int]) -> tuple[NvLink, ...]:
    return (*links_from_c2c(facts.c2c_mb_per_s), *links_from_lanes(facts.lanes, index_of))


def _host(facts: GpuFacts) -> HostAttachment:
    """A GPU of a known model whose memory NVML does not know has none of its own."""
    if facts.compute and not facts.memory_bytes:
        return "integrated"
    by_model = Gpu(0, "", facts.name, "").on_module
    if facts.c2c_mb_per_s or facts.addressing == "ats" or facts.memory_node >= 0:
        return by_model or "coherent"
    return by_model


def _process(process: GpuProcess) -> str:
    memory = f" {process.memory_bytes >> 20} MiB" if process.memory_bytes else ""
    return f"{process.pid} {process.name or 'unknown'}{memory}"


def _pcie(gpu: GpuFacts, facts: PciFacts | None) -> PcieLink:
    """NVML's link where it answers, else the kernel's; unknown for a GPU on a module with the
    CPU, for which drivers state a link that carries no data (``PCIe 1 x1``)."""
    if _host(gpu):
        return PcieLink()
    other = facts or PciFacts(gpu.pci)
    return PcieLink(
        generation_now=gpu.pcie_generation_now or other.generation_now,
        width_now=gpu.pcie_width_now or other.width_now,
        generation_max=gpu.pcie_generation_max or other.generation_max,
        width_max=gpu.pcie_width_max or other.width_max,
    )


def gpu_objects(tree: HwlocTree) -> list[HwlocObject]:
    """NVIDIA's display devices in the tree, in the order of their PCI addresses."""
    return _devices(tree, _NVIDIA_DISPLAY)


def _devices(tree: HwlocTree, of_type: re.Pattern[str]) -> list[HwlocObject]:
    found = [
        item
        for item in tree.machine.below("PCIDev")
        if of_type.match(item.attributes.get("pci_type", ""))
    ]
    return sorted(found, key=lambda item: item.attributes.get("pci_busid", ""))


def _amd_objects(tree: HwlocTree) -> list[HwlocObject]:
    """AMD's GPUs, as AMD's tools number them; if hwloc did not ask these, by PCI address."""
    found = _devices(tree, _AMD)
    numbers = {id(item): number for item in found if (number := _amd_number(item)) >= 0}
    if numbers:  # the others are no compute devices, such as the graphics of a CPU
        found = sorted((e for e in found if id(e) in numbers), key=lambda e: numbers[id(e)])
    return found


def _amd_number(item: HwlocObject) -> int:
    """-1 if no tool of AMD numbered it."""
    names = (_BY_AMD_TOOLS.fullmatch(part.attributes.get("name", "")) for part in item.walk())
    return next((int(name[1]) for name in names if name), -1)


def local_node(device: HwlocObject | None, hosts: frozenset[int]) -> int:
    """The one host node under which a device hangs; -1 if it hangs from the whole machine."""
    for above in device.ancestors() if device else ():
        if above.type == "Machine":
            break
        if above.nodes & hosts:
            return next(iter(above.nodes & hosts)) if len(above.nodes & hosts) == 1 else -1
    return -1


def gpus_of_tree(
    tree: HwlocTree, hosts: frozenset[int], notes: list[str]
) -> tuple[tuple[Gpu, ...], str]:
    """The GPUs that a bare topology file shows: NVIDIA's, else AMD's; peers are those with a link
    of their own between them."""
    objects = gpu_objects(tree)
    amd = _amd_objects(tree)
    if not objects and amd:
        return _of_amd(amd, hosts, notes), ""
    if amd:
        notes.append(f"{count(len(amd), 'AMD GPU')} beside those of NVIDIA have no number here")
    if not objects:
        return (), "the topology file shows no GPU (capture with 'waywiser topology')"
    index_of = {
        f"{part.type}:{part.number('gp_index')}": index
        for index, item in enumerate(objects)
        for part in item.walk()
    }
    models = {index: _infos(item).get("GPUModel", "") for index, item in enumerate(objects)}
    version = hwloc_version(tree.infos.get("hwlocVersion", ""))
    links, faults = links_from_distances(tree.distances, index_of, models, version)
    gpus = tuple(
        _gpu_of_object(index, item, hosts, links.get(index, ()), _linked(index, links))
        for index, item in enumerate(objects)
    )
    notes.append(
        "from a topology file alone: link generations and widths, clocks and GPU memory are not "
        "known, and peer access is known over NVLink only"
    )
    notes += faults
    return _without_wrong_pcie(gpus, objects, version, notes), ""


def _of_amd(
    objects: Sequence[HwlocObject], hosts: frozenset[int], notes: list[str]
) -> tuple[Gpu, ...]:
    """AMD's GPUs; hwloc names those with xGMI between them."""
    numbers = [_amd_number(item) for item in objects]
    gpus = []
    for index, item in enumerate(objects):
        named = _BY_AMD_TOOLS.findall(_infos(item).get("XGMIPeers", ""))
        linked = {int(number) for number in named} & {*numbers} - {-1, numbers[index]}
        peers = tuple(sorted(map(numbers.index, linked)))
        gpus.append(_gpu_of_object(index, item, hosts, (), peers))
    notes.append(
        "from a topology file alone: generations and widths of links, clocks and the rates of xGMI "
        "are not known, and peer access is known over xGMI only"
    )
    return tuple(gpus)


def _without_wrong_pcie(
    gpus: tuple[Gpu, ...],
    objects: Sequence[HwlocObject],
    version: HwlocVersion | None,
    notes: list[str],
) -> tuple[Gpu, ...]:
    """The GPUs without the rates of PCIe links that hwloc may have written wrong."""
    wrong = {
        gpu.index: gpu.pcie.gb_per_s_now
        for gpu, item in zip(gpus, objects, strict=True)
        if is_pcie_3_for_later(
            gpu.pcie.gb_per_s_now,
            is_from_nvml=any(part.attributes.get("subtype") == "NVML" for part in item.walk()),
            model=gpu.name,
            version=version,
        )
    }
    if wrong:
        rates = ", ".join(f"{rate:.1f}" for rate in sorted(set(wrong.values())))
        notes.append(
            "hwloc until 2.10 states PCIe 3 for each later generation where it asks NVML "
            f"({rates} GB/s): the rate of the PCIe link of gpu:{format_list(tuple(wrong))} is "
            "unknown"
        )
    replace = msgspec.structs.replace
    return tuple(replace(gpu, pcie=PcieLink()) if gpu.index in wrong else gpu for gpu in gpus)


def _linked(index: int, links: Mapping[int, tuple[NvLink, ...]]) -> tuple[int, ...]:
    """GPUs at the other end of a direct link, or behind the same switches."""
    ends = {link.to for link in links.get(index, ())}
    return tuple(
        other
        for other in sorted(links)
        if other != index
        and (
            f"gpu:{other}" in ends
            or ("switch" in ends and any(link.to == "switch" for link in links[other]))
        )
    )


def _gpu_of_object(
    index: int,
    item: HwlocObject,
    hosts: frozenset[int],
    links: tuple[NvLink, ...],
    peers: tuple[int, ...],
) -> Gpu:
    infos = _infos(item)
    kib = infos.get("CUDAGlobalMemorySize") or infos.get("RSMIVRAMSize", "")
    kind = item.attributes["pci_type"].split("]")[0] + "]"
    maker = "AMD" if _AMD.match(kind) else "NVIDIA"
    name = infos.get("GPUModel") or infos.get("PCIDevice") or f"{maker} GPU {kind.split()[-1]}"
    on_module = Gpu(index, "", name, "").on_module
    return Gpu(
        index=index,
        uuid=infos.get("NVIDIAUUID") or infos.get("AMDUUID", ""),
        name=name,
        pci=item.attributes.get("pci_busid", ""),
        numa=local_node(item, hosts),
        memory_bytes=int(kib) << 10 if kib.isdecimal() else 0,
        pcie=PcieLink() if on_module else PcieLink(gb_per_s_now=item.link_speed),
        nvlinks=links,
        peers=peers,
        host=on_module,
    )


def _infos(item: HwlocObject) -> dict[str, str]:
    """What hwloc adds about a device, at it and below."""
    return dict(ChainMap(*(part.infos for part in item.walk())))
