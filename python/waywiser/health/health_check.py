"""The answer of ``waywiser check``: the verdict of each host, and what each reference found."""

from __future__ import annotations

from waywiser.analysis.comparison.checkup import Checkup
from waywiser.analysis.comparison.fleet import Fleet
from waywiser.analysis.history.history import History
from waywiser.curves.normal import NormalPath
from waywiser.health.reference import HEALTH_REASONS, HostHealth, worst_of
from waywiser.words import STATUSES, Reason, Status, Value
from waywiser.words.host_list import natural_key
from waywiser.words.number_format import count

SCHEMA = 1
"""The schema of the JSON form."""


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
        """The hosts on which something has to be measured again."""
        found = {host.host for host in self.hosts
                 if any(STATUSES[r.status] is Status.SUSPECTED for r in host.results)}  # fmt: skip
        return tuple(sorted(found, key=natural_key))

    @property
    def unreadable(self) -> dict[str, str]:
        """Files of several hosts that could not be read or used, each with the reason."""
        parts = (part.unreadable for part in (self.peers, self.nights) if part is not None)
        return {file: why for part in parts for file, why in part.items()}

    def __str__(self) -> str:
        """One line: of one host its verdict, of several their number by status."""
        if len(self.hosts) == 1:
            return str(self.hosts[0])
        counts = ((sum(h.status == each for h in self.hosts), each) for each in HEALTH_REASONS)
        text = ", ".join(f"{number} {status}" for number, status in counts if number)
        return f"{text} of {count(len(self.hosts), 'host')}"


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
