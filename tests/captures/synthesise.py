"""Writes the captures beside it: machines made up from public data sheets, none of them a copy.

    python tests/captures/synthesise.py        writes them anew

A test checks that the files are current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

import msgspec

from waywiser.machine.capture import Capture
from waywiser.machine.facts import (
    GpuFacts,
    GpuProcess,
    Lane,
    MigInstance,
    NvmlFacts,
    PciFacts,
    SilentGpu,
    SystemFacts,
)

GIB = 1 << 30
TAKEN = "2026-11-20T00:00:00+00:00"


def bitmap(numbers: range) -> str:
    """hwloc's text of a set."""
    bits = sum(1 << number for number in numbers)
    words = [
        f"0x{bits >> 32 * i & 0xFFFFFFFF:08x}" for i in range(max(1, -(-bits.bit_length() // 32)))
    ]
    return ",".join(reversed(words))


def processor(package: int, cores: range, model: str, memory: int, l3: int) -> str:
    """A package with one NUMA node of its own, one shared L3, and cores of one thread."""
    sets = f'cpuset="{bitmap(cores)}" nodeset="{bitmap(range(package, package + 1))}"'
    own = "".join(
        f'<object type="L2Cache" cpuset="{bitmap(range(c, c + 1))}" cache_size="2097152" depth="2" '
        f'cache_type="0"><object type="L1Cache" cpuset="{bitmap(range(c, c + 1))}" '
        'cache_size="49152" depth="1" cache_type="1">'
        f'<object type="Core" os_index="{c}" cpuset="{bitmap(range(c, c + 1))}">'
        f'<object type="PU" os_index="{c}" cpuset="{bitmap(range(c, c + 1))}"/>'
        "</object></object></object>\n"
        for c in cores
    )
    return (
        f'<object type="Package" os_index="{package}" {sets}>\n'
        f'<info name="CPUModel" value={quoteattr(model)}/>\n'
        f'<object type="NUMANode" os_index="{package}" {sets} local_memory="{memory}"/>\n'
        f'<object type="L3Cache" os_index="{package}" {sets} cache_size="{l3}" depth="3" '
        f'cache_type="0">\n{own}</object>\n'
    )


def device(pci: str, number: str = "10de:2335", inner: str = "") -> str:
    return (
        f'<object type="PCIDev" pci_busid="{pci}" pci_type="0302 [{number}] [10de:0000] a1" '
        f'pci_link_speed="0.000000">{inner}</object>\n'
    )


def topology(body: str, cpus: range, nodes: range) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
        f'<topology version="2.0">\n<object type="Machine" os_index="0" cpuset="{bitmap(cpus)}" '
        f'nodeset="{bitmap(nodes)}">\n<info name="Architecture" value="x86_64"/>\n{body}</object>\n'
        "</topology>\n"
    )


def uuid(number: int, kind: str = "GPU") -> str:
    return f"{kind}-{number:08x}-0000-0000-0000-{number:012x}"


def h200(index: int, count: int) -> GpuFacts:
    """As an H200 behind a hypervisor answers: the switches have no address."""
    return GpuFacts(
        uuid=uuid(index),
        name="NVIDIA H200",
        pci=f"0000:00:{6 + index:02x}.0",
        memory_bytes=150754820096,
        memory_free_bytes=150109880320,
        compute="9.0",
        pcie_generation_now=5,
        pcie_width_now=16,
        pcie_generation_max=5,
        pcie_width_max=16,
        addressing="none",
        clock_sm_mhz=345,
        clock_sm_max_mhz=1980,
        clock_memory_mhz=3201,
        clock_memory_max_mhz=3201,
        memory_bus_bits=6016,
        ecc="on",
        persistence="on",
        mig="off",
        temperature_c=35,
        power_w=78.7,
        lanes=tuple(Lane(link, "switch", "", 26562, 6) for link in range(18)),
        peers=tuple(uuid(other) for other in range(count) if other != index),
    )


def h200_machine(count: int = 8) -> Capture:
    """A virtual machine that shows one socket and hides two, with GPUs at no NUMA node."""
    cpus, gpus = range(32), [h200(index, count) for index in range(count)]
    package = processor(0, cpus, "Intel(R) Xeon(R) Processor", 128 * GIB, 105 << 20)
    body = package + "</object>\n" + "".join(device(gpu.pci) for gpu in gpus)
    return Capture(
        hwloc=topology(body, cpus, range(1)),
        system=SystemFacts(
            hostname="h200-vm",
            architecture="x86_64",
            cpu_model="Intel(R) Xeon(R) Processor",
            virtual="unknown hypervisor",
            affinity=tuple(cpus),
            cpu_nodes=(0,),
            memory_nodes=(0,),
            pci=tuple(PciFacts(gpu.pci, -1, 5, 16, 5, 16) for gpu in gpus),
        ),
        nvml=NvmlFacts("580.159.04", "13.0", tuple(gpus)),
        taken=TAKEN,
    )


def a100(index: int, addresses: list[str]) -> GpuFacts:
    """An A100 SXM4 40 GB with four lanes to each of three others; idle, so its link has slowed."""
    others = [other for other in range(4) if other != index]
    return GpuFacts(
        uuid=uuid(0xA100 + index),
        name="NVIDIA A100-SXM4-40GB",
        pci=addresses[index],
        memory_bytes=40 * GIB,
        memory_free_bytes=39 * GIB,
        compute="8.0",
        pcie_generation_now=1,
        pcie_width_now=16 if index else 8,
        pcie_generation_max=4,
        pcie_width_max=16,
        clock_sm_mhz=210,
        clock_sm_max_mhz=1410,
        clock_memory_mhz=1215,
        clock_memory_max_mhz=1215,
        memory_bus_bits=5120,
        throttle=("thermal slowdown",) if index == 1 else (),
        ecc="on" if index else "off",
        persistence="off",
        mig="off",
        processes=(GpuProcess(4711, "python", 2 * GIB),) if index == 2 else (),
        temperature_c=31,
        power_w=52.0,
        lanes=tuple(
            Lane(4 * k + i, "gpu", addresses[other], 25000, 4)
            for k, other in enumerate(others)
            for i in range(4)
        ),
        peers=tuple(uuid(0xA100 + other) for other in others),
    )


def two_socket_machine() -> Capture:
    """Bare metal: two sockets, two GPUs at each; one narrow link, one hot GPU, one in use."""
    addresses = ["0000:17:00.0", "0000:31:00.0", "0000:b1:00.0", "0000:ca:00.0"]
    body = ""
    for node in range(2):
        cores = range(16 * node, 16 * node + 16)
        body += processor(node, cores, "AMD EPYC 7302 16-Core Processor", 256 * GIB, 128 << 20)
        body += "".join(device(a, "10de:20b0") for a in addresses[2 * node : 2 * node + 2])
        body += "</object>\n"
    return Capture(
        hwloc=topology(body, range(32), range(2)),
        system=SystemFacts(
            hostname="two-sockets",
            architecture="x86_64",
            cpu_model="AMD EPYC 7302 16-Core Processor",
            affinity=tuple(range(32)),
            cpu_nodes=(0, 1),
            memory_nodes=(0, 1),
            pci=tuple(
                PciFacts(a, i // 2, 1, 16, 4, 16, "nvidia", "open") for i, a in enumerate(addresses)
            ),
        ),
        nvml=NvmlFacts("535.183.01", "12.2", tuple(a100(i, addresses) for i in range(4))),
        taken=TAKEN,
    )


def lost_gpu_machine() -> Capture:
    """The two sockets after the third of four GPUs has fallen off the bus: NVML counts it."""
    whole = two_socket_machine()
    assert whole.nvml is not None
    lost = whole.nvml.gpus[2]
    gpus = tuple(
        msgspec.structs.replace(
            gpu,
            lanes=tuple(lane for lane in gpu.lanes if lane.remote_pci != lost.pci),
            peers=tuple(peer for peer in gpu.peers if peer != lost.uuid),
            processes=(),
        )
        for gpu in whole.nvml.gpus
        if gpu is not lost
    )
    nvml = msgspec.structs.replace(
        whole.nvml, gpus=gpus, silent=(SilentGpu(2, lost.pci, 15, "GPU is lost"),)
    )
    system = msgspec.structs.replace(whole.system, hostname="lost-gpu")
    return msgspec.structs.replace(whole, system=system, nvml=nvml)


def container_machine() -> Capture:
    """A container on a node with eight GPUs: all are on its PCI bus, two are given to it."""
    given = (2, 5)
    whole = h200_machine(8)
    assert whole.nvml is not None
    gpus = tuple(
        msgspec.structs.replace(
            whole.nvml.gpus[index], peers=tuple(uuid(other) for other in given if other != index)
        )
        for index in given
    )
    pci = tuple(
        msgspec.structs.replace(
            device, driver="nvidia", access="open" if index in given else "hidden"
        )
        for index, device in enumerate(whole.system.pci)
    )
    system = msgspec.structs.replace(whole.system, hostname="container", pci=pci)
    nvml = msgspec.structs.replace(whole.nvml, gpus=gpus)
    return msgspec.structs.replace(whole, system=system, nvml=nvml)


def gh200_machine() -> Capture:
    """A Grace Hopper: ten C2C links to the CPU, whose memory the GPU reads, and which reads its.

    Its nodes and their sizes are those of a real one, which NVIDIA describes in a change of Linux:
    the CPUs' memory, the GPU's, which the driver adds, and seven without memory and CPUs
    (20250106120659.359610-2-bfaccini@nvidia.com).
    """
    gpu = msgspec.structs.replace(
        h200(0, 1),
        name="NVIDIA GH200 480GB",
        pci="0009:01:00.0",
        lanes=(),
        addressing="ats",
        memory_node=1,
        c2c_links=10,
        c2c_mb_per_s=(45000,) * 10,
    )
    cpus = range(72)
    body = processor(0, cpus, "Neoverse-V2", 490037 << 20, 114 << 20) + "</object>\n"
    body += (
        f'<object type="NUMANode" os_index="1" cpuset="{bitmap(cpus)}" '
        f'nodeset="{bitmap(range(1, 2))}" local_memory="{97280 << 20}" subtype="GPUMemory"/>\n'
    )
    body += "".join(
        f'<object type="NUMANode" os_index="{n}" cpuset="{bitmap(cpus)}" '
        f'nodeset="{bitmap(range(n, n + 1))}"/>\n'
        for n in range(2, 9)
    )
    return Capture(
        hwloc=topology(body + device(gpu.pci, "10de:2342"), cpus, range(9)),
        system=SystemFacts(
            hostname="gh200",
            architecture="aarch64",
            affinity=tuple(cpus),
            cpu_nodes=(0,),
            memory_nodes=(0, 1),
            pci=(PciFacts(gpu.pci, 0, 5, 16, 5, 16, "nvidia", "open"),),
            cpu_topology=True,
        ),
        nvml=NvmlFacts("580.159.04", "13.0", (gpu,)),
        taken=TAKEN,
    )


def gb200_machine() -> Capture:
    """A node of four Grace Blackwells: two Grace CPUs, and the memory of each GPU as a node, with
    seven nodes without memory and CPUs behind each.

    The nodes, those of each GPU and the lanes are those of a real one (``nvidia-smi topo -m`` in
    github.com/sgl-project/sglang/issues/11208), in which GPUs are near "0,3-9,11-17" or
    "1,19-25,27-33". The sizes are rounded, and what it does not show is as of an H200, or unknown:
    addresses, and the rate of the links to the CPUs.
    """
    memory_nodes = (2, 10, 18, 26)
    addresses = [f"{domain}:01:00.0" for domain in ("0008", "0009", "0018", "0019")]
    gpus = tuple(
        msgspec.structs.replace(
            h200(index, 4),
            name="NVIDIA GB200",
            pci=address,
            memory_bytes=185 * GIB,
            memory_free_bytes=184 * GIB,
            memory_bus_bits=0,
            compute="10.0",
            lanes=tuple(Lane(link, "switch", "", 53125, 18) for link in range(18)),
            addressing="ats",
            memory_node=node,
        )
        for index, (node, address) in enumerate(zip(memory_nodes, addresses, strict=True))
    )
    body = ""
    for package in range(2):
        cpus = range(72 * package, 72 * package + 72)
        body += processor(package, cpus, "Neoverse-V2", 478 * GIB, 114 << 20)
        near = f'cpuset="{bitmap(cpus)}" nodeset='
        for node in range(2 + 16 * package, 18 + 16 * package):
            held = f' local_memory="{185 * GIB}" subtype="GPUMemory"'
            body += (
                f'<object type="NUMANode" os_index="{node}" {near}"{bitmap(range(node, node + 1))}"'
                f"{held if node in memory_nodes else ''}/>\n"
            )
        body += "".join(device(a, "10de:2941") for a in addresses[2 * package : 2 * package + 2])
        body += "</object>\n"
    return Capture(
        hwloc=topology(body, range(144), range(34)),
        system=SystemFacts(
            hostname="gb200",
            architecture="aarch64",
            affinity=tuple(range(144)),
            cpu_nodes=(0, 1),
            memory_nodes=(0, 1, *memory_nodes),
            pci=tuple(
                PciFacts(address, index // 2, 5, 16, 5, 16, "nvidia", "open")
                for index, address in enumerate(addresses)
            ),
            cpu_topology=True,
        ),
        nvml=NvmlFacts("570.172.08", "12.8", gpus),
        taken=TAKEN,
    )


def mig_machine() -> Capture:
    """One H200 cut into two instances."""
    whole = h200(0, 1)
    gpu = msgspec.structs.replace(
        whole,
        mig="on",
        mig_instances=tuple(
            MigInstance(uuid(part, "MIG"), "NVIDIA H200 MIG 3g.71gb", 70 * GIB, 69 * GIB)
            for part in (1, 2)
        ),
    )
    base = h200_machine(1)
    system = msgspec.structs.replace(base.system, hostname="mig")
    return msgspec.structs.replace(
        base, system=system, nvml=NvmlFacts("580.159.04", "13.0", (gpu,))
    )


def cpu_machine() -> Capture:
    """Two sockets and no GPU; the third NUMA node is memory without CPUs."""
    cpus = range(16)
    body = "".join(
        processor(n, range(8 * n, 8 * n + 8), "Intel(R) Xeon(R) Gold 6248", 96 * GIB, 28 << 20)
        + "</object>\n"
        for n in range(2)
    )
    body += (
        f'<object type="NUMANode" os_index="2" cpuset="{bitmap(range(8, 16))}" '
        f'nodeset="{bitmap(range(2, 3))}" local_memory="{512 * GIB}"/>\n'
    )
    return Capture(
        hwloc=topology(body, cpus, range(3)),
        system=SystemFacts(
            hostname="no-gpu",
            architecture="x86_64",
            cpu_model="Intel(R) Xeon(R) Gold 6248",
            affinity=tuple(cpus),
            cpu_nodes=(0, 1),
            memory_nodes=(0, 1, 2),
        ),
        nvml=NvmlFacts(reason="no NVIDIA driver: libnvidia-ml.so.1 is not found"),
        taken=TAKEN,
    )


def p100(index: int, addresses: list[str]) -> GpuFacts:
    """A P100 SXM2 of a DGX-1: one lane to each of its quad, one to its like in the other."""
    quad = index // 4 * 4
    others = [other for other in range(quad, quad + 4) if other != index] + [(index + 4) % 8]
    return GpuFacts(
        uuid=uuid(0x100 + index),
        name="Tesla P100-SXM2-16GB",
        pci=addresses[index],
        memory_bytes=16 * GIB,
        memory_free_bytes=16 * GIB,
        compute="6.0",
        pcie_generation_now=3,
        pcie_width_now=16,
        pcie_generation_max=3,
        pcie_width_max=16,
        clock_sm_max_mhz=1480,
        clock_memory_max_mhz=715,
        memory_bus_bits=4096,
        ecc="on",
        mig="off",
        lanes=tuple(Lane(k, "gpu", addresses[other], 20000, 1) for k, other in enumerate(others)),
        peers=tuple(uuid(0x100 + other) for other in others),
    )


def dgx_1() -> Capture:
    """The hybrid cube mesh of eight P100s on two sockets; no driver answered, so none is known."""
    addresses = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]
    body = ""
    for node in range(2):
        cores = range(20 * node, 20 * node + 20)
        body += processor(node, cores, "Intel(R) Xeon(R) CPU E5-2698 v4", 256 * GIB, 50 << 20)
        body += "".join(device(a, "10de:15f9") for a in addresses[4 * node : 4 * node + 4])
        body += "</object>\n"
    return Capture(
        hwloc=topology(body, range(40), range(2)),
        system=SystemFacts(
            hostname="dgx-1",
            architecture="x86_64",
            cpu_model="Intel(R) Xeon(R) CPU E5-2698 v4",
            affinity=tuple(range(40)),
            cpu_nodes=(0, 1),
            memory_nodes=(0, 1),
            pci=tuple(PciFacts(a, i // 4, 3, 16, 3, 16) for i, a in enumerate(addresses)),
        ),
        nvml=NvmlFacts("", "", tuple(p100(i, addresses) for i in range(8))),
        taken=TAKEN,
    )


MACHINES = {
    "dgx-1": dgx_1,
    "h200-vm-8gpu": h200_machine,
    "two-socket-4gpu": two_socket_machine,
    "lost-gpu": lost_gpu_machine,
    "container": container_machine,
    "gh200": gh200_machine,
    "gb200": gb200_machine,
    "mig": mig_machine,
    "no-gpu": cpu_machine,
}


def text_of(capture: Capture) -> bytes:
    return msgspec.json.format(msgspec.json.encode(capture), indent=1) + b"\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, machine in MACHINES.items():
        (folder / f"{name}.json").write_bytes(text_of(machine()))
