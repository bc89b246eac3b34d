"""A comparison as JUnit XML: one test case per path, as continuous integration reads it.

The form is the one that Ant, Maven's Surefire and their readers share: ``testsuites``,
``testsuite``, ``testcase`` with ``failure`` or ``skipped``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from xml.etree import ElementTree

from waywiser.comparison.path_change import PathChange, PathVerdict, ProfileComparison

SUITES = "waywiser compare"
"""The name of the test suites: a mark in every file, so that it may be replaced by the next."""

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def junit(comparison: ProfileComparison, failing: Container[PathVerdict]) -> bytes:
    """UTF-8. Verdicts in ``failing`` are failures; paths without a decision are skipped, with the
    reason."""
    root = ElementTree.Element("testsuites", {"name": SUITES})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "paths"})
    failures = skipped = 0
    for path in comparison.paths:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": "waywiser.compare", "name": _legal(path.curve), "time": "0"},
        )
        said = _legal(sentence(path))
        if path.verdict in failing:
            failures += 1
            about = {"type": path.verdict, "message": said}
            ElementTree.SubElement(case, "failure", about).text = _legal(_detail(path))
        elif path.verdict in ("suspected", "missing", "skipped", "new"):
            skipped += 1
            ElementTree.SubElement(case, "skipped", {"message": said})
        else:
            ElementTree.SubElement(case, "system-out").text = said
    numbers = {"tests": len(comparison.paths), "failures": failures, "skipped": skipped}
    for element in (root, suite):
        for name, number in {**numbers, "errors": 0}.items():
            element.set(name, str(number))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def sentence(path: PathChange) -> str:
    """``regression: bandwidth 0.951 of before (0.948 to 0.955)``."""
    evidence = path.evidence
    if evidence is None:
        return f"{path.verdict}: {path.why}"
    decision = evidence.decision
    text = f"{path.verdict}: {evidence.what} {decision.ratio:.4g} of before"
    if decision.interval is not None:
        text += f" ({decision.interval.low:.4g} to {decision.interval.high:.4g})"
    if decision.detectable is not None:
        text += f"; losses are detectable from {decision.detectable:.1%} on"
    return "; ".join(filter(None, (text, path.why, path.unconfirmed)))


def _detail(path: PathChange) -> str:
    lines = [f"on {device}" for device in path.devices]
    for part in path.parts:
        for size in part.sizes:
            lines.append(
                f"{size.series}: {size.decision.verdict}, {size.seconds_before:.6g} s before "
                f"({size.processes[0]} processes), {size.seconds_now:.6g} s now "
                f"({size.processes[1]} processes)"
            )
    return "\n".join(lines)


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
