"""A machine in one line of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from waywiser.machine.machine import Machine
from waywiser.words.number_format import count


def machine_line(machine: Machine, *, host: bool = True, reason: bool = True) -> str:
    """``host: 2 × Intel …, 2 NUMA nodes; 8 × NVIDIA H200; driver 580.159``.

    A simulated machine says so. ``host`` says whether the name of the host is in it, ``reason``
    whether a machine without GPUs states why it has none. What is unknown is not in it.
    """
    packages = [package.model for package in machine.packages] or [machine.cpu_model]
    processors = _counted(name for name in packages if not name.startswith("unknown"))
    nodes = count(len(machine.numa), "NUMA node") if machine.numa and machine.nodes_known else ""
    gpus = _counted(gpu.name for gpu in machine.gpus)
    if not gpus:
        gpus = f"no GPU ({machine.gpu_reason})" if reason and machine.gpu_reason else "no GPU"
    parts = (
        ", ".join(filter(None, (processors or machine.architecture, nodes))),
        gpus,
        f"driver {machine.driver}" if machine.driver else "",
        f"simulated {machine.simulated}" if machine.simulated else "",
    )
    line = "; ".join(filter(None, parts))
    return f"{machine.hostname}: {line}" if host and machine.hostname else line


def _counted(names: Iterable[str]) -> str:
    many = Counter(filter(None, names))
    return ", ".join(f"{n} × {name}" if n > 1 else name for name, n in many.items())
