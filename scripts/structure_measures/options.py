"""The places where an option of a survey is stated: declared, named as a text, or passed on.

Reading an option is no place: only what would have to be written again for another option is one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

NOT_THE_OPTION = {"Plan"}
"""Classes that have a field of the name for something else: a plan has the deadline of its preset
if the option was not given."""


def places(text: str, option: str) -> list[int]:
    """The lines of the parameters with a default, the fields with a default, the keyword arguments
    and the texts that state an option. A place within another one is not counted."""
    tree = ast.parse(text)
    optional = {
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for each in _parameters_with_default(node)
    }

    def visit(node: ast.AST) -> Iterator[int]:
        if _is_named(node, option, optional):
            yield node.lineno  # type: ignore[attr-defined]
        elif not _is_of_another(node):
            for child in ast.iter_child_nodes(node):
                yield from visit(child)

    return sorted(visit(tree))


def _is_named(node: ast.AST, option: str, optional: set[ast.arg]) -> bool:
    names = {option, f"{option}_seconds"}
    if isinstance(node, ast.arg):
        return node.arg in names and node in optional
    if isinstance(node, ast.keyword):
        return node.arg in names
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.target.id in names and bool(node.value)
    return isinstance(node, ast.Constant) and node.value in (option, f"--{option}")


def _parameters_with_default(arguments: ast.arguments) -> Iterator[ast.arg]:
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from positional[len(positional) - len(arguments.defaults) :]
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield each


def _is_of_another(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in NOT_THE_OPTION
    return isinstance(node, ast.ClassDef) and node.name in NOT_THE_OPTION
