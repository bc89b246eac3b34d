"""The build backend: scikit-build-core, plus a CUDA compiler where the machine has none.

A build in isolation asks for the pinned CUDA toolkit from the package registry only when no system
toolkit is new enough and CUDA was not switched off; so a machine with its own toolkit downloads
nothing, and one without any can still build.
"""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from typing import Any

from scikit_build_core import build as _core
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

import cuda_toolkit

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """scikit-build-core's wheel, after a line that says what takes the time."""
    _announce(config_settings)
    return _core.build_wheel(wheel_directory, config_settings, metadata_directory)


def _announce(config_settings: dict[str, Any] | None) -> None:
    """Says on the terminal what is compiled, since pip shows none of it without -v."""
    if cuda_toolkit.switched_off(config_settings):
        what = "C++ for the host alone"
    else:
        found = cuda_toolkit.local_architectures()
        local = found.replace("-real", "").replace("-virtual", " (PTX)")
        what = f"C++ and CUDA, by default for the GPUs of this machine: {local}"
    with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:
        terminal.write(f"\nwaywiser: compiling {what}; 'pip install -v' shows each file\n")


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """CMake and Ninja where the system's are absent or too old, and CUDA likewise."""
    _check_python()
    return [
        *_core.get_requires_for_build_wheel(config_settings),
        *cuda_toolkit.requirements(config_settings),
    ]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The same as for a wheel."""
    _check_python()
    return [
        *_core.get_requires_for_build_editable(config_settings),
        *cuda_toolkit.requirements(config_settings),
    ]


def _check_python() -> None:
    """Exits with one line, which pip shows, for a Python that is too old or without glibc.

    Otherwise pip would first fetch a compiler and all packages that Waywiser needs.
    """
    if sys.version_info < (3, 11):
        found = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"Waywiser needs Python 3.11 or later, and this is Python {found}: install it with a "
            "later one, such as 'python3.12 -m pip install .'"
        )
    if "musl" in str(sysconfig.get_config_var("SOABI")):
        raise SystemExit(
            "Waywiser needs glibc, and this Python is one of musl (Alpine): install it on a "
            "distribution with glibc, or in a container of one"
        )
