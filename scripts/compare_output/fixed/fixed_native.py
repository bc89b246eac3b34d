"""The native library, real or over the fake GPU, on the machine of a stored hwloc XML."""

from __future__ import annotations

import importlib
import os
from typing import Any

_native = importlib.import_module(os.environ["COMPARE_OUTPUT_NATIVE"])


def hwloc_xml(file: str | None = None) -> str:
    """The stored XML in the place of that of the live machine."""
    if file is not None:
        return str(_native.hwloc_xml(file))
    with open(os.path.join(os.environ["COMPARE_OUTPUT_FIXED"], "hwloc.xml")) as stored:
        return stored.read()


def __getattr__(name: str) -> Any:
    return getattr(_native, name)
