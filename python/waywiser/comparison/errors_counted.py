"""What error counters say for and against a node: now, and since another profile of it was made."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.answer import Device
from waywiser.comparison.node import Node
from waywiser.records import GpuHealth, Health
from waywiser.series.health import health_report
from waywiser.words import Value

GRAVE = ("ECC uncorrected", "after uncorrected errors", "NVLinks down", "failed recoveries")
"""Parts of names of counters that never rise on a healthy machine. Others do now and then: links
send a packet again, and memory corrects a bit."""


class Counted(Value, frozen=True):
    """One thing that was counted."""

    what: str
    """``gpu:3 PCIe replays +2``."""
    grave: bool
    """It speaks against the machine by itself."""


def counted(node: Node) -> tuple[Counted, ...]:
    """While the node was measured: what rose, the driver's messages, what stands."""
    report = health_report(node.health)
    if report is None:
        return ()
    rises = [Counted(str(rise), _is_grave(rise.counter)) for rise in report.rises]
    told = [Counted(text, True) for text in (*report.xids, *report.standing)]
    return (*told, *rises)


def counted_since(before: Node, now: Node) -> tuple[Counted, ...]:
    """Between two profiles, of GPUs that are in both; a counter that was set back says nothing."""
    old, new = _last(before), _first(now)
    if old is None or new is None:
        return ()
    former = {gpu.uuid: gpu for gpu in old.gpus}
    return tuple(
        rise for gpu in new.gpus if gpu.uuid in former for rise in _risen(former[gpu.uuid], gpu)
    )


def devices_in(node: Node, texts: tuple[str, ...]) -> tuple[Device, ...]:
    """The GPUs that texts begin with."""
    named = {text.split()[0] for text in texts}
    return tuple(
        Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)
        for gpu in node.machine.gpus
        if f"gpu:{gpu.index}" in named
    )


def latest(node: Node) -> Health | None:
    """The last reading of the counters; None where there is none."""
    return _last(node)


def _risen(before: GpuHealth, now: GpuHealth) -> Iterator[Counted]:
    for name, after in now.counters.items():
        first = before.counters.get(name)
        if first is not None and after > first:
            yield Counted(f"gpu:{now.index} {name} +{after - first}", _is_grave(name))


def _is_grave(counter: str) -> bool:
    return any(part in counter for part in GRAVE)


def _last(node: Node) -> Health | None:
    readings = [each for run in node.health for each in (run.start, run.end) if each is not None]
    return readings[-1] if readings else None


def _first(node: Node) -> Health | None:
    readings = [each for run in node.health for each in (run.start, run.end) if each is not None]
    return readings[0] if readings else None
