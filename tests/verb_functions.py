"""The functions of the package that verbs call."""

from __future__ import annotations

import keyword


def python_name(name: str) -> str:
    """``for_`` of ``--for``: as Python has the name of a verb or of an option."""
    plain = name.removeprefix("--").replace("-", "_").replace(" ", "_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def function_of(verb: str) -> str:
    """The name of the function of a verb."""
    return python_name(verb)
