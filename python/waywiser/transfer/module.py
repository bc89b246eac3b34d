"""Finds the native module of the transfer calls and loads it."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from waywiser.errors import WaywiserError

MODULE_VARIABLE = "WAYWISER_TRANSFER_NATIVE"
"""Names another module with the same contents; the tests set it to the one over the fake GPU."""


class TransferModuleError(WaywiserError, ImportError):
    """The native module of the transfer calls is missing or does not load."""


if TYPE_CHECKING:
    from waywiser import _transfer as native
else:
    _name = os.environ.get(MODULE_VARIABLE) or "waywiser._transfer"
    try:
        native = importlib.import_module(_name)
    except ImportError as error:
        raise TransferModuleError(
            f"the transfer library does not load: {error}",
            where=_name,
            remedy="build it with 'make survey' or install the wheel again",
        ) from error

__all__ = ["MODULE_VARIABLE", "TransferModuleError", "native"]
