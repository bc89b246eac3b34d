"""What error counters say for and against a node: now, and since another profile of it was made."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.comparison.node import Node
from waywiser.records import Health
from waywiser.series.health import health_report

GRAVE = ("ECC uncorrected", "after uncorrected errors", "NVLinks down", "failed recoveries")
"""Parts of names of counters that never rise on a healthy machine. Others do now and then: links
send a packet again, and memory corrects a bit."""


def errors_of(node: Node, before: Node | None = None) -> tuple[list[str], list[str]]:
    """Returns what was counted while the node was measured, and since ``before``, as ``gpu:3 PCIe
    replays +2``: what is a problem of the machine by itself, and what is not."""
    grave: list[str] = []
    minor: list[str] = []
    report = health_report(node.health)
    if report is not None:
        grave += [*report.xids, *report.standing]
        for rise in report.rises:
            (grave if _is_grave(rise.counter) else minor).append(str(rise))
    for counter, text in _risen_since(before, node) if before else ():
        (grave if _is_grave(counter) else minor).append(f"{text} since the baseline")
    return grave, minor


def _risen_since(before: Node, now: Node) -> Iterator[tuple[str, str]]:
    """The counter and a text, of GPUs that are in both; a counter that was set back says
    nothing."""
    old, new = readings(before), readings(now)
    former = {gpu.uuid: gpu.counters for gpu in old[-1].gpus} if old else {}
    for gpu in new[0].gpus if new else ():
        for counter, after in gpu.counters.items():
            first = former.get(gpu.uuid, {}).get(counter)
            if first is not None and after > first:
                yield counter, f"gpu:{gpu.index} {counter} +{after - first}"


def _is_grave(counter: str) -> bool:
    return any(part in counter for part in GRAVE)


def readings(node: Node) -> list[Health]:
    """What the counters stood at, the oldest first."""
    return [each for run in node.health for each in (run.start, run.end) if each is not None]
