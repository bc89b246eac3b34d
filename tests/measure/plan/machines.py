"""Machines to plan for."""

from __future__ import annotations

from waywiser.machine.machine import Gpu, Machine, NumaNode, NvLink, Package, PcieLink


def machine(*, gpus: int = 0, nodes: int = 1, free: int = 0) -> Machine:
    """A machine with so many GPUs, all peers of each other, and so many NUMA nodes."""
    return Machine(
        hostname="testhost",
        architecture="x86_64",
        cpu_model="A CPU",
        packages=(Package(0, "A CPU", cores=4, cpus=4),),
        numa=tuple(NumaNode(i, (2 * i, 2 * i + 1), 2**34, package=0) for i in range(nodes)),
        caches=(),
        gpus=tuple(
            Gpu(
                i,
                f"GPU-{i}",
                "A GPU",
                f"0000:0{i}:00.0",
                memory_free_bytes=free,
                pcie=PcieLink(5, 16, 5, 16),
                nvlinks=(NvLink("switch", 18, 26.562),),
                peers=tuple(j for j in range(gpus) if j != i),
            )
            for i in range(gpus)
        ),
        gpu_reason="" if gpus else "no driver is loaded; install one",
    )
