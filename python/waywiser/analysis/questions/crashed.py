"""Paths whose measurement crashed, at how many sizes."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import CRASHED, Finding, Subject, label_of
from waywiser.words import MESSAGES, count, grouped, series_of


def crashed_paths(subject: Subject) -> Iterator[Finding]:
    """The path that crashed at most sizes, with the number of the others."""
    groups = [each for each in subject.overview.failures if each.kind in ("crash", MESSAGES)]
    reasons = {series_of(name): each.reason for each in groups for name in each.members}
    planned = grouped((point.name, point) for point in subject.overview.series if not point.skipped)
    crashed = {
        name: found
        for name, points in planned.items()
        if (found := [point for point in points if label_of(point.workload) in reasons])
    }
    if not crashed:
        return
    name, found = max(crashed.items(), key=lambda each: len(each[1]))
    more = len(crashed) - 1
    also = f"; {count(more, 'other path')} crashed too" if more else ""
    reason = reasons[label_of(found[0].workload)]
    places = (place for points in crashed.values() for place in points[0].workload.places)
    yield Finding(
        id=CRASHED,
        severity="warning",
        statement=f"{name} crashed at {len(found)} of {count(len(planned[name]), 'size')}{also}; "
        f"{reason}",
        devices=subject.gpus(places),
        remedy="do not use it before the reason is known: waywiser show lists each crash",
    )
