"""The hosts of a launch across nodes, and the files in which launchers read them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from waywiser.words import Value


class LaunchHosts(Value, frozen=True):
    """Hosts on which a launcher starts ranks, and the address that these connect back to."""

    address: str
    """One of this machine that all hosts reach."""
    names: tuple[str, ...]
    """As the launcher knows them."""
    slots: tuple[int, ...]
    """Ranks of each host."""

    @classmethod
    def of(cls, address: str, slots: Sequence[tuple[str, int]]) -> LaunchHosts:
        return cls(address, tuple(name for name, _ in slots), tuple(n for _, n in slots))

    @property
    def ranks(self) -> int:
        return sum(self.slots)


def hostfile_of(folder: str) -> str:
    """The path of the file of hosts in the folder of a launch."""
    return os.path.join(folder, "hosts")


def write_hostfile(hosts: LaunchHosts, folder: str, library: str) -> str:
    """Writes the file of hosts of a launch: a host and its slots in each line, as the ``mpiexec``
    of the library reads it. Returns its path."""
    between = " slots=" if library == "Open MPI" else ":"
    lines = (f"{name}{between}{n}\n" for name, n in zip(hosts.names, hosts.slots, strict=True))
    path = hostfile_of(folder)
    with open(path, "w") as file:
        file.write("".join(lines))
    return path
