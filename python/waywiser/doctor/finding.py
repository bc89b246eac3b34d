"""What a check found: a frozen value with its severity, evidence and remedy."""

from __future__ import annotations

from waywiser.words import Value
from waywiser.words.severity import Severity, is_at_least


class DoctorFinding(Value, frozen=True):
    id: str
    """Stable, for scripts: ``governor``, ``link-width``."""
    severity: Severity
    what: str
    evidence: str
    """What was read, and where."""
    remedy: str
    """What a person can do; waywiser itself changes nothing. Empty if nothing is to be done."""


def at_least(findings: tuple[DoctorFinding, ...], severity: Severity) -> tuple[DoctorFinding, ...]:
    """The findings of this severity and above."""
    return tuple(finding for finding in findings if is_at_least(finding.severity, severity))
