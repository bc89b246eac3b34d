"""Where NCCL is on this machine: a library that is loaded by workers alone, and only if an order
names it.

It is looked for in this order: ``--nccl``, ``WAYWISER_NCCL``, the folders of the system's loader,
the wheel ``nvidia-nccl-cu13`` or ``nvidia-nccl-cu12`` of the Python environment, and PyTorch.
Nothing is loaded to find it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from waywiser.words import WaywiserError

VARIABLE = "WAYWISER_NCCL"
"""Names the library to use."""

NAME = "libnccl.so.2"
REMEDY = f"pip install nvidia-nccl-cu13 (or -cu12), or name {NAME} with --nccl PATH"

LOADER_CACHE = "/etc/ld.so.cache"
_IN_CACHE = re.compile(rb"\0(/[^\0]*/libnccl\.so\.2)\0")

_IN_ENVIRONMENT = (
    ("nvidia/nccl/lib", "wheel"),
    ("nvidia/cu13/lib", "wheel"),
    ("torch/lib", "PyTorch"),
)
"""Folders below one of packages, and whose they are."""


class NcclError(WaywiserError):
    """A library that was named is not there."""


class NcclLibrary(NamedTuple):
    path: str
    found_by: str
    """``WAYWISER_NCCL``, ``system``, ``wheel`` or ``PyTorch``."""


class TriedNccl(NamedTuple):
    """The library that workers would load, after it was loaded; None if there is none."""

    library: NcclLibrary | None = None
    version: str = ""
    reason: str = ""
    """Why it does not load; empty if it does."""


def try_nccl(native: ModuleType) -> TriedNccl:
    """Loads the library into this process, by the native library, and asks for its version."""
    library = find_nccl()
    if library is None:
        return TriedNccl()
    try:
        return TriedNccl(library, native.nccl_version())
    except (native.NotSupported, native.NcclError) as error:
        return TriedNccl(library, reason=str(error))


def find_nccl(
    environment: Mapping[str, str] = os.environ,
    packages: Sequence[str] | None = None,
    cache: str = LOADER_CACHE,
) -> NcclLibrary | None:
    """The library that workers would load: that of `VARIABLE`, else `installed_nccl`."""
    if named := environment.get(VARIABLE, ""):
        return NcclLibrary(named, VARIABLE)
    return installed_nccl(environment, packages, cache)


def installed_nccl(
    environment: Mapping[str, str] = os.environ,
    packages: Sequence[str] | None = None,
    cache: str = LOADER_CACHE,
) -> NcclLibrary | None:
    """The library of the system or of a Python package; None if there is none. ``packages`` are
    the folders of Python packages; by default those of this process."""
    for path in _of_system(environment, cache):
        if os.path.exists(path):
            return NcclLibrary(path, "system")
    folders = sys.path if packages is None else packages
    for below, whose in _IN_ENVIRONMENT:
        for folder in folders:
            path = os.path.join(folder, below, NAME)
            if folder and os.path.exists(path):
                return NcclLibrary(path, whose)
    return None


def _of_system(environment: Mapping[str, str], cache: str) -> Iterator[str]:
    for folder in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if folder:
            yield os.path.join(folder, NAME)
    try:
        known = Path(cache).read_bytes()
    except OSError:
        return
    yield from dict.fromkeys(os.fsdecode(match) for match in _IN_CACHE.findall(known))


def use_nccl(path: str) -> None:
    """Names the library of ``--nccl`` for this process and those that it starts. Raises
    `NcclError`."""
    if not os.path.isfile(path):
        raise NcclError("there is no such library", where=path, remedy=f"name {NAME}")
    os.environ[VARIABLE] = os.path.abspath(path)
