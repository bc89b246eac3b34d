"""The picture of the design page is current, and shows what the import contract allows."""

from __future__ import annotations

import ast
from functools import cache
from types import ModuleType

import pytest

from script_module import script_module
from tree import ROOT

DOCS = ROOT / "docs"
PACKAGE = ROOT / "python" / "waywiser"


@pytest.fixture(scope="module")
def design() -> ModuleType:
    return script_module(DOCS / "design.py")


def test_the_picture_is_current(design: ModuleType) -> None:
    remedy = "run: python docs/design.py > docs/design.svg"
    assert design.picture() == (DOCS / "design.svg").read_text().rstrip("\n"), remedy


def test_every_package_is_in_a_layer_and_says_its_purpose(design: ModuleType) -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    layered = [name for layer in design.layers() for name in layer]
    assert packages <= set(layered)
    assert all(design.purpose(name) for name in packages)
    assert len(layered) == len(set(layered))


def test_values_of_the_flow_are_defined_at_their_source_or_below(design: ModuleType) -> None:
    height = {name: n for n, layer in enumerate(reversed(design.layers())) for name in layer}
    for step in [step for chain in design.FLOW for step in chain]:
        home = [name for name in height if step.value in classes(name)]
        assert any(height[name] <= height[step.source] for name in home), step


def test_a_step_goes_to_a_package_that_may_import_its_source_or_reads_a_file(
    design: ModuleType,
) -> None:
    height = {name: n for n, layer in enumerate(reversed(design.layers())) for name in layer}
    for step in [step for chain in design.FLOW for step in chain]:
        is_allowed = height[step.destination] > height[step.source]
        assert is_allowed != (step.value in design.FILES), step


@cache
def classes(package: str) -> set[str]:
    folder = PACKAGE / package
    files = list(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{package}.py"]
    trees = [ast.parse(file.read_text()) for file in files if file.exists()]
    return {
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
