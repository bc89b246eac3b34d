"""A comparison as JUnit XML: one test case per path, as continuous integration reads it.

The form is the one that Ant, Maven's Surefire and their readers share: ``testsuites``,
``testsuite``, ``testcase`` with ``failure`` or ``skipped``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from xml.etree import ElementTree

from waywiser.analysis.comparison.change_texts import detectable_text
from waywiser.analysis.comparison.comparison_text import (
    verdict_text,
    why_suspected,
)
from waywiser.analysis.comparison.path_change import (
    REGIMES,
    PathChange,
    PathVerdict,
    ProfileComparison,
    SizeChange,
)
from waywiser.profile.output_file import OutputKind
from waywiser.words.visible import visible

SUITES = "waywiser compare"
"""The name of the test suites."""

JUNIT_FILE = OutputKind(f"JUnit file of {SUITES}", SUITES)

WITHOUT_DECISION: tuple[PathVerdict, ...] = ("suspected", "missing", "skipped", "new")

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def junit_xml(comparison: ProfileComparison, failing: Container[PathVerdict]) -> bytes:
    """UTF-8. Verdicts in ``failing`` are failures; paths without a decision are skipped, with the
    reason."""
    root = ElementTree.Element("testsuites", {"name": SUITES})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "paths"})
    tags: Counter[str] = Counter()
    for path in comparison.paths:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": "waywiser.compare", "name": _legal(path.curve), "time": "0"},
        )
        said, text = _legal(sentence(comparison, path)), _detail(path)
        tag, about = "system-out", {}
        if path.verdict in failing:
            tag, about = "failure", {"type": path.verdict, "message": said}
        elif path.verdict in WITHOUT_DECISION or not comparison.is_decided(path):
            tag, about = "skipped", {"message": said}
        else:
            text = "\n".join(filter(None, (said, text)))
        ElementTree.SubElement(case, tag, about).text = _legal(text)
        tags[tag] += 1
    numbers = {"tests": tags.total(), "failures": tags["failure"], "skipped": tags["skipped"]}
    for element in (root, suite):
        for name, number in {**numbers, "errors": 0}.items():
            element.set(name, str(number))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def sentence(comparison: ProfileComparison, path: PathChange) -> str:
    """``regression: bandwidth 0.951 of before (0.948 to 0.955); losses from 1.2% are found``; of a
    path that is not decided, which losses the noise hides."""
    size, verdict = path.size, verdict_text(comparison, path)
    if size is None:
        return f"{verdict}: {path.why}"
    decision = size.decision
    what = REGIMES[path.part.regime] if path.part else f"{size.bytes} B"
    known = decision.interval
    ends = [decision.ratio, *((known.low, known.high) if known else ())]
    middle, *span = (1 / end if size.is_time else end for end in ends)
    text = f"{verdict}: {what} {middle:.4g} of before"
    if span:
        text += f" ({min(span):.4g} to {max(span):.4g})"
    if comparison.is_decided(path):
        found = detectable_text(decision.detectable, of_time=size.is_time)
    else:
        losses = [loss for loss in (decision.detectable, path.detectable) if loss is not None]
        most = max(losses) if len(losses) == 2 else None
        found = detectable_text(most, hides=True, of_time=size.is_time)
    return "; ".join(filter(None, (f"{text}; {found}", path.why, why_suspected(path))))


def _detail(path: PathChange) -> str:
    """The figures of all decisions, one line for each part and for each of its sizes."""
    lines = [f"on {device}" for device in path.devices]
    for part in path.parts:
        if part.sizes[1:]:
            lines.append(f"{REGIMES[part.regime]}: {_figures(part.typical)}")
        for size in part.sizes:
            seconds = f"{size.seconds_before:.6g} s before, {size.seconds_now:.6g} s now"
            lines.append(f"{size.series}: {seconds}; {_figures(size)}")
    return "\n".join(lines)


def _figures(size: SizeChange) -> str:
    """``different, ratio of bandwidths 0.95, standard error 0.0012, 14 degrees of freedom, p 1e-08
    (corrected 2e-07), processes 8 before and 8 now``."""
    p, decision, processes = "", size.decision, size.processes
    ratio = f"bandwidths {decision.ratio:.4g}"
    if size.is_time:
        ratio = f"times {1 / decision.ratio:.4g}"
    if decision.p is not None and decision.p_corrected is not None:
        p = f"p {decision.p:.2g} (corrected {decision.p_corrected:.2g}), "
    return (
        f"{decision.verdict}, ratio of {ratio}, standard error {decision.deviation:.2g}, "
        f"{decision.freedom:.3g} degrees of freedom, {p}"
        f"processes {processes[0]} before and {processes[1]} now"
    )


def _legal(text: str) -> str:
    return visible(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))
