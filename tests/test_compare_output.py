"""The comparison of outputs of two trees finds a change, and finds none where nothing changed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tree import FAKE_FOLDER, ROOT

SCRIPT = ROOT / "scripts" / "compare-output"
TINY = r"^--version \[(pipe|60 columns, colour)\]"

PROGRAM = """
import os, sys
from pathlib import Path

def main(words):
    Path("written.txt").write_text("a file")
    columns = os.get_terminal_size(1).columns if os.isatty(1) else 0
    print(f"TEXT, {columns} columns")
    sys.exit(CODE)
"""


def run(*words: object) -> tuple[int, str]:
    """The exit code, and what was written."""
    command = [sys.executable, SCRIPT, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def made_tree(folder: Path, text: str, code: int = 0) -> Path:
    """A tree whose command line writes that."""
    cli = folder / "python" / "waywiser" / "cli"
    cli.mkdir(parents=True)
    (cli.parent / "__init__.py").touch()
    (cli / "__init__.py").write_text(PROGRAM.replace("TEXT", text).replace("CODE", str(code)))
    native = folder / "build" / "dev" / "waywiser_fake"
    native.mkdir(parents=True)
    (native / "_native.none.so").touch()
    return folder


def record(tree: Path, folder: Path) -> Path:
    code, said = run("record", tree, folder, "--only", TINY, "--processes", "1")
    assert code == 0, said
    assert said.startswith("2 commands")
    return folder


def test_two_records_of_this_tree_are_equal(tmp_path: Path) -> None:
    if not list(FAKE_FOLDER.glob("waywiser_fake/_native.*.so")):
        pytest.skip(f"the native library over the fake GPU is not built in {FAKE_FOLDER}")
    first, second = (record(ROOT, tmp_path / name) for name in ("first", "second"))
    assert (first / "index.jsonl").read_text().count('"exit_code": 0') == 2
    code, said = run("compare", first, second)
    assert code == 0, said
    assert said == "0 outputs of 2 commands differ unexpectedly\n"


def test_a_changed_line_and_a_changed_exit_code_are_found(tmp_path: Path) -> None:
    before = record(made_tree(tmp_path / "a", "old"), tmp_path / "before")
    after = record(made_tree(tmp_path / "b", "new", code=3), tmp_path / "after")
    code, said = run("compare", before, after)
    assert code == 1
    assert "-old, 60 columns" in said and "+new, 60 columns" in said
    assert "-old, 0 columns" in said and "+new, 0 columns" in said
    assert "--version [pipe]: exit code" in said and "+exit code 3" in said
    assert "written.txt" not in said
    assert said.endswith("4 outputs of 2 commands differ unexpectedly\n")

    meant = tmp_path / "meant.toml"
    meant.write_text(
        "[[expected]]\nreason = 'another word'\noutputs = 'stdout'\nlines = '(old|new),'\n"
        "[[expected]]\nreason = 'another code'\noutputs = 'exit code'\n"
    )
    code, said = run("compare", before, after, "--expected", meant)
    assert code == 0, said
    assert "expected, 2 outputs: another word" in said


def test_every_verb_is_compared() -> None:
    documented = set(re.findall(r"^### `waywiser (\S+)", (ROOT / "docs/cli.md").read_text(), re.M))
    code, said = run("record", ROOT, "nowhere", "--list", "--quick")
    assert code == 0 and documented
    compared = {line.split()[0] for line in said.splitlines() if "--help" not in line}
    assert documented <= compared
