"""What NVML and the operating system say of a machine, as it is kept in a capture."""

from __future__ import annotations

from typing import Literal

from waywiser.words import Value

DeviceAccess = Literal["", "open", "denied", "absent", "hidden"]
"""What keeps a process from a GPU's device node (``/dev/nvidia0``): nothing, it can be opened; a
lack of permission; it does not exist; or the driver shows other GPUs and not this one. Empty if it
is not known."""


class PciFacts(Value, frozen=True):
    """One NVIDIA display device as the kernel lists it; 0 and -1 if it does not say."""

    address: str
    numa: int = -1
    generation_now: int = 0
    width_now: int = 0
    generation_max: int = 0
    width_max: int = 0
    driver: str | None = None
    """The kernel driver that the device is bound to, empty if it is bound to none; None if it was
    not read."""
    access: DeviceAccess = ""
    """Whether the capturing process could open the GPU's device node."""


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
    cpu_topology: bool | None = None
    """Whether the kernel shows which CPUs share a core and a package; None if it was not read."""
    platform: str = ""
    """``tegra`` for NVIDIA's systems on a chip (Jetson); else empty."""
    kernel_driver: str = ""
    """The version of NVIDIA's kernel module that is loaded; empty if none is, or it is hidden."""


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
    """Another program's process on a GPU."""

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
    c2c_links: int = 0
    """NVLink-C2C links between the GPU and the CPU; 0 if it has none or does not say."""
    c2c_mb_per_s: tuple[int, ...] = ()
    """10^6 bytes per second in one direction of each C2C link that is active; 0 if unknown."""


class SilentGpu(Value, frozen=True):
    """A GPU of the PCI bus or of NVML's count that NVML gives no handle for."""

    index: int = -1
    """Its number among those that NVML counts; -1 if it is only on the bus."""
    pci: str = ""
    """Its address; empty if it is not known."""
    error: int = 0
    """NVML's error number."""
    reason: str = ""


class NvmlFacts(Value, frozen=True):
    """What NVML answered, GPUs in PCI order; ``reason`` says why there is nothing."""

    driver: str = ""
    cuda_driver: str = ""
    gpus: tuple[GpuFacts, ...] = ()
    reason: str = ""
    silent: tuple[SilentGpu, ...] = ()
    """GPUs without an answer."""
