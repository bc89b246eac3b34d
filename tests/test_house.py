"""The house's own rules, so that it cannot rot quietly."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import waywiser

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "native"

HELP_SECONDS = 0.3
"""What a person does not notice as waiting."""


def test_imports_flow_one_way() -> None:
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    answer = subprocess.run(
        [sys.executable, "-c", lint, "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 broken" in answer.stdout


def test_help_appears_at_once() -> None:
    enter = "import sys; from waywiser.cli import main; sys.exit(main())"

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = subprocess.run(
            [sys.executable, "-c", enter, "--help"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert answer.returncode == 0, answer.stderr
        assert "survey" in answer.stdout
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Of a processor, the best of several: it waits for nothing, and other work only ever adds.
    assert min(seconds() for _ in range(5)) < HELP_SECONDS


def test_version_has_one_home() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    cited = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    assert cited is not None
    assert cited[1] == waywiser.__version__


def test_only_the_gpu_room_names_the_cuda_runtime() -> None:
    named = re.compile(r"\bcu(?:da)?[A-Z]\w+\s*\(|#include\s*[<\"]cuda|\bcuda[A-Z]\w*_t\b")
    text = re.compile(r"^\s*\".*|(?<!#include )\"[^\"]*\"")
    elsewhere = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in NATIVE.rglob("*")
        if path.suffix in {".cpp", ".hpp", ".cu"} and path.parent != NATIVE / "src" / "gpu"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if named.search(text.sub("", line.split("//")[0]))
    ]
    assert elsewhere == []


@pytest.mark.parametrize("kind", ["executor", "memory"])
def test_each_registered_thing_registers_in_its_room_only(kind: str) -> None:
    registers = re.compile(r"\bRegistered<(Executor|MemoryKind)\b")
    rooms = {"executor": "Executor", "memory": "MemoryKind"}
    for path in (NATIVE / "src" / kind).iterdir():
        assert set(registers.findall(path.read_text())) <= {rooms[kind]}, path.name
