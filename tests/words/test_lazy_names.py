"""The roots of packages have the names of their modules, and load no module that is not needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import waywiser

ROOT = Path(waywiser.__file__).parent
ROOTS = sorted(
    path.parent for path in ROOT.rglob("__init__.py") if "= lazy_root(__name__)" in path.read_text()
)


def name_of(folder: Path) -> str:
    return ".".join((ROOT.name, *folder.relative_to(ROOT).parts))


def stated(folder: Path) -> list[tuple[str, str]]:
    """(module, name) of what a root has."""
    tree = ast.parse((folder / "__init__.py").read_text())
    package = name_of(folder)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    own = [node for node in imports if node.col_offset and str(node.module).startswith(package)]
    return [(str(node.module), each.name) for node in own for each in node.names]


def test_there_are_such_roots() -> None:
    assert len(ROOTS) > 4


@pytest.mark.parametrize("folder", ROOTS, ids=name_of)
def test_a_name_is_that_of_its_module(folder: Path) -> None:
    package = import_module(name_of(folder))
    for module, name in stated(folder):
        assert getattr(package, name) is getattr(import_module(module), name)


@pytest.mark.parametrize("folder", ROOTS, ids=name_of)
def test_no_name_is_that_of_a_module(folder: Path) -> None:
    """Python would have the module in its place once that is imported."""
    modules = {path.stem for path in folder.iterdir()}
    names = [name for _, name in stated(folder)]
    assert not modules & set(names) and len(names) == len(set(names))


@pytest.mark.parametrize("folder", ROOTS, ids=name_of)
def test_another_name_is_none(folder: Path) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = import_module(name_of(folder)).Missing


def test_one_name_loads_no_other_module() -> None:
    script = (
        "import sys; import waywiser.machine, waywiser.curves; from waywiser.words import Value\n"
        "own = [name for name in sys.modules if name.startswith('waywiser.')]\n"
        "print(*sorted(own)); assert Value"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    expected = {"waywiser.curves", "waywiser.machine", "waywiser.version", "waywiser.words",
                "waywiser.words.lazy_names", "waywiser.words.value"}  # fmt: skip
    assert set(done.stdout.split()) == expected
