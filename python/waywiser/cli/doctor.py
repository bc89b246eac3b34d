"""``waywiser doctor``: is this machine fit to be measured?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.doctor.finding import DoctorFinding

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}

_INDENT = 8
"""Columns of the severity."""


def run_doctor(json: bool, severity: str = "warning") -> int:
    """Prints the findings of every check; 0 if none is of ``severity`` or above, else 1.

    Raises `WaywiserError` if the machine cannot be looked at, and for another severity.
    """
    from waywiser.doctor.diagnosis import diagnose, live_situation
    from waywiser.doctor.finding import at_least
    from waywiser.severity import parse_severity

    least = parse_severity(severity)
    situation = live_situation()
    findings = diagnose(situation)
    if json:
        import msgspec

        document = {"schema": 1, "hostname": situation.machine.hostname, "findings": findings}
        text = msgspec.json.format(msgspec.json.encode(document), indent=2)
        sys.stdout.write(text.decode() + "\n")
    else:
        print_findings(findings)
    return 1 if at_least(findings, least) else 0


def print_findings(findings: tuple[DoctorFinding, ...], console: Console | None = None) -> None:
    """One paragraph per finding, the severest first, and a closing line that counts them."""
    from rich.text import Text

    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console
    from waywiser.severity import ORDER

    console = console or plain_console()
    for finding in findings:
        head = Text(f"{finding.severity:<{_INDENT}}", style=_STYLES[finding.severity])
        console.print(head.append(f"{finding.id}: {finding.what}", style="default"))
        say(console, f"seen: {finding.evidence}", "dim", indent=_INDENT)
        if finding.remedy:
            say(console, f"remedy: {finding.remedy}", indent=_INDENT)
    counts = {name: sum(f.severity == name for f in findings) for name in reversed(ORDER)}
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    verdict = "" if counts["error"] + counts["warning"] else "nothing stands in the way; "
    console.print(Text(f"{verdict}{summary or 'no findings'}"))
