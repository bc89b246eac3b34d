"""The findings of a doctor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from waywiser.curves import Finding
from waywiser.fitness.diagnosis import CHECKS, disturbances, seen
from waywiser.fitness.situation import Situation
from waywiser.render.parts import Block, Remark, Remarks, Words
from waywiser.words import SEVERITY_ORDER, count


def finding_parts(findings: Sequence[Finding], missing: Sequence[str] = ()) -> Iterator[Block]:
    """A remark for each finding, what is ``missing`` in a profile, and how many findings there
    are."""
    yield Remarks(tuple(map(_remark, findings)))
    if missing:
        yield Words(
            f"not checked, since the profile does not store it: {', '.join(missing)}; run "
            "waywiser doctor on the machine itself"
        )
    counts = Counter(finding.severity for finding in findings)
    # "info" is short for information, which has no plural.
    summary = ", ".join(
        f"{counts[name]} {name}" if name == "info" else count(counts[name], name)
        for name in reversed(SEVERITY_ORDER)
        if counts[name]
    )
    checks = f"{count(len(CHECKS), 'check')}{' of what the profile stores' if missing else ''}"
    bad = counts["error"] + counts["warning"]
    verdict = "" if bad else "OK: no warning and no error; "
    yield Words(f"{verdict}{summary or 'no findings'} in {checks}")


def _remark(finding: Finding) -> Remark:
    lines = tuple(f"seen: {line}" for line in finding.evidence)
    return Remark.of(replace(finding, evidence=lines), f"{finding.id}: {finding.text}")


def disturbance_words(situation: Situation) -> Iterator[Words]:
    """A line for each thing that disturbs a survey, or disturbed it, with what to do."""
    for found in disturbances(situation):
        yield Words(f"warning: {seen(found)}: {found.remedy}", tone="warning")
