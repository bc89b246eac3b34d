"""Rules of the project that tests can check."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import waywiser

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "native"

TESTS = ROOT / "tests"

PACKAGES_FOR_HELP = {"cli", "errors", "version", "words"}
MODULES_FOR_HELP = {
    "cluster", "cluster.survey_options",
    "measure", "measure.option", "measure.simulate_options", "measure.survey_options",
    "measure.tune_options", "render", "render.program_name",
}  # fmt: skip
"""All that help needs of other packages: the tables of options, and the name of the command."""
PACKAGES_OF_HELP = {"annotated_doc", "click", "msgspec", "shellingham", "typer"}
"""The parser of commands with what it needs itself, and what words are made of."""


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
    """What takes time there is what is imported: nothing but the command line itself."""
    script = (
        "import json, sys; before = set(sys.modules)\n"
        "from waywiser.cli import run; code = run(['--help'])\n"
        "print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr); sys.exit(code)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "survey" in answer.stdout
    loaded = [name.split(".") for name in json.loads(answer.stderr)]
    own = {tuple(name[1:]) for name in loaded if name[0] == "waywiser" and len(name) > 1}
    assert {".".join(name) for name in own if name[0] not in PACKAGES_FOR_HELP} <= MODULES_FOR_HELP
    known = {*sys.stdlib_module_names, *PACKAGES_OF_HELP, "typing_extensions", "waywiser"}
    assert {name[0] for name in loaded if not name[0].startswith("_")} <= known


def test_no_example_has_a_deadline() -> None:
    """How long one takes depends on what else the machine does."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_no_test_times_what_it_tests() -> None:
    """Seconds depend on the machine and on what else it does; calls do not: see effort.py."""
    clocks = re.compile(r"\b(process_time|perf_counter|thread_time|getrusage)\b")
    timed = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path != Path(__file__) and clocks.search(path.read_text())
    ]
    assert timed == []


def test_version_has_one_home() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    cited = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    assert cited is not None
    assert cited[1] == waywiser.__version__


PROSE = {"reason", "text", "message"}
"""Attributes with a sentence for people. What a program must know has a field of its own."""

READERS_OF_PROSE = {
    "analysis/policy/code_lines.py": 1,
    "measure/ranks/launcher.py": 1,
    "measure/ranks/mpi_library.py": 1,
    "render/views/cluster.py": 1,
}
"""How often files decide by the words of a sentence. This may only shrink."""


def is_prose(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in PROSE


def reads_prose(node: ast.AST) -> bool:
    """Whether an expression looks for words in a sentence for people, or cuts it."""
    cuts = {"startswith", "endswith", "find", "index", "split", "partition", "rpartition"}
    cuts |= {"removeprefix", "removesuffix"}
    searches = {"match", "search", "fullmatch", "findall", "finditer", "sub"}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        own = node.func.attr in cuts and is_prose(node.func.value)
        return own or (node.func.attr in searches and any(map(is_prose, node.args)))
    if not isinstance(node, ast.Compare):
        return False
    looks = any(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops)
    return looks and any(map(is_prose, node.comparators))


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("row.reason.startswith('crash')", True),
        ("'x' in row.text", True),
        ("PATTERN.search(row.message)", True),
        ("row.reason == other.reason", False),
        ("name.startswith('crash')", False),
        ("row.reason in seen", False),
    ],
)
def test_readers_of_prose_are_seen(code: str, reads: bool) -> None:
    assert reads_prose(ast.parse(code, mode="eval").body) is reads


def test_nothing_decides_by_the_words_of_a_sentence() -> None:
    found: dict[str, int] = {}
    for path in (ROOT / "python" / "waywiser").rglob("*.py"):
        name = str(path.relative_to(ROOT / "python" / "waywiser"))
        count = sum(map(reads_prose, ast.walk(ast.parse(path.read_text()))))
        # Imports read the texts of other programs.
        if count and not name.startswith("exchange/imports/"):
            found[name] = count
    assert found == READERS_OF_PROSE, "give what a program must know a field of its own"


CUDA_FOLDERS = (
    NATIVE / "src" / "gpu",
    NATIVE / "tests" / "driver",
    NATIVE / "tests" / "trace",
)
"""The seam, its tests beside drivers without a device, and the driver that loads the tracer."""


def test_only_the_gpu_folder_names_the_cuda_runtime() -> None:
    named = re.compile(r"\bcu(?:da)?[A-Z]\w+\s*\(|#include\s*[<\"]cuda|\bcuda[A-Z]\w*_t\b")
    text = re.compile(r"^\s*\".*|(?<!#include )\"[^\"]*\"")
    elsewhere = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in NATIVE.rglob("*")
        if path.suffix in {".cpp", ".hpp", ".cu"} and path.parent not in CUDA_FOLDERS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if named.search(text.sub("", line.split("//")[0]))
    ]
    assert elsewhere == []


@pytest.mark.parametrize("kind", ["executor", "memory"])
def test_each_registered_thing_registers_in_its_folder_only(kind: str) -> None:
    registers = re.compile(r"\bRegistered<(Executor|MemoryKind)\b")
    folders = {"executor": "Executor", "memory": "MemoryKind"}
    for path in (NATIVE / "src" / kind).iterdir():
        assert set(registers.findall(path.read_text())) <= {folders[kind]}, path.name
