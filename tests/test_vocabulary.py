"""Python code uses the words of the field: no retired words, duplicate classes or fragments."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "waywiser"
SOURCES = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
TREES = {name: ast.parse(source) for name, source in SOURCES.items()}

RETIRED = {
    *("tell", "tells", "telling", "told", "untold"),
    *("doubt", "doubts", "doubted", "doubting"),
    *("twin", "twins", "overtake", "overtakes", "overtaking", "farthest", "outlying", "likeness"),
    *("judge", "judges", "judged", "judging", "judgement", "unjudged", "declined", "farewell"),
    *("sound", "unsound", "ought", "house"),
}
"""No name, text or comment has these words, alone or as a part of an identifier."""

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

FRAGMENT = re.compile(r"(Of|Told)\b|Nothing where\b")
"""How a docstring does not start: with a noun or verb phrase it says what it describes."""

TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (
        *(ROOT / "native").rglob("*.[ch]pp"),
        *(ROOT / "native").rglob("*.cu"),
        *(ROOT / "native").rglob("*.h"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "how-to").rglob("*.md"),
        *ROOT.glob("[RC]*.md"),
    )
    if path.name != "CHANGELOG.md"
}
"""Native code, and the documents that describe the present version."""

SHARED = {"Transfer"}
"""The handle of a native transfer is only the type of an argument."""


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Strings that stand alone in a body: those of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                yield each.value


def test_no_retired_word_is_used() -> None:
    found = [
        f"{name}:{number}: {word}"
        for name, source in {**SOURCES, **TEXTS}.items()
        for number, line in enumerate(source.splitlines(), start=1)
        for word in WORD.findall(line)
        if word.lower() in RETIRED
    ]
    assert found == []


def test_no_module_has_a_retired_name() -> None:
    assert [name for name in SOURCES if RETIRED & set(re.split(r"[/_.]", name))] == []


def test_public_classes_have_names_of_their_own() -> None:
    names = Counter(
        node.name
        for tree in TREES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} <= SHARED


def test_docstrings_are_no_fragments() -> None:
    found = [
        f"{name}:{text.lineno}: {str(text.value).strip().splitlines()[0]}"
        for name, tree in TREES.items()
        for text in docstrings(tree)
        if FRAGMENT.match(str(text.value).strip())
    ]
    assert found == []
