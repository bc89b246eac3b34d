"""A machine in one line of text."""

from __future__ import annotations

from collections import Counter

from waywiser.hardware.machine import Machine
from waywiser.words.number_format import count


def machine_line(machine: Machine, *, reason: bool = True) -> str:
    """``host: Intel …, 2 NUMA nodes; 8 × NVIDIA H200``; no number of nodes if no topology describes
    them. ``reason`` says whether a machine without GPUs states why it has none."""
    models = Counter(gpu.name for gpu in machine.gpus)
    gpus = ", ".join(f"{n} × {name}" if n > 1 else name for name, n in models.items())
    if not gpus:
        gpus = f"no GPU ({machine.gpu_reason})" if reason and machine.gpu_reason else "no GPU"
    nodes = count(len(machine.numa), "NUMA node") if machine.numa and machine.nodes_known else ""
    host = ", ".join(filter(None, (machine.cpu_model, nodes)))
    return f"{machine.hostname}: {'; '.join(filter(None, (host, gpus)))}"
