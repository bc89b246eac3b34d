"""A machine whose CPU times are made up: they advance with the clock, whatever really runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from waywiser.machine import cpu_load
from waywiser.machine.system_files import SystemFiles

LIMIT = 0.1
"""The share of the CPUs from which a machine is loaded."""

TICKS = 1_000_000
"""Finer than those of a kernel, so that figures are exact over a short time."""


class ScriptedCpus(SystemFiles):
    """The files of a machine with two CPUs, of which other programs use ``others``, and this
    process and a worker ``own``."""

    def __init__(
        self, others: float, own: float = 0.0, clock: Callable[[], float] = time.monotonic
    ):
        super().__init__("/nowhere")
        self._others, self._own, self._clock = others, own, clock

    def text(self, path: str) -> str | None:
        passed = self._clock() * cpu_load.TICKS
        used = (self._others + self._own) * passed
        if path == "/proc/stat":
            halves = [
                f"cpu{cpu} {used / 2:.0f} 0 0 {passed - used / 2:.0f} 0 0 0 0" for cpu in (0, 1)
            ]
            return "\n".join([f"cpu  {used:.0f} 0 0 0 0 0 0 0", *halves, "cpu7 999 0 0 0 0 0 0 0"])
        if path == f"/proc/{os.getpid()}/status":
            return "Cpus_allowed_list:\t0-1"
        if path == f"/proc/{os.getpid()}/stat":
            return process(os.getpid(), 1, round(self._own / 2 * passed))
        if path == "/proc/99999999/stat":
            return process(99999999, os.getpid(), round(self._own / 2 * passed))
        return None

    def names(self, directory: str) -> list[str]:
        return [str(os.getpid()), "99999999", "stat"] if directory == "/proc" else []


def process(number: int, parent: int, ticks: int, waited: int = 0) -> str:
    """The line of /proc/PID/stat; its name has what such names may have."""
    return f"{number} (a (b) c) S {parent} {'0 ' * 9}{ticks} 0 {waited} 0 20 0 1 0 0"


def use(monkeypatch: pytest.MonkeyPatch, others: float, own: float = 0.0) -> None:
    """Makes surveys and the doctor of this process read such a machine, by the real limit."""
    monkeypatch.setattr(cpu_load, "BUSY_FRACTION", LIMIT)
    monkeypatch.setattr(cpu_load, "SystemFiles", lambda: ScriptedCpus(others, own))
    monkeypatch.setattr(cpu_load, "TICKS", TICKS)
    monkeypatch.setattr(cpu_load, "LOOK_SECONDS", 0.1)
