"""The place where CMake finds the library, for ``waywiser --cmake-dir``."""

from __future__ import annotations

from pathlib import Path

OPTION = "--cmake-dir"

_FOLDER = Path(__file__).parent.parent / "lib" / "cmake" / "waywiser"


def folder() -> Path | None:
    """The folder of ``waywiserConfig.cmake``; None if the library was not built or installed."""
    return _FOLDER if (_FOLDER / "waywiserConfig.cmake").exists() else None


def require_folder() -> Path:
    """The same. Raises `WaywiserError` if there is none."""
    from waywiser.words import WaywiserError

    found = folder()
    if found is None:
        raise WaywiserError(
            f"{_FOLDER} does not exist",
            remedy="build the library with 'make survey' or install the wheel again",
        )
    return found
