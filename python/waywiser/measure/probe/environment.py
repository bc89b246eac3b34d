"""The environment of a worker: what is a property of a process must be set before it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import waywiser

RANKS_VARIABLE = "WAYWISER_RANKS"
"""The environment of a rank: ``HOST:PORT:SECRET`` of the socket that it connects to."""

NODE_VARIABLE = "WAYWISER_NODE"
"""The environment of a rank: the name of its node, if that is not the name of its host."""

PROCESS_ENVIRONMENT: Mapping[str, str] = {
    # GPUs are counted as NVML and the PCI bus count them, so that gpu:0 is the same everywhere.
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    # A kernel that is loaded at its first launch would be loaded behind a closed gate.
    "CUDA_MODULE_LOADING": "EAGER",
    # NVLink multicast can take the GPUs of a shared host out of service. It stays off.
    "NCCL_NVLS_ENABLE": "0",
    # A file of the current folder must not pass for a module of the interpreter.
    "PYTHONSAFEPATH": "1",
}
"""Settings of every worker; part of a profile's environment, since they can explain a number."""


def worker_environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The supervisor's environment with `PROCESS_ENVIRONMENT`, and with this very package first
    on the worker's path, wherever the supervisor found it."""
    package = str(Path(waywiser.__file__).parent.parent)
    path = [package, *filter(None, base.get("PYTHONPATH", "").split(os.pathsep))]
    return {**base, **PROCESS_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}
