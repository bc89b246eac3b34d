"""Every module that answers a question is in the list of `all_answers`."""

from __future__ import annotations

import ast
from pathlib import Path

from waywiser.analysis.questions import all_answers

FOLDER = Path(all_answers.__file__).parent


def modules_with_an_answer() -> set[str]:
    """Modules of the folder that define ``answer``."""
    return {
        path.stem
        for path in FOLDER.glob("*.py")
        if any(
            isinstance(node, ast.FunctionDef) and node.name == "answer"
            for node in ast.parse(path.read_text()).body
        )
    }


def listed() -> list[str]:
    """Names in the list of `all_answers`, in the order of the report."""
    for node in ast.walk(ast.parse(Path(all_answers.__file__).read_text())):
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
            return [each.id for each in node.elts if isinstance(each, ast.Name)]
    return []


def test_each_module_that_answers_is_listed_once() -> None:
    names = listed()
    assert len(names) == len(set(names)) > 5
    assert set(names) == modules_with_an_answer()
