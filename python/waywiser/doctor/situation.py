"""What the checks look at."""

from __future__ import annotations

from typing import NamedTuple

from waywiser.records import GpuState
from waywiser.topology.machine import Machine
from waywiser.topology.system_files import SystemFiles


class Situation(NamedTuple):
    machine: Machine
    files: SystemFiles
    backend: str = ""
    """The backend of the native library: ``cuda``, ``none``, ``fake``; empty if it was not
    queried."""
    runtime_version: str = ""
    """The version of the CUDA runtime in the native library, ``13.0``."""
    gpu_states: tuple[GpuState, ...] = ()
    """Readings under load; without any, the state in the capture is taken for an idle one."""
