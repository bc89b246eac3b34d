"""What the checks look at: this machine now, or what a profile stored of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from waywiser.machine import CpuLoad, Machine, SystemFiles, load_of
from waywiser.machine.environment import host_environment
from waywiser.machine.nccl_library import TriedNccl
from waywiser.machine.rank_limits import RankLimit
from waywiser.profile import HealthReport
from waywiser.words import GpuHealth, GpuState

Item = TypeVar("Item")


@dataclass(frozen=True)
class Situation:
    machine: Machine
    files: SystemFiles | None = None
    """The files of the live machine; None for a profile."""
    backend: str = ""
    """The backend of the native library: ``cuda``, ``none``, ``fake``; empty if it was not
    queried."""
    runtime_version: str = ""
    """The version of the CUDA runtime in the native library, ``13.0``."""
    architectures: str = ""
    """The GPUs that the native library was built for, ``75-real 90-virtual``."""
    build: str = ""
    """What the native library was built with and for, for people; empty if it was not queried."""
    nccl: TriedNccl | None = None
    """The NCCL of the live machine; None if it was not read."""
    stored: Mapping[str, Any] = field(default_factory=dict)
    """The environment that a profile stored; of the live machine, what NVML says of it."""
    gpu_states: tuple[GpuState, ...] = ()
    """Readings of GPUs while bytes moved."""
    link_states: tuple[GpuState, ...] = ()
    """Those of GPUs whose links to the host carried the bytes; without any, the state in the
    capture is taken for an idle one."""
    health: HealthReport | None = None
    """What the error counters of GPUs and links did during the survey; None if nothing was read."""
    counters: tuple[GpuHealth, ...] = ()
    """The last reading of these counters."""
    load_now: CpuLoad | None = None
    """How much other programs use the CPUs of the live machine; None if it was not read."""
    rank_limits: tuple[RankLimit, ...] = ()
    """The limits that ranks of MPI would meet on the live machine."""
    measured: Mapping[str, str] = field(default_factory=dict)
    """The slowest bandwidth of each group of headline paths: ``H2D 55.4 GB/s, 88 % of the
    theoretical peak``; empty if there is no profile."""

    @property
    def is_live(self) -> bool:
        return self.files is not None

    @property
    def is_host_known(self) -> bool:
        """Whether the state of CPUs and memory was read: other tools do not store it."""
        return self.is_live or "kernel" in self.stored

    @cached_property
    def _environment(self) -> Mapping[str, Any]:
        if self.files is None:
            return self.stored
        return {**self.stored, **host_environment(self.files)}

    @property
    def load(self) -> CpuLoad | None:
        """How much other programs use the CPUs now, or used them during the survey; None if that is
        not known."""
        found = self.load_now if self.is_live else load_of(self.stored)
        return found if found is not None and found.is_known else None

    def number(self, name: str) -> float | None:
        """A number of `waywiser.machine.environment`; None if it is unknown, or no number."""
        value = self._environment.get(name)
        return value if isinstance(value, int | float) and math.isfinite(value) else None

    def text(self, name: str) -> str:
        """A text of the environment; empty if it is unknown, or no text."""
        value = self._environment.get(name)
        return value if isinstance(value, str) else ""

    def items(self, name: str, kind: type[Item]) -> list[Item]:
        """The items of a list of the environment that are of a kind."""
        value = self._environment.get(name)
        return [each for each in value if isinstance(each, kind)] if isinstance(value, list) else []
