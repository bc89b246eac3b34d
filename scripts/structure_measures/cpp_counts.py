"""The types, mutexes, waits and deciders of C++, by patterns: no compiler is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structure_measures.cpp_code import bare_code, functions

TYPE = re.compile(
    r"\b(?P<kind>enum|class|struct)\b(?:\s+(?:class|struct)\b)?"
    r"(?:\s*alignas\([^()]*\)|\s*\[\[[^\[\]]*\]\])*"
    r"\s*(?P<name>[\w:]*\w)?(?:\s+final)?(?:\s*:(?!:)[^;{}()]*)?\s*\{"
)
"""The definition of a type up to its bracket. A specialisation is none: ``<`` follows its name."""

MUTEX = re.compile(
    r"(?<![\w:])(?<!\bclass\s)(?<!\bstruct\s)(?:\w+::)*\w*[Mm]utex\s+"
    r"(?P<names>\w+(?:\s*,\s*\w+)*)\s*[;{=\[]"
)
"""The declaration of variables whose type is a mutex; a lock of one has it in its brackets."""

PAUSE = re.compile(r"\b(?:sleep_for|sleep_until|yield|relax)\s*\(")
LOCK = re.compile(r"\bunique_lock\b(?:\s*<[^<>]*>)?\s*&?\s*(\w+)")
WAIT = re.compile(r"(?:\.|->)wait(?:_for|_until)?\(\s*(\w+)")

METHOD = re.compile(r"(?:\w+::)*\w*(?:Method|Choice|Decision|Plan)::(?!k[A-Z])[a-z]\w*\b(?!\s*\()")
"""A value of an enumeration that names methods, which the end of the name of its type, or of the
type around that one, says. A function or a constant of such a type is no value."""

COMPARED_BEFORE = re.compile(r"(?:[=!]=|\bcase)\s*$")
COMPARED_AFTER = re.compile(r"\s*[=!]=")


def types(text: str) -> list[tuple[str, str]]:
    """The kind and the name of each class, structure and enumeration that is defined, also within
    another one or within a function. Aliases and unions are none."""
    return [(found["kind"], found["name"] or "") for found in TYPE.finditer(bare_code(text))]


def mutexes(text: str) -> list[str]:
    """The names of all variables whose type has a name that ends in ``mutex`` or ``Mutex``."""
    found = (re.split(r"\s*,\s*", each["names"]) for each in MUTEX.finditer(bare_code(text)))
    return [name for names in found for name in names]


def waits(text: str) -> list[str]:
    """The names of the functions that sleep, yield or relax the CPU, or that wait for a condition
    variable: that is called with the name of a ``unique_lock`` of the function."""
    return [name for name, body in _functions(text) if _waits(body)]


def deciders(text: str) -> list[str]:
    """The names of the functions that give a value of an enumeration of methods to something: they
    return it, assign it or pass it on. To compare with it is to follow a decision."""
    return [name for name, body in _functions(text) if any(_values(body))]


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Each function with its lines."""
    code = bare_code(text)
    lines = code.splitlines()
    for each in functions(code):
        yield each.name, "\n".join(lines[each.line - 1 : each.line - 1 + each.lines])


def _waits(body: str) -> bool:
    locks = set(LOCK.findall(body))
    return bool(PAUSE.search(body)) or not locks.isdisjoint(WAIT.findall(body))


def _values(body: str) -> Iterator[str]:
    for found in METHOD.finditer(body):
        before, after = body[: found.start()], body[found.end() :]
        if not COMPARED_BEFORE.search(before) and not COMPARED_AFTER.match(after):
            yield found[0]
