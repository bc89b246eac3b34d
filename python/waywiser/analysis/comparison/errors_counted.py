"""What error counters say for and against a node: now, and since another profile of it was made."""

from __future__ import annotations

from waywiser.curves.subject import Subject
from waywiser.profile.health import health_report, readings, rises

GRAVE = ("ECC uncorrected", "after uncorrected errors", "NVLinks down", "failed recoveries")
"""Parts of names of counters that never rise on a healthy machine. Others do now and then: links
send a packet again, and memory corrects a bit."""


def errors_of(node: Subject, before: Subject | None = None) -> tuple[list[str], list[str]]:
    """Returns what was counted while the node was measured, and since ``before``, as ``gpu:3 PCIe
    replays +2``: what is a problem of the machine by itself, and what is not."""
    grave: list[str] = []
    minor: list[str] = []
    report = health_report(node.health)
    if report is not None:
        grave += [*report.xids, *report.standing]
        for rise in report.rises:
            (grave if _is_grave(rise.counter) else minor).append(str(rise))
    old, new = readings(before.health) if before else [], readings(node.health)
    for rise in rises(old[-1], new[0]) if old and new else ():
        (grave if _is_grave(rise.counter) else minor).append(f"{rise} since the baseline")
    return grave, minor


def _is_grave(counter: str) -> bool:
    return any(part in counter for part in GRAVE)
