"""The build backend: scikit-build-core, plus a CUDA compiler where the machine has none.

A build in isolation asks for the pinned CUDA toolkit from the package registry only when no system
toolkit is new enough and CUDA was not switched off; so a machine with its own toolkit downloads
nothing, and one without any can still build.
"""

from __future__ import annotations

from typing import Any

from scikit_build_core import build as _core
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    build_wheel,
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


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """CMake and Ninja where the system's are absent or too old, and CUDA likewise."""
    return [
        *_core.get_requires_for_build_wheel(config_settings),
        *cuda_toolkit.requirements(config_settings),
    ]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The same as for a wheel."""
    return [
        *_core.get_requires_for_build_editable(config_settings),
        *cuda_toolkit.requirements(config_settings),
    ]
