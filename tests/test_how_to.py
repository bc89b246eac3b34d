"""The guides show the examples that the tests build."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from script_module import script_module

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
CALLS = HOW_TO.parents[1] / "python" / "waywiser" / "transfer" / "__init__.py"
LIBRARY = HOW_TO.parents[1] / "python" / "waywiser" / "lib" / "libwaywiser_transfer.so"
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", sorted(HOW_TO.glob("*.md")), ids=lambda page: page.stem)
def test_a_guide_shows_its_examples_as_they_are(page: Path) -> None:
    module = script_module(HOW_TO / "examples.py")
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


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.skipif(not LIBRARY.exists(), reason="the library is not built")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("offload", "offloaded 4194304 bytes\ntransfer 0: "),
        ("writer", "16 shards, 16777216 bytes\n"),
    ],
)
def test_the_programs_in_cpp_run(tmp_path: Path, name: str, says: str) -> None:
    source = HOW_TO / "examples" / f"{name}.cpp"
    include = HOW_TO.parents[1] / "native" / "include"
    program = tmp_path / name
    compiled = subprocess.run(
        ["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", source, "-o", program,
         f"-I{include}", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run([program, tmp_path], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(says)
    assert len(source.read_text().splitlines()) <= 60


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.skipif(not LIBRARY.exists(), reason="the library is not built")
def test_the_commands_for_c_run_as_they_are_written(tmp_path: Path) -> None:
    page = (HOW_TO / "copy-from-cpp.md").read_text()
    (command,) = [block for block in SHELL.findall(page) if "gcc " in block]
    answer = subprocess.run(
        ["bash", "-ec", command.replace("-o copies", f"-o {tmp_path}/copies")
                               .replace("./copies", f"{tmp_path}/copies")],
        cwd=HOW_TO.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("copied 100000 bytes")


def test_pages_with_programs_name_the_python_of_a_clone() -> None:
    docs = HOW_TO.parent
    for page in (docs / "transfer.md", HOW_TO / "load-a-model.md", HOW_TO / "copy-from-cpp.md"):
        assert ".venv/bin/python" in page.read_text(), page
        assert "source .venv/bin/activate" in page.read_text(), page


def test_the_calls_of_the_guides_exist() -> None:
    names = next(
        set(ast.literal_eval(node.value))
        for node in ast.parse(CALLS.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
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
