"""Writes the captures beside it: the parts of /sys that are about networks, as files and links.

    python tests/captures/interfaces/synthesise.py        writes them anew

``cloud-vm`` has the files of a virtual machine with a virtio network; the others are made up from
the documentation of the kernel and of the adapters, none of them is a copy. A test checks that the
files are current.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

Tree = dict[str, str]
"""Contents of files by path; a link is ``-> TARGET``."""


def port(adapter: str, device: str, rate: str, state: str = "4: ACTIVE", **counters: int) -> Tree:
    """An adapter of one port. ``counters`` that are not given are 0."""
    folder = f"/sys/class/infiniband/{adapter}"
    files = {
        f"{folder}/device": f"-> {device}",
        f"{folder}/ports/1/rate": rate,
        f"{folder}/ports/1/state": state,
        f"{folder}/ports/1/link_layer": "Ethernet" if "bond" in adapter else "InfiniBand",
        f"{device}/infiniband/{adapter}/node_type": "1: CA",
    }
    for name in ("symbol_error", "link_downed", "port_rcv_errors", "port_xmit_discards"):
        files[f"{folder}/ports/1/counters/{name}"] = str(counters.get(name, 0))
    for name in ("port_xmit_data", "port_rcv_data"):
        files[f"{folder}/ports/1/counters/{name}"] = str(counters.get(name, 250_000_000))
    for name in ("out_of_sequence", "packet_seq_err", "np_cnp_sent"):
        files[f"{folder}/ports/1/hw_counters/{name}"] = str(counters.get(name, 0))
    return files


def network(name: str, device: str = "", **files: object) -> Tree:
    """A network device that is up, with the carrier that it got once."""
    values = {"type": 1, "operstate": "up", "carrier": 1, "speed": -1, "carrier_down_count": 1}
    counted = {"tx_bytes": 1_000_000, "rx_bytes": 2_000_000, "rx_errors": 0, "tx_errors": 0}
    folder = f"/sys/class/net/{name}"
    found = {f"{folder}/{key}": str(value) for key, value in (values | files).items()}
    found |= {f"{folder}/statistics/{key}": str(value) for key, value in counted.items()}
    return found | ({f"{folder}/device": f"-> {device}"} if device else {})


def loopback() -> Tree:
    return network("lo", type=772, operstate="unknown")


def pci(path: str, numa: int) -> Tree:
    """A PCI device with its entry on the bus."""
    address = path.rsplit("/", 1)[-1]
    return {
        f"{path}/numa_node": str(numa),
        f"/sys/bus/pci/devices/{address}": f"-> {path}",
    }


def eight_gpus() -> Tree:
    """GPU n and mlx5_n below one switch; mlx5_8 for storage; a rail whose link has errors, and one
    whose link is down."""
    files = loopback()
    for n in range(8):
        bridges = f"/sys/devices/pci0000:{n:02x}/0000:{n:02x}:01.0/0000:{n + 16:02x}:00.0"
        gpu = f"{bridges}/0000:{n + 16:02x}:01.0/0000:{n + 32:02x}:00.0"
        adapter = f"{bridges}/0000:{n + 16:02x}:02.0/0000:{n + 64:02x}:00.0"
        errors = {"symbol_error": 1234, "link_downed": 3, "out_of_sequence": 88} if n == 2 else {}
        state = "1: DOWN" if n == 5 else "4: ACTIVE"
        files |= pci(gpu, n // 4) | pci(adapter, n // 4)
        files |= port(f"mlx5_{n}", adapter, "400 Gb/sec (4X NDR)", state, **errors)
    storage = "/sys/devices/pci0000:08/0000:08:01.0/0000:48:00.0"
    files |= pci(storage, 0) | port("mlx5_10", storage, "200 Gb/sec (4X HDR)")
    management = "/sys/devices/pci0000:08/0000:08:02.0/0000:49:00.0"
    return files | pci(management, 0) | network("eno1", management, speed=10000)


def bonded() -> Tree:
    """Two ports of one adapter as a bond, over which RoCE runs."""
    device = "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0"
    other = "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.1"
    bond = "/sys/class/net/bond0"
    files = loopback() | pci(device, 1) | pci(other, 1)
    files |= port("mlx5_bond_0", device, "200 Gb/sec (4X HDR)")
    files |= network("bond0", speed=200000, carrier_down_count=4)
    files[f"{bond}/bonding/slaves"] = "eth0 eth1"
    for name, its in (("eth0", device), ("eth1", other)):
        files |= network(name, its, speed=100000)
        files[f"/sys/class/net/{name}/master"] = f"-> {bond}"
        files[f"{bond}/lower_{name}"] = f"-> /sys/class/net/{name}"
    return files


def containers() -> Tree:
    """A host of containers: a bridge and the ends of their links beside the adapter."""
    device = "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0"
    files = loopback() | pci(device, 0) | network("ens2f10", device, speed=25000)
    files |= network("ens2f9", device, operstate="down", carrier=0)
    files |= network("docker0", **{"bridge/bridge_id": "8000.0242"})
    return files | network("veth12ab", speed=10000)


def container() -> Tree:
    """What a container sees: the end of its link, with a speed that means nothing."""
    return loopback() | network("eth0", speed=10000)


def cloud_vm() -> Tree:
    device = "/sys/devices/pci0000:00/0000:00:03.0/virtio2"
    files = loopback() | network("eth0", device)
    return files | network("ifb0", operstate="down", carrier=0)


CAPTURES = {
    "eight-gpus": eight_gpus,
    "bonded": bonded,
    "containers": containers,
    "container": container,
    "cloud-vm": cloud_vm,
}


def texts() -> Iterator[tuple[str, str]]:
    """Name and contents of each file."""
    for name, made in CAPTURES.items():
        yield f"{name}.json", json.dumps(made(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for name, text in texts():
        Path(__file__).with_name(name).write_text(text)
