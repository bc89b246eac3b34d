"""Network interfaces of this machine, from sysfs: rates, and the counters of bytes and errors.

InfiniBand and RoCE are under /sys/class/infiniband, a port each; Ethernet is under /sys/class/net.
Shown are those whose link is up: ports that are active; and network devices that have hardware, or
join such devices (bonds), or, if there is none, virtual ones, as a container has them.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from waywiser.machine.system_files import SystemFiles
from waywiser.words import Rail, Value, natural_key
from waywiser.words.cluster import Interface

_INFINIBAND = "/sys/class/infiniband"
_NET = "/sys/class/net"
_ETHERNET_TYPE = 1
"""ARPHRD_ETHER of linux/if_arp.h."""

_PORT_ERRORS = (
    *("symbol_error", "link_downed", "link_error_recovery", "local_link_integrity_errors"),
    *("port_rcv_errors", "port_rcv_remote_physical_errors", "port_xmit_discards"),
    "excessive_buffer_overrun_errors",
)
"""In ``counters``: the port's own (InfiniBand specification, PortCounters)."""

_HARDWARE_ERRORS = (
    *("out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err"),
    *("out_of_buffer", "rnr_nak_retry_err", "rx_icrc_encapsulated"),
    *("roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart"),
)
"""In ``hw_counters``: those of NVIDIA's adapters that count lost and repeated packets."""

_NET_ERRORS = ("rx_errors", "tx_errors", "rx_crc_errors")
"""Without dropped packets: a healthy link counts those that no program listens to."""

_MOST_COUNT = 2**62
"""Above this a counter is no count: a card that fell off its bus reads as ones."""

_WORD_BYTES = 4
"""The data counters of a port count words."""


class InterfaceBytes(NamedTuple):
    """What an interface has counted since its start, in bytes."""

    sent: int
    received: int

    def since(self, before: InterfaceBytes) -> InterfaceBytes | None:
        """What was counted since then; None if a counter was reset meanwhile."""
        sent, received = self.sent - before.sent, self.received - before.received
        return InterfaceBytes(sent, received) if sent >= 0 and received >= 0 else None


class FoundInterface(Value, frozen=True):
    """An interface and where sysfs has it."""

    interface: Interface
    folder: str
    """That of the port, or of the network device."""
    device: str = ""
    """The PCI device, in /sys/devices; empty for a virtual interface."""
    is_virtual: bool = False


def find_interfaces(files: SystemFiles | None = None) -> tuple[FoundInterface, ...]:
    """Those that are up, InfiniBand first, each kind by name and number."""
    files = files or SystemFiles()
    return (*_infiniband(files), *_ethernet(files))


def read_errors(
    found: Sequence[FoundInterface], files: SystemFiles | None = None
) -> dict[str, int]:
    """The error counters that are not 0, ``mlx5_0 symbol_error``: since the driver was loaded."""
    files = files or SystemFiles()
    errors: dict[str, int] = {}
    for each in found:
        for name in _error_files(each):
            value = _counter(files, f"{each.folder}/{name}")
            if value:
                errors[f"{each.interface.name} {name.rsplit('/', 1)[-1]}"] = value
        downs = _times_down(each, files)
        if downs:
            errors[f"{each.interface.name} link_downed"] = downs
    return errors


def new_errors(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What was counted between two readings of `read_errors`."""
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in grown.items() if count > 0}


def read_bytes(found: FoundInterface, files: SystemFiles | None = None) -> InterfaceBytes | None:
    """The byte counters; None if the interface has none."""
    files = files or SystemFiles()
    if found.interface.kind == "infiniband":
        names, unit = ("counters/port_xmit_data", "counters/port_rcv_data"), _WORD_BYTES
    else:
        names, unit = ("statistics/tx_bytes", "statistics/rx_bytes"), 1
    sent, received = (_counter(files, f"{found.folder}/{name}") for name in names)
    if sent is None or received is None:
        return None
    return InterfaceBytes(sent * unit, received * unit)


def rails(
    gpus: Sequence[tuple[int, str]],
    found: Sequence[FoundInterface],
    files: SystemFiles | None = None,
) -> tuple[Rail, ...]:
    """A rail for each GPU (index, PCI address) with the nearest interface; of equally near ones,
    the fastest, and of those the one that the fewest GPUs have. Without GPUs one rail, with the
    fastest interface."""
    files = files or SystemFiles()
    usable = _fastest_kind(found)
    if not gpus:
        best = max(usable, key=lambda each: each.interface.bytes_per_second, default=None)
        return (Rail(0, interface=best.interface if best else None),)
    taken = dict.fromkeys((each.interface.name for each in usable), 0)
    made = []
    for number, (gpu, address) in enumerate(gpus):
        path = files.real(f"/sys/bus/pci/devices/{address.lower()}")
        numa = files.integer(f"/sys/bus/pci/devices/{address.lower()}/numa_node")
        nearest = min(
            usable,
            key=lambda each: (
                -_shared_bridges(path, each.device),
                numa is None or each.interface.numa != numa,
                -each.interface.bytes_per_second,
                taken[each.interface.name],
            ),
            default=None,
        )
        if nearest:
            taken[nearest.interface.name] += 1
        made.append(Rail(number, gpu, nearest.interface if nearest else None))
    return tuple(made)


def rate_of_port(text: str) -> float:
    """Bytes per second of ``400 Gb/sec (4X NDR)``; 0 if it is unknown."""
    match = re.match(r"([0-9]+(?:\.[0-9]+)?) Gb/sec", text)
    return float(match[1]) * 1e9 / 8 if match else 0.0


def _infiniband(files: SystemFiles) -> list[FoundInterface]:
    found = []
    for adapter in sorted(files.names(_INFINIBAND), key=natural_key):
        ports = sorted(files.names(f"{_INFINIBAND}/{adapter}/ports"), key=natural_key)
        for port in ports:
            folder = f"{_INFINIBAND}/{adapter}/ports/{port}"
            if "ACTIVE" not in (files.text(f"{folder}/state") or ""):
                continue
            device = f"{_INFINIBAND}/{adapter}/device"
            interface = Interface(
                name=adapter if len(ports) == 1 else f"{adapter}:{port}",
                kind="infiniband",
                bytes_per_second=rate_of_port(files.text(f"{folder}/rate") or ""),
                numa=_numa(files, device),
            )
            found.append(FoundInterface(interface, folder, files.real(device)))
    return found


def _ethernet(files: SystemFiles) -> list[FoundInterface]:
    names = sorted(files.names(_NET), key=natural_key)
    found = [each for name in names for each in _net_device(name, files)]
    return [each for each in found if not each.is_virtual] or found


def _net_device(name: str, files: SystemFiles) -> list[FoundInterface]:
    """None of a device that is down, a bridge, or a part of a bond, or that this process does not
    have."""
    folder = f"{_NET}/{name}"
    if files.integer(f"{folder}/type") != _ETHERNET_TYPE or not _is_up(folder, files):
        return []
    if not _is_of_this_process(name, folder, files):
        return []
    if files.names(f"{folder}/bridge") or files.names(f"{folder}/master/bonding"):
        return []
    is_bond = bool(files.names(f"{folder}/bonding"))
    is_virtual = not is_bond and not files.real(f"{folder}/device")
    # The kernel gives virtual devices a speed that nothing limits them to.
    megabits = 0 if is_virtual else files.integer(f"{folder}/speed") or 0
    hardware = f"{folder}/{_first_member(folder, files)}device" if is_bond else f"{folder}/device"
    interface = Interface(
        name=name,
        kind="ethernet",
        bytes_per_second=max(megabits, 0) * 1e6 / 8,
        numa=_numa(files, hardware),
    )
    return [FoundInterface(interface, folder, files.real(hardware), is_virtual)]


def _is_of_this_process(name: str, folder: str, files: SystemFiles) -> bool:
    """Whether the device is in the network namespace of this process: sysfs shows those of the
    namespace in which it was mounted, which may have devices of the same names."""
    if files.root != Path("/"):
        return True
    try:
        return socket.if_nametoindex(name) == files.integer(f"{folder}/ifindex")
    except OSError:
        return False


def _is_up(folder: str, files: SystemFiles) -> bool:
    """Some drivers of virtual devices do not say it: then the carrier does."""
    state = files.text(f"{folder}/operstate")
    return state == "up" or (state == "unknown" and files.text(f"{folder}/carrier") == "1")


def _first_member(folder: str, files: SystemFiles) -> str:
    members = (files.text(f"{folder}/bonding/slaves") or "").split()
    return f"lower_{members[0]}/" if members else ""


def _numa(files: SystemFiles, device: str) -> int:
    numa = files.integer(f"{device}/numa_node")
    return -1 if numa is None else numa


def _error_files(found: FoundInterface) -> list[str]:
    if found.interface.kind == "ethernet":
        return [f"statistics/{name}" for name in _NET_ERRORS]
    port = [f"counters/{name}" for name in _PORT_ERRORS]
    return port + [f"hw_counters/{name}" for name in _HARDWARE_ERRORS]


def _times_down(found: FoundInterface, files: SystemFiles) -> int:
    """How often the link of a network device was lost; it is down once before it is first up."""
    if found.interface.kind != "ethernet" or found.is_virtual:
        return 0
    return max((_counter(files, f"{found.folder}/carrier_down_count") or 0) - 1, 0)


def _counter(files: SystemFiles, path: str) -> int | None:
    """None for what is no count: of 32 bits that are all 1 too."""
    value = files.integer(path)
    return value if value is not None and 0 <= value <= _MOST_COUNT and value != 2**32 - 1 else None


def _fastest_kind(found: Sequence[FoundInterface]) -> Sequence[FoundInterface]:
    """InfiniBand and RoCE if there are any: MPI and NCCL take them first."""
    return [each for each in found if each.interface.kind == "infiniband"] or found


def _shared_bridges(gpu: str, interface: str) -> int:
    """How many steps in /sys/devices two devices have in common; 0 beyond one root complex."""
    if not gpu or not interface:
        return 0
    shared = 0
    for one, other in zip(gpu.split("/"), interface.split("/"), strict=False):
        if one != other:
            break
        shared += 1
    return shared if shared > len(["", "sys", "devices"]) else 0
