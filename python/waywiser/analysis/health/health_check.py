"""The answer of ``waywiser check``: the verdict of each host, and what each reference found.

A better reference stands before a worse one: where a baseline and peers found nothing wrong, the
equal parts of the machine and other people's machines accuse nothing. Devices report
faults of their own, and always count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from waywiser.analysis.comparison.checkup import Checkup
from waywiser.analysis.comparison.fleet import Fleet
from waywiser.analysis.history.history import History
from waywiser.curves import NormalPath
from waywiser.words import STATUSES, Reason, Status, Value, count, natural_key

SCHEMA = 1
"""The schema of the JSON form."""


ReferenceName = Literal[
    "baseline", "nights", "peers", "devices", "equal parts", "other machines"
]  # fmt: skip

DEVICES: ReferenceName = "devices"

INDIRECT: tuple[ReferenceName, ...] = ("equal parts", "other machines")
"""References that do not count if one of `CLEARING` found nothing wrong."""

CLEARING: tuple[ReferenceName, ...] = ("baseline", "peers")
"""What was so in a baseline, or is so of all nodes of its kind, is no fault. Steady nights clear
nothing: they may all have had it."""

HEALTH_REASONS: tuple[Reason, ...] = ("failed", "inconclusive", "ok")
"""The verdict of a host, the worst first."""


class ReferenceResult(Value, frozen=True):
    """What one reference says of a host."""

    reference: ReferenceName
    status: Reason
    statement: str
    """What was found, or what was tested; why nothing was compared."""
    remedy: str = ""
    """What to do about it, or how to have the reference."""
    cleared_by: str = ""
    """The better reference because of which this one does not count; empty if it counts."""

    @property
    def is_wrong(self) -> bool:
        """Whether it counts and found or suspects something."""
        return not self.cleared_by and STATUSES[self.status] >= Status.SUSPECTED

    @property
    def compared(self) -> bool:
        """Whether the reference has anything to say."""
        return STATUSES[self.status] is not Status.NOT_COMPARED


class HostHealth(Value, frozen=True):
    """The verdict of all references of one host."""

    host: str
    files: tuple[str, ...]
    status: Reason
    reference: ReferenceName | Literal[""]
    """The best reference that gave the status; empty if none compared anything."""
    statement: str
    """The first finding, or what was tested."""
    results: tuple[ReferenceResult, ...]

    def __str__(self) -> str:
        """One line: the status, and why."""
        return f"{self.status.upper()} {self.host}: {self.statement}"


def host_health(host: str, files: Sequence[str], results: Sequence[ReferenceResult]) -> HostHealth:
    """The verdict of ``results``, which stand in the order of `ReferenceName`."""
    better = [each for each in results if each.compared and each.reference in CLEARING]
    if better and all(STATUSES[each.status] is Status.OK for each in better):
        by = better[0].reference
        results = [
            replace(each, cleared_by=by) if each.reference in INDIRECT else each for each in results
        ]
    counted = [each for each in results if each.compared and not each.cleared_by]
    worst = max((STATUSES[each.status] for each in counted), default=Status.NOT_COMPARED)
    about = next(
        (each for each in counted if _verdict(STATUSES[each.status]) == _verdict(worst)), None
    )
    only_devices = worst is Status.OK and all(each.reference == DEVICES for each in counted)
    if about is None or only_devices:
        said = f"; {about.statement}" if about is not None else ""
        statement = f"there is nothing to compare with, by {len(results)} references{said}"
        return HostHealth(host, tuple(files), "inconclusive", "", statement, tuple(results))
    others = [each.reference for each in counted if each is not about]
    also = f"; nothing wrong by {' and '.join(others)}" if worst is Status.OK and others else ""
    return HostHealth(
        host=host,
        files=tuple(files),
        status=_verdict(worst),
        reference=about.reference,
        statement=f"{about.statement}{also}",
        results=tuple(results),
    )


def _verdict(worst: Status) -> Reason:
    if worst is Status.FAILED:
        return "failed"
    return "ok" if worst is Status.OK else "inconclusive"


def worst_of(hosts: Iterable[HostHealth]) -> Reason:
    """The verdict of all hosts. One that nothing was compared with counts only if all are so."""
    found = list(hosts)
    known = [each for each in found if each.reference] or found
    return max((each.status for each in known), key=STATUSES.__getitem__, default="inconclusive")


class HealthCheck(Value, frozen=True):
    """What all references say of one host or of many."""

    schema: int
    status: Reason
    """The worst of the hosts, but for those that nothing was compared with beside others."""
    hosts: tuple[HostHealth, ...]
    """The worst first."""
    baseline: Checkup | None = None
    """One host against its baseline."""
    peers: Fleet | None = None
    nights: History | None = None
    other_machines: tuple[NormalPath, ...] = ()
    """The headline paths of one host beside those of other machines."""

    @property
    def suspects(self) -> tuple[str, ...]:
        """The hosts on which something has to be measured again, also beside what has failed."""
        found = {host.host for host in self.hosts
                 if any(STATUSES[r.status] is Status.SUSPECTED for r in host.results)}  # fmt: skip
        found |= set(self.nights.suspects if self.nights is not None else ())
        return tuple(sorted(found, key=natural_key))

    @property
    def unreadable(self) -> dict[str, str]:
        """Files of several hosts that could not be read or used, each with the reason."""
        parts = (part.unreadable for part in (self.peers, self.nights) if part is not None)
        return {file: why for part in parts for file, why in part.items()}

    def __str__(self) -> str:
        """One line: of one host its verdict, of several their number by status, and from which day
        on their nights were looked at."""
        day = self.nights.first_day_text if self.nights else ""
        first = f", by nights{day}" if day else ""
        if len(self.hosts) == 1:
            return f"{self.hosts[0]}{first}"
        counts = ((sum(h.status == each for h in self.hosts), each) for each in HEALTH_REASONS)
        text = ", ".join(f"{number} {status}" for number, status in counts if number)
        return f"{text} of {count(len(self.hosts), 'host')}{first}"


def health_of(
    hosts: list[HostHealth],
    *,
    baseline: Checkup | None = None,
    peers: Fleet | None = None,
    nights: History | None = None,
    other_machines: tuple[NormalPath, ...] = (),
) -> HealthCheck:
    """Puts the worst hosts first."""
    hosts = sorted(hosts, key=lambda each: (HEALTH_REASONS.index(each.status), not each.reference))
    return HealthCheck(
        SCHEMA, worst_of(hosts), tuple(hosts), baseline, peers, nights, other_machines
    )
