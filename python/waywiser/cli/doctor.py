"""``waywiser doctor``: is this machine, or the one of a profile, fit to be measured?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.doctor.finding import DoctorFinding

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}

_INDENT = 8
"""Columns of the severity."""


def run_doctor(json: bool, severity: str = "warning", file: str | None = None) -> int:
    """Prints the findings of every check of this machine, or of the machine in a profile; 0 if none
    is of ``severity`` or above, else 1.

    Raises `WaywiserError` if the machine cannot be looked at or the file is no profile, and for
    another severity.
    """
    from waywiser.doctor.diagnosis import (
        diagnose,
        live_situation,
        stored_situation,
        unchecked,
    )
    from waywiser.doctor.finding import at_least
    from waywiser.words.severity import parse_severity

    least = parse_severity(severity)
    if file is None:
        situation, created = live_situation(), ""
    else:
        from waywiser.profile import Profile

        with Profile.open(file) as profile:
            situation, created = stored_situation(profile), profile.created
    findings, missing = diagnose(situation), unchecked(situation)
    hostname = situation.machine.hostname
    if json:
        from waywiser.cli.streams import print_json

        document: dict[str, object] = {"schema": 1, "hostname": hostname, "findings": findings}
        if file is not None:
            document |= {"profile": file, "created": created, "not_checked": missing}
        print_json(document)
        return 1 if at_least(findings, least) else 0
    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console

    console = plain_console()
    if file is not None:
        say(
            console,
            f"{hostname or file}, as the profile of {created[:16]} UTC describes it:",
            "bold",
        )
    print_findings(findings, console, missing)
    return 1 if at_least(findings, least) else 0


def print_findings(
    findings: tuple[DoctorFinding, ...],
    console: Console | None = None,
    missing: tuple[str, ...] = (),
) -> None:
    """Prints a paragraph per finding, the severest first, what is ``missing`` in a profile, and a
    closing line that counts the findings."""
    from rich.text import Text

    from waywiser.cli.lines import say
    from waywiser.cli.picture import plain_console
    from waywiser.words.number_format import count
    from waywiser.words.severity import ORDER

    console = console or plain_console()
    for finding in findings:
        head = Text(f"{finding.severity:<{_INDENT}}", style=_STYLES[finding.severity])
        head.append(f"{finding.id}: {finding.what}", style="default")
        console.print(head, soft_wrap=not console.is_terminal)
        say(console, f"seen: {finding.evidence}", "dim", indent=_INDENT)
        if finding.remedy:
            say(console, f"remedy: {finding.remedy}", indent=_INDENT)
    if missing:
        say(
            console,
            f"not checked, since the profile does not store it: {', '.join(missing)}; run "
            "waywiser doctor on the machine itself",
        )
    counts = {name: sum(f.severity == name for f in findings) for name in reversed(ORDER)}
    # "info" is short for information, which has no plural.
    summary = ", ".join(
        f"{number} {name}" if name == "info" else count(number, name)
        for name, number in counts.items()
        if number
    )
    among = " among what was checked" if missing else ""
    bad = counts["error"] + counts["warning"]
    verdict = "" if bad else f"OK: no warning and no error{among}; "
    console.print(Text(f"{verdict}{summary or 'no findings'}"))
