"""Code lines and function lengths of Python."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Function(NamedTuple):
    """A function with all its lines, from its first line to its last."""

    name: str
    line: int
    lines: int


def code_lines(text: str) -> int:
    """The lines that are more than a comment, a docstring or blank."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code.difference(_docstring_lines(ast.parse(text))))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """The lines of texts that stand alone: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield from range(text.lineno, (text.end_lineno or text.lineno) + 1)


def functions(text: str) -> list[Function]:
    """All functions and methods, from the line of ``def`` to the last, with the docstring."""
    return [
        Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def entries(package: Path) -> list[str]:
    """The modules and packages directly in a package, the files ``__init__.py`` and ``__main__.py``
    too; stubs, data and built libraries are none."""
    return sorted(
        path.name
        for path in package.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    )
