"""Findings as remarks, with links to what they rest on."""

from __future__ import annotations

import re

from waywiser.curves import Answer, Finding
from waywiser.profile import HealthReport
from waywiser.render.entry import Entry
from waywiser.render.parts import Remark, RemarkEvidence
from waywiser.render.writing import percent, value
from waywiser.words import with_sizes

MOST_EVIDENCE = 6
"""Evidence shown for a finding on the page; the analysis has all."""


MOST_DEVICES = 2
"""Most devices that are named with their addresses."""


def question_anchor(entry: Entry, answer: Answer) -> str:
    return f"{entry.key}question-{answer.question}"


def remark(
    entry: Entry, finding: Finding, link: str = "", machine: str = "", more: int = 0
) -> Remark:
    """A remark with its evidence if it leads nowhere (``link`` is empty), else without; ``more``
    other things to look at are shown where it leads."""
    return Remark(
        severity=finding.severity,
        statement=_begun(with_sizes(finding.title)),
        machine=machine,
        devices=_devices(finding, brief=bool(link)),
        effect="" if link else _effect(finding),
        remedy=finding.remedy,
        evidence=() if link else _evidence(entry, finding),
        link=link,
        more=more,
        detail="" if link else with_sizes(finding.below),
    )


def _devices(finding: Finding, *, brief: bool) -> tuple[str, ...]:
    """Devices with addresses, by which an administrator finds them in a rack; many by their places
    alone, whose addresses are in the environment. In brief none if there is nothing to look at."""
    if brief and finding.severity == "info":
        return ()
    if len(finding.devices) > MOST_DEVICES:
        return (", ".join(device.place for device in finding.devices),)
    return tuple(map(str, finding.devices))


def _begun(statement: str) -> str:
    """As a sentence begins, unless it begins with a name: ``gpu:3``, ``pinned@numa:0``."""
    first = statement.split(" ", 1)[0]
    return statement[0].upper() + statement[1:] if first.isalpha() else statement


def _effect(finding: Finding) -> str:
    if finding.effect is None or _is_said(finding.effect, finding.text):
        return ""
    return f"effect {percent(finding.effect, finding.interval)}"


def _is_said(effect: float, statement: str) -> bool:
    """Whether the sentence has the figure itself: ``113 %`` or ``113%``."""
    shown = percent(abs(effect)).lstrip("+×").removesuffix(" %")
    return re.search(rf"(?<![\d.]){re.escape(shown)} ?(%|×|times)", statement) is not None


def _evidence(entry: Entry, finding: Finding) -> tuple[RemarkEvidence, ...]:
    shown = finding.exhibits[:MOST_EVIDENCE]
    evidence = [
        RemarkEvidence(
            f"{each.what} of {with_sizes(each.series)}: "
            f"{value(each.value, each.unit, each.interval)}",
            entry.links.to(each.series),
        )
        for each in shown
    ]
    if (more := len(finding.exhibits) - len(shown)) > 0:
        evidence.append(RemarkEvidence(f"and {more} more"))
    return tuple(evidence)


def of_health(health: HealthReport) -> Finding | None:
    """What error counters say against a machine; None if they say nothing."""
    if not health.is_problem:
        return None
    broken = any("failed" in text for text in health.standing) or bool(health.xids)
    return Finding(
        id="health",
        severity="error" if broken else "warning",
        statement=str(health).removeprefix("health: "),
        remedy="look at the kernel's log and nvidia-smi -q for these GPUs before trusting them",
    )
