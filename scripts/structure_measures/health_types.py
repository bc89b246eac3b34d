"""The types that say how something is, and those that say what was found of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

STATED = {"status", "verdict", "standing"}
"""Names of fields that say how something is."""

FOUND = ("Finding", "Fault")
"""Ends of the names of classes that say what was found."""


def status_types(code: Mapping[Path, str]) -> set[str]:
    """The enumerations and aliases of `Literal` that are the type of such a field, by name and by
    the module that declares them."""
    declared: dict[str, set[str]] = {}
    used = set()
    exported: dict[tuple[str, str], str] = {}
    """The module that a name of a package is from."""
    for path, text in code.items():
        tree = ast.parse(text)
        for name in _choices(tree):
            declared.setdefault(name, set()).add(path.stem)
        for name in _stated(tree):
            used.add((name, _origin(tree, name, path.stem)))
        if path.stem == "__init__":
            exported |= {(path.parent.name, name): _origin(tree, name, "") for name in _names(tree)}
    found = {(name, exported.get((module, name), module)) for name, module in used}
    return {f"{module}.{name}" for name, module in found if module in declared.get(name, ())}


def finding_types(code: Mapping[Path, str]) -> set[str]:
    """The classes that say what was found, by name."""
    return {
        node.name
        for text in code.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and node.name.endswith(FOUND)
    }


def _choices(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and _name(node.value) == "Literal":
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ClassDef) and any(_name(e).endswith("Enum") for e in node.bases):
            yield node.name


def _stated(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for field in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(field, ast.AnnAssign) and _name(field.target) in STATED:
                yield _name(field.annotation)


def _names(tree: ast.Module) -> Iterator[str]:
    """What a module imports by name, also for type checkers alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)


def _origin(tree: ast.Module, name: str, own: str) -> str:
    """The module from which a name is imported; its own for any other."""
    modules = (
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        if any(name == (each.asname or each.name) for each in node.names)
    )
    return next(modules, own).rpartition(".")[2]


def _name(node: ast.expr) -> str:
    """The name of a type without what stands in brackets; empty for what has none."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.id if isinstance(node, ast.Name) else ""
