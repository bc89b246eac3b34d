"""Fixes what an output must not depend on: the clock, random names, and the machine.

Python imports this module first if its folder is in PYTHONPATH, in the process that runs commands
and in each worker that a command starts. `FOLDER_VARIABLE` names the folder with ``system``, a made
/proc and /sys, and ``hwloc.xml``.
"""

from __future__ import annotations

import builtins
import datetime
import io
import os
import platform
import random
import socket
import tempfile
import time
from collections.abc import Callable
from typing import Any

# These bind the clock when they are imported, and wait by it: they keep the real one.
import queue  # noqa: F401  isort: skip
import subprocess  # noqa: F401  isort: skip
import threading  # noqa: F401  isort: skip

FOLDER_VARIABLE = "COMPARE_OUTPUT_FIXED"

NOW = datetime.datetime(2026, 12, 1, 12, 0, 0, tzinfo=datetime.UTC)
HOST = "fixed-host"
CPUS = 32
FREE_BYTES = 100 << 30

REPLACED = ("/proc", "/sys", "/etc/os-release", "/run/.containerenv", "/.dockerenv")
OWN = ("/proc/self/fd", "/proc/self/task")
"""What is of the process, and stays."""

_Real = datetime.datetime


class _IsDatetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _Real)


class FixedDatetime(_Real, metaclass=_IsDatetime):
    """Stands for `datetime.datetime`, makes only values of that class, and knows one moment."""

    __slots__ = ()  # native modules check its size

    def __new__(cls, *values: Any, **named: Any) -> Any:
        made = _Real if cls is FixedDatetime else cls
        return _Real.__new__(made, *values, **named)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return NOW.astimezone(tz) if tz else NOW.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> Any:
        return NOW.replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return NOW.replace(tzinfo=None)


def _fix_clock() -> None:
    seconds = NOW.timestamp()
    of_calendar = {name: getattr(time, name) for name in ("gmtime", "localtime")}
    time.time = lambda: seconds
    time.time_ns = lambda: int(seconds) * 10**9
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, lambda: 1000.0)
        setattr(time, f"{name}_ns", lambda: 1000 * 10**9)
    for name, real in of_calendar.items():
        setattr(time, name, lambda at=None, real=real: real(seconds if at is None else at))
    datetime.datetime = FixedDatetime  # type: ignore[misc]


def _fix_names() -> None:
    tempfile._Random = lambda: random.Random(1)  # type: ignore[attr-defined]
    random.seed(1)
    socket.gethostname = lambda: HOST
    platform.node = lambda: HOST


def _fix_machine(root: str) -> None:
    os.cpu_count = lambda: CPUS
    os.sched_getaffinity = lambda _: set(range(CPUS))
    os.getloadavg = lambda: (0.0, 0.0, 0.0)

    def replaced(path: Any) -> Any:
        try:
            text = os.fspath(path)
        except TypeError:
            return path
        if not isinstance(text, str) or not text.startswith(REPLACED) or text.startswith(OWN):
            return path
        return root + text

    for module, name in (
        *((builtins, "open"), (io, "open"), (os, "open"), (os, "listdir"), (os, "scandir")),
        *((os, "stat"), (os, "lstat"), (os, "readlink"), (os, "access")),
    ):
        setattr(module, name, _at_replaced(getattr(module, name), replaced))
    real_statvfs = os.statvfs

    def statvfs(path: Any) -> Any:
        found = list(real_statvfs(path))
        found[1:5] = [4096, 2 * FREE_BYTES // 4096, FREE_BYTES // 4096, FREE_BYTES // 4096]
        return os.statvfs_result(found)

    os.statvfs = statvfs


def _at_replaced(real: Callable[..., Any], replaced: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(path: Any = ".", *values: Any, **named: Any) -> Any:
        return real(replaced(path), *values, **named)

    return call


if folder := os.environ.get(FOLDER_VARIABLE):
    _fix_names()
    _fix_machine(os.path.join(folder, "system"))
    _fix_clock()
