"""docs/atomics.md has every atomic of the transfer library and of the measurement."""

from __future__ import annotations

import re

from tree import ROOT

DECLARED = re.compile(r"std::atomic(?:<(?:[^<>]|<[^<>]*>)*>>?|_ref\()&? ?([\w:]+(?:, \w+)*)")


def atomics() -> set[str]:
    files = [
        file
        for folder in ("transfer", "measure")
        for file in (ROOT / "native" / "src" / folder).iterdir()
    ]
    found = (name for file in files for name in DECLARED.findall(file.read_text()))
    return {name.rpartition(":")[2] for names in found for name in names.split(", ")}


def test_the_page_has_every_atomic() -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page()))))
    # Members and references are named by the flag or counter that they refer to.
    missing = atomics() - named - {"flag", "count", "counter", "made", "value"}
    assert len(atomics()) > 60
    assert missing == set(), f"docs/atomics.md has no row for: {', '.join(sorted(missing))}"


def page() -> str:
    return (ROOT / "docs" / "atomics.md").read_text()
