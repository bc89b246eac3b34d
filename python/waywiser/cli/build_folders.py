"""The places where CMake and pkg-config find the library, for ``waywiser --cmake-dir`` and
``--pkg-config-dir``."""

from __future__ import annotations

from pathlib import Path

CMAKE = "--cmake-dir"
PKG_CONFIG = "--pkg-config-dir"

_LIBRARIES = Path(__file__).parent.parent / "lib"
_FILES = {
    CMAKE: _LIBRARIES / "cmake" / "waywiser" / "waywiserConfig.cmake",
    PKG_CONFIG: _LIBRARIES / "pkgconfig" / "waywiser-transfer.pc",
}


def folder(option: str) -> Path | None:
    """The folder that the option prints; None if it is no such option, and if the library was not
    built or installed."""
    file = _FILES.get(option)
    return file.parent if file is not None and file.exists() else None


def require_folder(option: str) -> Path:
    """The same. Raises `WaywiserError` if there is none."""
    from waywiser.words import WaywiserError

    found = folder(option)
    if found is None:
        raise WaywiserError(
            f"{_FILES[option]} does not exist",
            remedy="build the library with 'make survey' or install the wheel again",
        )
    return found
