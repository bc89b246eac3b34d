"""Shares the machine with other programs: one survey per host, and no GPU that others use."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Collection
from typing import Self

from waywiser.machine import Gpu, Machine, limits
from waywiser.words import Closeable, Unsupported, WaywiserError, format_bytes

LOCK_NAME = "waywiser-survey"
"""Name of the abstract socket: it is no file, and is gone with its process, however that ends."""

PROCESS_BYTES = 512 << 20
"""Left for the processes themselves when a control group bounds the memory: two interpreters and
a GPU driver's bookkeeping in host memory."""

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class SharingError(WaywiserError):
    """This host is not free to be measured now."""


class SurveyLock(Closeable):
    """Held by the one survey that may run on this host at a time; a context manager.

    The lock is as wide as the network namespace: containers with their own do not see each other.
    """

    def __init__(self, name: str = LOCK_NAME) -> None:
        self._address = "\0" + name
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        """Raises `SharingError` naming the holder where another survey runs."""
        held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            held.bind(self._address)
            held.listen()  # so that others can connect, and learn from the kernel who holds it
        except OSError as error:
            held.close()
            if error.errno == errno.EADDRINUSE:
                raise self._taken() from error
            raise SharingError(f"the lock of this host cannot be had: {error}") from error
        self._socket = held
        return self

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None

    def _taken(self) -> SharingError:
        pid = self._holder()
        who = f"by process {pid}" if pid else "by a process that cannot be seen from here"
        return SharingError(
            f"this host is being surveyed already, {who}",
            remedy="wait until it is done: two concurrent surveys would disturb each other",
        )

    def _holder(self) -> int:
        """The holder's process id; 0 if it is not visible or has just ended."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
                visitor.settimeout(1.0)
                visitor.connect(self._address)
                size = _CREDENTIALS.size
                found = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        except OSError:
            return 0
        return int(_CREDENTIALS.unpack(found)[0])


def usable_gpus(
    machine: Machine, share: bool, memory_bytes: int
) -> tuple[tuple[int, ...], list[Unsupported]]:
    """The indices of the GPUs that may be measured, and the reason for each of the others.

    Left alone are GPUs that other processes use or with less than ``memory_bytes`` free, unless
    ``share``. A GPU whose free memory is unknown (0) is not skipped for it.
    """
    found = [(gpu.index, "" if share else _occupied(gpu, memory_bytes)) for gpu in machine.gpus]
    unsupported = [Unsupported(f"gpu:{index}", reason) for index, reason in found if reason]
    return tuple(index for index, reason in found if not reason), unsupported


def _occupied(gpu: Gpu, memory_bytes: int) -> str:
    if gpu.processes:
        users = "; ".join(gpu.processes)
        return (
            f"in use by others ({users}): wait for them, or measure at the same time with --share"
        )
    if 0 < gpu.memory_free_bytes < memory_bytes:
        free = format_bytes(gpu.memory_free_bytes >> 20 << 20)
        return (
            f"{free} of its memory is free, a workload may take {format_bytes(memory_bytes)}: "
            "lower --memory, or try with --share"
        )
    return ""


WAITING_BYTES = 512 << 20
"""Left for each process that waits for its turn, of the memory of the host and of each GPU, on
which its context takes some of that."""


def workers_together(machine: Machine, gpus: Collection[int], memory_bytes: int) -> int:
    """How many workers may be there at once, one of which measures with so much memory. At least
    one; free memory of a GPU that is unknown (0) bounds nothing."""
    free = [gpu.memory_free_bytes for gpu in machine.gpus if gpu.index in gpus]
    free = [each for each in free if each]
    nodes = [each for node in machine.numa if (each := node.memory_free_bytes) is not None]
    if nodes and len(nodes) == len(machine.numa):
        free.append(sum(nodes))
    available = limits.available_bytes()
    if available is not None:
        free.append(available - PROCESS_BYTES)
    left = min(free, default=0) - memory_bytes
    return 1 + max(left // WAITING_BYTES, 0)


def memory_bound(requested_bytes: int) -> tuple[int, str]:
    """How much memory workloads may take, and a note where that is less than was asked for.

    Bounded by the control group's limit, never by the size of the machine: MemTotal can be wrong
    in both directions. Raises `SharingError` if the limit leaves nothing to measure with.
    """
    available = limits.available_bytes()
    if available is None or requested_bytes <= available - PROCESS_BYTES:
        return requested_bytes, ""
    bound = available - PROCESS_BYTES
    free = format_bytes(available >> 20 << 20)
    if bound <= 0:
        raise SharingError(
            f"only {free} of memory are left under the control group's limit",
            remedy=f"raise the limit; at least {format_bytes(PROCESS_BYTES)} are needed",
        )
    note = f"memory bounded by the control group: {format_bytes(bound >> 20 << 20)} of {free} left"
    return bound, note
