"""What the error counters of GPUs and links did while a survey ran, and what they say besides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from waywiser.profile.runs import RunHealth
from waywiser.words import STANDING_COUNTERS, Health, Value, count

GRAVE = ("ECC uncorrected", "after uncorrected errors", "NVLinks down", "failed recoveries")
"""Parts of names of counters that never rise on a healthy machine. Others do now and then: links
send a packet again, and memory corrects a bit."""

_LINK = re.compile(r"^NVLink \d+ ")


class Rise(Value, frozen=True):
    """A counter that was higher at the end of a run than at its start."""

    run: int
    """0 if it rose between two profiles."""
    gpu: int
    counter: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"gpu:{self.gpu} {self.counter} +{self.after - self.before}"


class HealthReport(Value, frozen=True):
    """All runs of a profile together."""

    gpus: int
    """GPUs of which anything was read at both ends of a run."""
    rises: tuple[Rise, ...] = ()
    xids: tuple[str, ...] = ()
    """``gpu:3 XID 79``, each once."""
    standing: tuple[str, ...] = ()
    """`waywiser.words.records.STANDING_COUNTERS` that were not 0 in the latest reading: ``gpu:0 row
    remapping pending``."""
    unavailable: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Reason -> what could not be read for it; links by kind, a GPU if not all lack it."""
    unread: tuple[str, ...] = ()
    """Runs without both readings, with the reason."""

    @property
    def is_problem(self) -> bool:
        """Whether there is anything that an administrator should look at."""
        return bool(self.rises or self.xids or self.standing)

    def __str__(self) -> str:
        """One line: what rose or that nothing did, what stands, what could not be read."""
        found = [*map(str, self.rises), *self.xids, *self.standing]
        nothing = f"no error counter of {count(self.gpus, 'GPU')} rose" if self.gpus else ""
        head = f"counted while it ran: {', '.join(found)}" if found else nothing
        missing = [f"{', '.join(what)} ({why})" for why, what in self.unavailable.items()]
        parts = [head, f"unknown: {'; '.join(missing)}" if missing else "", *self.unread]
        return f"health: {'; '.join(filter(None, parts))}"


def health_report(runs: Sequence[RunHealth]) -> HealthReport | None:
    """What all runs together say; None if no run read anything, as before there were readings
    and on machines without a GPU."""
    if not runs:
        return None
    both = [(run.run, run.start, run.end) for run in runs if run.start and run.end]
    latest = [end for _, _, end in both][-1:]
    return HealthReport(
        gpus=max((len(_read(start) & _read(end)) for _, start, end in both), default=0),
        rises=tuple(rise for run, start, end in both for rise in rises(start, end, run)),
        xids=tuple(dict.fromkeys(text for _, _, end in both for text in _xids(end))),
        standing=tuple(
            f"gpu:{gpu.index} {name}"
            for health in latest
            for gpu in health.gpus
            for name in STANDING_COUNTERS
            if gpu.counters.get(name)
        ),
        unavailable=_unavailable(latest),
        unread=tuple(_unread(runs)),
    )


def readings(runs: Iterable[RunHealth]) -> list[Health]:
    """What the counters stood at, the oldest first."""
    return [each for run in runs for each in (run.start, run.end) if each is not None]


def _read(health: Health) -> set[str]:
    return {gpu.uuid for gpu in health.gpus if gpu.counters}


def rises(start: Health, end: Health, run: int = 0) -> Iterator[Rise]:
    """The counters of GPUs that are in both readings; one that was set back says nothing."""
    before = {gpu.uuid: gpu.counters for gpu in start.gpus}
    for gpu in end.gpus:
        own = before.get(gpu.uuid, {})
        for name, after in gpu.counters.items() if own != gpu.counters else ():
            first = own.get(name)
            if first is not None and after > first:
                yield Rise(run, gpu.index, name, first, after)


def _xids(end: Health) -> Iterator[str]:
    for gpu in end.gpus:
        yield from (f"gpu:{gpu.index} XID {number}" for number in gpu.xids)


def _unavailable(latest: Iterable[Health]) -> dict[str, tuple[str, ...]]:
    reasons: dict[str, dict[str, set[int]]] = {}
    everyone: set[int] = set()
    for health in latest:
        for gpu in health.gpus:
            everyone.add(gpu.index)
            for name, why in gpu.unavailable.items():
                kind = _LINK.sub("NVLink ", name)
                reasons.setdefault(why, {}).setdefault(kind, set()).add(gpu.index)
    return {
        why: tuple(_with_gpus(kind, gpus, everyone) for kind, gpus in kinds.items())
        for why, kinds in reasons.items()
    }


def _with_gpus(kind: str, gpus: set[int], everyone: set[int]) -> str:
    if gpus == everyone:
        return kind
    return f"{kind} of {' '.join(f'gpu:{index}' for index in sorted(gpus))}"


def _unread(runs: Sequence[RunHealth]) -> Iterator[str]:
    for run in runs:
        reason = next((each.reason for each in (run.start, run.end) if each and each.reason), "")
        if reason:
            yield f"not read in run {run.run}: {reason}"
        elif run.end is None:
            yield f"not read at the end of run {run.run}"


def errors_of(
    runs: Sequence[RunHealth], before: Sequence[RunHealth] = ()
) -> tuple[list[str], list[str]]:
    """Returns what was counted during the runs of a profile, and since those ``before``, as
    ``gpu:3 PCIe replays +2``: what is a problem of the machine by itself, and what is not."""
    grave: list[str] = []
    minor: list[str] = []
    report = health_report(runs)
    if report is not None:
        grave += [*report.xids, *report.standing]
        for rise in report.rises:
            (grave if _is_grave(rise.counter) else minor).append(str(rise))
    old, new = readings(before), readings(runs)
    for rise in rises(old[-1], new[0]) if old and new else ():
        (grave if _is_grave(rise.counter) else minor).append(f"{rise} since the baseline")
    return grave, minor


def _is_grave(counter: str) -> bool:
    return any(part in counter for part in GRAVE)
