"""What a check found: a frozen value with its severity, evidence and remedy."""

from __future__ import annotations

from typing import Literal

from waywiser.words import Value, WordError

Severity = Literal["info", "warning", "error"]
"""``info`` explains a number; ``warning`` makes it worse or less certain; ``error`` prevents it."""

ORDER: tuple[Severity, ...] = ("info", "warning", "error")


class Finding(Value, frozen=True):
    id: str
    """Stable, for scripts: ``governor``, ``link-width``."""
    severity: Severity
    what: str
    evidence: str
    """What was read, and where."""
    remedy: str
    """What a person can do; waywiser itself changes nothing. Empty where nothing is to be done."""


def parse_severity(text: str) -> Severity:
    """The severity of that name. Raises `WordError` for anything else."""
    for severity in ORDER:
        if text == severity:
            return severity
    raise WordError(f"{text!r} is no severity", remedy=f"write {' or '.join(ORDER)}")


def at_least(findings: tuple[Finding, ...], severity: Severity) -> tuple[Finding, ...]:
    """The findings of this severity and above."""
    least = ORDER.index(severity)
    return tuple(finding for finding in findings if ORDER.index(finding.severity) >= least)
