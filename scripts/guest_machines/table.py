"""The emulated machines, each as what it has and the options of QEMU that make it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GuestNode:
    """A NUMA node: its CPUs, as QEMU writes a range, and its MiB of memory."""

    cpus: str = ""
    mib: int = 0


@dataclass(frozen=True)
class Guest:
    name: str
    has: str
    """What tests look for in it, for a person who lists the guests."""
    smp: str
    nodes: tuple[GuestNode, ...]
    distances: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """The distances of pairs of nodes, in both directions; 20 for others."""
    rates: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """HMAT, from a node with CPUs to one with memory: nanoseconds, and MiB per second."""
    gpu_nodes: tuple[int, ...] = ()
    """The nodes of the PCI buses at whose first addresses the fake GPUs are."""
    setup: str = ""
    """Shell commands as the first program of the machine, before anything else runs."""
    kernel: str = "x86-64"
    """Its name in scripts/guest.toml."""

    @property
    def processor(self) -> str:
        return "aarch64" if self.kernel.startswith("arm") else "x86_64"

    @property
    def options(self) -> list[str]:
        total = sum(node.mib for node in self.nodes)
        found = ["-smp", self.smp, "-m", f"{total}M"]
        for index, node in enumerate(self.nodes):
            parts = [f"node,nodeid={index}"]
            if node.mib:
                backend = f"memory-backend-ram,id=m{index},size={node.mib}M"
                found += ["-object", backend]
                parts.append(f"memdev=m{index}")
            if node.cpus:
                parts.append(f"cpus={node.cpus}")
            elif self.rates:
                parts.append("initiator=0")
            found += ["-numa", ",".join(parts)]
        for gpu, node in enumerate(self.gpu_nodes):
            bus = f"pxb-pcie,id=bus{gpu},bus_nr={16 + 2 * gpu},numa_node={node},bus=pcie.0"
            port = f"pcie-root-port,bus=bus{gpu},id=gpu{gpu},chassis={gpu + 1},slot={gpu + 1}"
            found += ["-device", bus, "-device", port]
        for (one, other), value in self.distances.items():
            found += ["-numa", f"dist,src={one},dst={other},val={value}"]
        for (one, other), (nanoseconds, mib) in self.rates.items():
            ends = f"hmat-lb,initiator={one},target={other},hierarchy=memory"
            found += ["-numa", f"{ends},data-type=access-latency,latency={nanoseconds}"]
            found += ["-numa", f"{ends},data-type=access-bandwidth,bandwidth={mib}M"]
        return found


_RING = {(0, 1): 16, (0, 2): 22, (0, 3): 16, (1, 2): 16, (1, 3): 22, (2, 3): 16}

GUESTS = {
    guest.name: guest
    for guest in (
        Guest(
            "two-sockets",
            "two packages with a node each, distances 10 and 21",
            "4,sockets=2,cores=2,threads=1",
            (GuestNode("0-1", 1536), GuestNode("2-3", 768)),
            {(0, 1): 21},
            gpu_nodes=(1, 0),
        ),
        Guest(
            "four-nodes",
            "unequal distances, two threads per core, CPU 7 offline, HMAT of each pair",
            "8,sockets=4,cores=1,threads=2",
            (
                GuestNode("0-1", 768),
                GuestNode("2-3", 512),
                GuestNode("4-5", 512),
                GuestNode("6-7", 512),
            ),
            _RING,
            {
                (one, other): (80, 12800) if one == other else (140, 6400)
                for one in range(4)
                for other in range(4)
            },
            gpu_nodes=(3, 2),
            setup="echo 0 > /sys/devices/system/cpu/cpu7/online",
        ),
        Guest(
            "memory-only",
            "node 1 without CPUs, node 2 without memory",
            "4,sockets=2,cores=2,threads=1",
            (GuestNode("0-1", 1536), GuestNode("", 512), GuestNode("2-3", 0)),
            {(0, 1): 17, (0, 2): 21, (1, 2): 28},
            gpu_nodes=(1, 0),
        ),
        Guest(
            "small-node",
            "node 1 with 128 MiB",
            "4,sockets=2,cores=2,threads=1",
            (GuestNode("0-1", 2048), GuestNode("2-3", 128)),
            {(0, 1): 21},
        ),
        Guest(
            "cpuset",
            "a process may use the CPUs of node 0 and the memory of node 1",
            "4,sockets=2,cores=2,threads=1",
            (GuestNode("0-1", 1024), GuestNode("2-3", 1536)),
            {(0, 1): 21},
            setup="""
mkdir /sys/fs/cgroup/task
echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control
echo 0-1 > /sys/fs/cgroup/task/cpuset.cpus
echo 1 > /sys/fs/cgroup/task/cpuset.mems
echo $$ > /sys/fs/cgroup/task/cgroup.procs""",
        ),
        *(
            Guest(
                f"arm-{kib}k",
                f"aarch64, pages of {kib} KiB, two nodes",
                "4,sockets=2,cores=2,threads=1",
                (GuestNode("0-1", 1536), GuestNode("2-3", 768)),
                {(0, 1): 21},
                kernel=f"arm-{kib}k",
            )
            for kib in (4, 16)
        ),
    )
}
