"""The Python modules are compiled for the stable ABI from Python 3.12 on, and without it for 3.11.
What a build for 3.11 alone takes is found here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "native" / "src"
OUTSIDE = re.compile(
    r"\bPy[A-Za-z]+_(?:AS|GET|SET)_[A-Z]+\b"  # macros that look into objects
    r"|->tp_|->ob_(?!base)"  # members of types and objects
    r"|\bPyObject_CallOneArg\b|\bPyObject_CallMethod(?:NoArgs|OneArg)\b"
    r"|\bPyUnicode_(?:DATA|KIND|READ\w*|1BYTE_DATA)\b|\b_Py[A-Z]\w+"
)


def outside(text: str) -> list[str]:
    return OUTSIDE.findall(text)


@pytest.mark.parametrize(
    "file",
    sorted(
        file
        for folder in ("python", "python_transfer")
        for file in (SOURCES / folder).rglob("*.[ch]pp")
    ),
    ids=lambda file: file.name,
)
def test_a_module_uses_what_the_stable_abi_has(file: Path) -> None:
    code = re.sub(r"//.*", "", file.read_text())
    assert outside(code) == []


def test_what_is_outside_is_found() -> None:
    for text in ("PyBytes_AS_STRING(name)", "PyTuple_GET_ITEM(t, 0)", "PyMemoryView_GET_BUFFER(v)",
                 "Py_TYPE(object)->tp_name", "PyObject_CallOneArg(f, x)",
                 "PyUnicode_DATA(text)"):  # fmt: skip
        assert outside(text), text
    for text in ("PyBytes_AsString(name)", "Py_TYPE(object)", "PyBUF_FULL_RO", "PyObject_HEAD"):
        assert not outside(text), text
