"""Packages that tables and figures are made for, and that need not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from waywiser.words import WaywiserError


class MissingPackage(WaywiserError, ImportError):
    """A package that was asked for cannot be imported."""


def optional(package: str, what: str) -> Any:
    """The package. Raises `MissingPackage`, alone, so that a notebook shows one traceback; ``what``
    says what needs it."""
    try:
        return import_module(package)
    except ImportError as error:
        why = f"cannot be imported: {' '.join(str(error).split())}"
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            why = "is not installed"
        raise MissingPackage(
            f"{what} needs {package}, which {why}", remedy=f"pip install {package}"
        ) from None
