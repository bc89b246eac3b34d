"""The guides show the examples that the tests build."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
CALLS = HOW_TO.parents[1] / "python" / "waywiser" / "transfer" / "__init__.py"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", sorted(HOW_TO.glob("*.md")), ids=lambda page: page.stem)
def test_a_guide_shows_its_examples_as_they_are(page: Path) -> None:
    spec = importlib.util.spec_from_file_location("examples", HOW_TO / "examples.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.current(page) == page.read_text(), f"run: python docs/how-to/examples.py {page}"


def test_an_executor_is_walked_through() -> None:
    assert "Registered<Executor, Chunked>" in (HOW_TO / "add-an-executor.md").read_text()


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_copies_from_cpp_compile() -> None:
    warn = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
    include = HOW_TO.parents[1] / "native" / "include"
    source = HOW_TO / "examples" / "copies.cpp"
    answer = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", *warn, f"-I{include}", source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "examples/copies.cpp" in (HOW_TO / "copy-from-cpp.md").read_text()


def test_the_calls_of_the_guides_exist() -> None:
    module = ast.parse(CALLS.read_text())
    names = {
        alias.asname or alias.name
        for node in module.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    shown = {
        node.attr
        for page in HOW_TO.glob("*.md")
        for block in PYTHON.findall(page.read_text())
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "transfer"
    }
    assert shown >= {"copy_blocks", "pinned_empty", "read_async", "copy_async"}
    assert shown <= names
