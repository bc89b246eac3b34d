"""The check of the vocabulary finds what it promises to find. `make lint` runs it on all files."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTED = tomllib.loads((ROOT / "scripts" / "vocabulary.toml").read_text())
TERMS, CONCEPTS = LISTED["terms"], LISTED["concepts"]


def check(root: Path) -> tuple[int, list[str]]:
    """The exit code, and the lines of the check for a source tree."""
    command = [sys.executable, ROOT / "scripts" / "vocabulary", root]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def glossary(terms: list[str], concepts: list[str]) -> str:
    return "\n".join((*terms, *(f"| {concept} | a meaning |" for concept in concepts)))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree without a violation."""
    (tmp_path / "python" / "waywiser").mkdir(parents=True)
    (tmp_path / "native").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text(glossary(TERMS, CONCEPTS))
    (tmp_path / "python" / "waywiser" / "good.py").write_text('"""Measures paths."""\nWAY = 1\n')
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text", "line", "what"),
    [
        ("python/waywiser/a.py", "# as told before\n", 1, "'told'"),
        ("python/waywiser/a.py", "class ToldTale:\n    pass\n", 1, "'told'"),
        ("python/waywiser/a.py", "x = 1\nall_twins = x\n", 2, "'twins'"),
        ("python/waywiser/a.py", 'x = f"{x} is left "\\\n    "out here"\n', 1, "'left out'"),
        ("python/waywiser/a.py", "x = 1\nclass MyWishes: ...\n", 2, "'wishes'"),
        ("python/waywiser/a.py", "x = found.left_out\n", 1, "'left out'"),
        ("docs/a.py", "def _is_wanted(): ...\n", 1, "'wanted'"),
        ("python/waywiser/a.py", '"""Of a thing."""\n', 1, "starts with a fragment"),
        ("native/src/a.cpp", 'auto x = 1;\nthrow Bad("it was refused");\n', 2, "'refused'"),
        ("native/src/a.hpp", "class Refused {};\n", 1, "'refused'"),
        ("python/waywiser/_native.pyi", "def operation_refusal(): ...\n", 1, "'refusal'"),
        ("native/src/a.cu", "// the house of memory\n", 1, "'house'"),
        ("native/src/a.cpp", "// bytes\nint asked = 1;\n", 2, "'asked'"),
        ("native/tests/a_test.cpp", "bool isWanted();\n", 1, "'wanted'"),
        ("README.md", "a path as\nfar as it goes\n", 1, "'as far as'"),
        ("docs/how-to/a.md", "Copies both ways.\n", 1, "'both ways'"),
        ("tests/cli/test_a.py", "def test_that_it_is_told() -> None: ...\n", 1, "'told'"),
        ("tests/test_rooms.py", "", 1, "'rooms'"),
        ("tests/test_a.py", "x = 1\nwanted = x\n", 2, "'wanted'"),
        ("tests/test_a.py", "twins = f(x)\n", 1, "'twins'"),
        ("tests/test_a.py", "x = 1  # twins\n", 1, "'twins'"),
        ("tests/test_a.py", 'x = 1\n"""As it\nis told."""\n', 3, "'told'"),
    ],
)
def test_a_violation_is_reported_with_its_line(
    tree: Path, file: str, text: str, line: int, what: str
) -> None:
    path = tree / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    code, lines = check(tree)
    assert code == 1
    assert len(lines) == 1 and lines[0].startswith(f"{file}:{line}: ") and what in lines[0]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("python/waywiser/a.py", "soldier = scolded = kind = household = 1\n"),
        ("python/waywiser/a.py", 'row["lacking"] = f"{skipped} series asked for"\n'),
        ("python/waywiser/a.py", "skipped = 1  # this was asked for and is lacking\n"),
        ("tests/test_a.py", "def test_what_is_asked_for() -> None: ...\n"),
        ("docs/a.md", "The key `lacking` of a file:\n\n```\nleft out\n```\n"),
        ("python/waywiser/profile/schema.py", 'TABLE = "refusal"\n'),
        ("tests/test_a.py", 'x = "a text of a mistake: told"\n'),
        ("tests/test_a.py", "x = 1  # as it was asked for\n"),
        ("native/src/a.cpp", '// what was asked for\nfind("lacking", pagesAsk, wantedly);\n'),
        ("native/tests/a_test.cpp", "TEST_F(Calls, TakeWhatIsAsked) {}\n"),
    ],
)
def test_other_words_names_and_keys_are_no_violation(tree: Path, file: str, text: str) -> None:
    path = tree / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert check(tree)[0] == 0


def test_public_classes_have_different_names(tree: Path) -> None:
    package = tree / "python" / "waywiser"
    (package / "a.py").write_text("class Curve: ...\nclass _Own: ...\n")
    (package / "b.py").write_text("class _Own: ...\nclass Curve: ...\n")
    code, (line,) = check(tree)
    assert code == 1 and line.startswith("python/waywiser/b.py:2: class Curve")
    assert "python/waywiser/a.py:1" in line


def test_a_term_that_no_document_uses_is_reported(tree: Path) -> None:
    (tree / "docs" / "glossary.md").write_text(glossary(TERMS[1:], CONCEPTS))
    code, (line,) = check(tree)
    assert code == 1 and repr(TERMS[0]) in line


def test_a_concept_that_the_glossary_does_not_define_is_reported(tree: Path) -> None:
    text = glossary(TERMS, CONCEPTS[1:]) + f"\n{CONCEPTS[0]} is in the text alone"
    (tree / "docs" / "glossary.md").write_text(text)
    code, (line,) = check(tree)
    assert code == 1 and repr(CONCEPTS[0]) in line
