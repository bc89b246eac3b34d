"""What error counters say for and against a node: now, and since another profile of it was made."""

from __future__ import annotations

from collections.abc import Iterator

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
    old, new = readings(before), readings(now)
    if not old or not new:
        return ()
    former = {gpu.uuid: gpu for gpu in old[-1].gpus}
    both = [(former[gpu.uuid], gpu) for gpu in new[0].gpus if gpu.uuid in former]
    return tuple(rise for before_and_now in both for rise in _risen(*before_and_now))


def _risen(before: GpuHealth, now: GpuHealth) -> Iterator[Counted]:
    for name, after in now.counters.items():
        first = before.counters.get(name)
        if first is not None and after > first:
            yield Counted(f"gpu:{now.index} {name} +{after - first}", _is_grave(name))


def _is_grave(counter: str) -> bool:
    return any(part in counter for part in GRAVE)


def readings(node: Node) -> list[Health]:
    """What the counters stood at, the oldest first."""
    return [each for run in node.health for each in (run.start, run.end) if each is not None]
