"""Roots of packages that have the usual names of their modules, and import a module when a name of
it is first used: what needs one name waits for no other module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path


def lazy_root(package: str) -> Callable[[str], object]:
    """The ``__getattr__`` (PEP 562) of a package. Its root imports the names for type checkers
    alone, and this reads there which module has which name: they are stated once."""

    @cache
    def modules() -> dict[str, str]:
        found = ast.walk(ast.parse(Path(str(sys.modules[package].__file__)).read_text()))
        own = (each for each in found if isinstance(each, ast.ImportFrom))
        return {name.name: str(each.module) for each in own for name in each.names}

    def attribute(name: str) -> object:
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Not kept here: what a test replaces in the module is what is found.
        return getattr(import_module(modules()[name]), name)

    return attribute
