"""JUnit XML, as continuous integration reads it.

The form is the one that Ant, Maven's Surefire and their readers share: ``testsuites``,
``testsuite``, ``testcase`` with ``failure`` or ``skipped``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from waywiser.profile import OutputKind
from waywiser.words import visible

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


JunitResult = Literal["failure", "skipped", "passed"]


class JunitCase(NamedTuple):
    """One test."""

    name: str
    result: JunitResult
    message: str
    """In one line."""
    kind: str = ""
    """The type of a failure."""
    detail: str = ""
    """Further lines."""


def junit_kind(verb: str) -> OutputKind:
    """The kind of file that a verb writes: a new one may replace a former one."""
    return OutputKind(f"JUnit file of {_suites(verb)}", _suites(verb))


def junit_file(verb: str, suite: str, cases: Iterable[JunitCase]) -> bytes:
    """UTF-8, with one suite."""
    root = ElementTree.Element("testsuites", {"name": _suites(verb)})
    element = ElementTree.SubElement(root, "testsuite", {"name": suite})
    results: Counter[str] = Counter()
    for case in cases:
        about = {"classname": f"waywiser.{verb}", "name": _legal(case.name), "time": "0"}
        test = ElementTree.SubElement(element, "testcase", about)
        said, text, tag = _legal(case.message), case.detail, str(case.result)
        if case.result == "failure":
            of_result = {"type": case.kind, "message": said}
        elif case.result == "skipped":
            of_result = {"message": said}
        else:
            tag, of_result = "system-out", {}
            text = "\n".join(filter(None, (said, text)))
        ElementTree.SubElement(test, tag, of_result).text = _legal(text)
        results[case.result] += 1
    numbers = {"tests": results.total(), "failures": results["failure"]}
    numbers |= {"skipped": results["skipped"], "errors": 0}
    for each in (root, element):
        for name, number in numbers.items():
            each.set(name, str(number))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suites(verb: str) -> str:
    return f"waywiser {verb}"


def _legal(text: str) -> str:
    return visible(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))
