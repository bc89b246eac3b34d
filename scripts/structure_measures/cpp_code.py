"""Code lines and function lengths of C++, by brackets: no compiler is needed."""

from __future__ import annotations

import re
from pathlib import Path

from structure_measures.python_code import Function

SUFFIXES = (".cpp", ".hpp", ".h")
"""Sources of C++."""

KERNELS = ".cu"
"""Sources of CUDA."""

COMMENT = r"//[^\n]*|/\*.*?\*/"
TEXT = r'R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\''
COMMENTS_AND_TEXTS = re.compile(rf"(?P<comment>{COMMENT})|{TEXT}", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)

SCOPE = re.compile(
    r"\bnamespace\b|\bextern\s*$|^[^()=]*\b(?:class|struct|union|enum)\b(?:\s*alignas\([^()]*\))?[^()=]*$"
)
"""What stands before a bracket that holds declarations."""

MEMBER = re.compile(r"(?<!:)[:,](?!:)\s*[\w:]+(<[^<>]*>)?\s*$")
"""What stands before the bracket of a member in the list of a constructor."""

VALUE = re.compile(r"=\s*[\w:<>]*\s*$")
"""What stands before the bracket of a value."""


def code_lines(text: str) -> int:
    """The lines that are more than a comment or blank."""
    code = COMMENTS_AND_TEXTS.sub(lambda m: _blank(m) if m["comment"] else m[0], text)
    return sum(1 for line in code.splitlines() if line.strip())


def bare_code(text: str) -> str:
    """The code with blanks for comments, texts and directives, in the same lines."""
    return DIRECTIVE.sub(_blank, COMMENTS_AND_TEXTS.sub(_blank, text))


def functions(text: str) -> list[Function]:
    """All functions that have a body, from the first line of the declaration to the last bracket.
    What is within a function, such as a lambda, belongs to it."""
    code = bare_code(text)
    found: list[Function] = []
    is_function: list[bool | None] = []  # of each open bracket; None for a scope
    start = 0
    for bracket in re.finditer(r"[;{}]", code):
        at = bracket.start()
        before = code[start:at]
        in_function = True in is_function
        if bracket[0] == "{":
            kind = False if in_function or False in is_function else _kind(before)
            is_function.append(kind)
            start = at + 1 if kind is None else start
        elif bracket[0] == "}":
            kind = is_function.pop() if is_function else None
            if kind:
                found.append(_function(code, start, at))
            start = start if kind is False else at + 1
        elif not in_function and before.count("(") == before.count(")"):
            start = at + 1
    return found


def _kind(before: str) -> bool | None:
    """Whether the bracket after ``before`` opens a function; None if it opens a scope."""
    declaration = re.sub(r"^\s*template\s*<[^{;]*?>(?=\s*(?:class|struct|union))", "", before)
    if SCOPE.search(declaration):
        return None
    is_open = before.count("(") > before.count(")")
    return "(" in before and not (is_open or VALUE.search(before) or MEMBER.search(before))


def _function(code: str, start: int, end: int) -> Function:
    start += len(code[start:end]) - len(code[start:end].lstrip())
    first = code.count("\n", 0, start) + 1
    name = code[start:end].partition("(")[0].split()[-1:]
    return Function("".join(name).lstrip("*&"), first, code.count("\n", start, end) + 1)


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def cpp_files(native: Path, suffixes: tuple[str, ...] = (*SUFFIXES, KERNELS)) -> list[Path]:
    """The sources of the library and its bindings; tests are not among them."""
    folders = (native / "include", native / "src")
    paths = {path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes}
    return sorted(paths)
