"""The process that makes a file, as a part of the file's name, and whether it has ended.

A lock shows that on file systems that have locks; a name shows it on all, and from the first moment
on. Hosts and boots are known by hashes of what the system calls them.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from typing import NamedTuple, Self

_BOOT = "/proc/sys/kernel/random/boot_id"
_MACHINE = "/etc/machine-id"

_FIRST_PROCESSES = "pid:[4026531836]"
"""The namespace of processes that a kernel starts with; others are of containers."""

OWNER_PATTERN = r"[0-9a-f]{10}-[0-9a-f]{8}-[0-9a-f]{6}-[0-9]{1,10}-[0-9]{1,20}"
"""What the text of an owner is like, as a regular expression."""


class Owner(NamedTuple):
    """A process of a host. ``str`` of it is a part of a name, `parse` its reverse."""

    host: str
    boot: str
    namespaces: str
    """Where its number and its time are counted: containers count for themselves."""
    process: int
    started: int
    """Ticks of the clock from the start of the system to that of the process."""

    @classmethod
    def of_this_process(cls) -> Self:
        """The calling process."""
        host = _hash(os.uname().nodename, _read(_MACHINE))[:10]
        boot = _hash(_read(_BOOT))[:8]
        namespaces = _hash(_namespace("pid"), _namespace("time"))[:6]
        process = os.getpid()
        state = _ProcessState.of(process)
        return cls(host, boot, namespaces, process, state.started if state else 0)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The owner that a part of a name states; None if it states none."""
        if re.fullmatch(OWNER_PATTERN, text) is None:
            return None
        host, boot, namespaces, process, started = text.split("-")
        return cls(host, boot, namespaces, int(process), int(started))

    def __str__(self) -> str:
        return "-".join(map(str, self))

    def has_ended(self) -> bool | None:
        """Whether the process has ended; False for one of another host, which cannot be seen.

        None: the host is this one, and the process counts in a container, so that only a lock
        shows whether it has ended. A host that runs has one boot, whatever names it has had, and
        whatever names its containers have.
        """
        own = Owner.of_this_process()
        if self.host != own.host and (self.boot != own.boot or not _read(_BOOT)):
            return False
        if self.namespaces != own.namespaces or not self.started or not own.started:
            return None
        if self.boot != own.boot:
            # Containers on several hosts may have one name, and one /etc/machine-id.
            is_host = _namespace("pid") == _FIRST_PROCESSES and len(_read(_MACHINE)) == 32
            return True if is_host else None
        return not self._lives()

    def _lives(self) -> bool:
        """Whether this system has the process. Another may have got its number."""
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):  # that of another user
            pass
        state = _ProcessState.of(self.process)
        if state is None:  # it cannot be seen
            return True
        return state.started == self.started and not state.is_over


class _ProcessState(NamedTuple):
    started: int
    is_over: bool
    """Whether it waits only for its parent to read its end."""

    @classmethod
    def of(cls, process: int) -> Self | None:
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{process}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return cls(int(fields[19]), fields[0] in (b"Z", b"X") and int(fields[17]) <= 1)
        return None


def _namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{name}")
    except OSError:
        return ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(100).strip()
    except OSError:
        return ""


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()
