"""Which known causes of a low bandwidth a profile shows by itself."""

from __future__ import annotations

from waywiser.analysis.comparison.comparison_text import ran_below
from waywiser.curves import LoadedLink, Subject


def seen_causes(node: Subject) -> dict[str, str]:
    """Returns what the profile recorded of a cause, by the ``id`` in ``normal_causes.toml``: links
    that were below their best under load, and a hypervisor. No entry means that nothing of it was
    recorded, not that it is excluded."""
    links = (
        ran_below(f"gpu:{gpu.index}", below)
        for gpu in node.machine.gpus
        if (below := node.links.get(gpu.index, LoadedLink()).below(gpu))
    )
    found = {
        "low-state": "; ".join(links),
        "virtual-machine": f"it is a virtual machine ({node.machine.virtual})"
        if node.machine.virtual
        else "",
    }
    return {cause: text for cause, text in found.items() if text}
