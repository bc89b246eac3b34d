"""The door to the native library: loads it once, on first use, and says clearly when it cannot."""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType

from waywiser.machine.nccl_library import installed_nccl
from waywiser.words import WaywiserError

MODULE_VARIABLE = "WAYWISER_NATIVE"
"""Names another module with the same contents; the tests set it to the one over the fake GPU."""


class NativeError(WaywiserError):
    """The native library is missing or does not load."""


@cache
def load() -> ModuleType:
    """The native module (see ``_native.pyi``). Loads no GPU driver.

    Raises `NativeError` if it was not built or a shared library it needs is missing.
    """
    name = os.environ.get(MODULE_VARIABLE) or "waywiser._native"
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise NativeError(
            f"the native library does not load: {error}",
            where=name,
            remedy="build it with 'make survey' or install the wheel again",
        ) from error
    # The native library reads the variable that names another one when it needs it.
    if (nccl := installed_nccl()) is not None:
        module.use_nccl(nccl.path)
    return module


def build_text(library: ModuleType) -> str:
    """The runtime and the GPUs that the library was built for: ``CUDA runtime 13.0, machine code
    for 7.5, 9.0, PTX of 9.0``."""
    if not library.runtime_version:
        return "for the host alone, without CUDA"
    kinds: dict[str, list[str]] = {"real": [], "virtual": []}
    for architecture in library.architectures.split():
        number, _, kind = architecture.partition("-")
        kinds.get(kind, kinds["real"]).append(f"{number[:-1]}.{number[-1]}")
    parts = [f"CUDA runtime {library.runtime_version}"]
    for kind, text in (("real", "machine code for"), ("virtual", "PTX of")):
        if kinds[kind]:
            parts.append(f"{text} {', '.join(kinds[kind])}")
    return ", ".join(parts)
