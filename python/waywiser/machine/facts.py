"""What NVML and the operating system say of a machine, as it is kept in a capture."""

from __future__ import annotations

from waywiser.words import Value


class PciFacts(Value, frozen=True):
    """One NVIDIA display device as the kernel lists it; 0 and -1 if it does not say."""

    address: str
    numa: int = -1
    generation_now: int = 0
    width_now: int = 0
    generation_max: int = 0
    width_max: int = 0


class SystemFacts(Value, frozen=True):
    """What the operating system says and hwloc does not."""

    hostname: str = ""
    architecture: str = ""
    cpu_model: str = ""
    virtual: str = ""
    affinity: tuple[int, ...] = ()
    """Logical CPUs that the capturing process could use; empty for all."""
    cpu_nodes: tuple[int, ...] = ()
    """NUMA nodes with CPUs; empty if unknown."""
    memory_nodes: tuple[int, ...] = ()
    """NUMA nodes that the process may allocate from; empty for all."""
    memory_bytes: int = 0
    """Memory of the whole system; 0 if unknown."""
    visible_devices: str | None = None
    """``CUDA_VISIBLE_DEVICES``, None if unset."""
    pci: tuple[PciFacts, ...] = ()


class Lane(Value, frozen=True):
    """One NVLink of a GPU: ``remote`` is ``gpu``, ``switch``, ``cpu`` or empty."""

    link: int
    remote: str = ""
    remote_pci: str = ""
    mb_per_s: int = 0
    """10^6 bytes per second in one direction, as the driver says; 0 if it does not."""
    version: int = 0


class MigInstance(Value, frozen=True):
    uuid: str
    name: str
    memory_bytes: int = 0
    memory_free_bytes: int = 0


class GpuProcess(Value, frozen=True):
    """Somebody else's process on a GPU."""

    pid: int
    name: str = ""
    memory_bytes: int = 0


class GpuFacts(Value, frozen=True):
    """One GPU as NVML answers; empty, zero or -1 if it does not."""

    uuid: str
    name: str
    pci: str
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    compute: str = ""
    pcie_generation_now: int = 0
    pcie_width_now: int = 0
    pcie_generation_max: int = 0
    pcie_width_max: int = 0
    memory_node: int = -1
    """The NUMA node that is this GPU's own memory (Grace-Hopper)."""
    addressing: str = ""
    """``none``, ``hmm`` or ``ats``: whether the GPU reads pageable memory by itself."""
    clock_sm_mhz: int = 0
    clock_sm_max_mhz: int = 0
    clock_memory_mhz: int = 0
    clock_memory_max_mhz: int = 0
    memory_bus_bits: int = 0
    throttle: tuple[str, ...] = ()
    ecc: str = ""
    persistence: str = ""
    mig: str = ""
    mig_instances: tuple[MigInstance, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    temperature_c: int = 0
    power_w: float = 0.0
    lanes: tuple[Lane, ...] = ()
    """NVLinks that are up."""
    peers: tuple[str, ...] = ()
    """UUIDs of GPUs whose memory this one can read and write."""


class NvmlFacts(Value, frozen=True):
    """What NVML answered, GPUs in PCI order; ``reason`` says why there is nothing."""

    driver: str = ""
    cuda_driver: str = ""
    gpus: tuple[GpuFacts, ...] = ()
    reason: str = ""
