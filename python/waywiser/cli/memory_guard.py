"""Ends a command whose memory is too small for numpy and scipy with an error that says so.

Under ``ulimit -v`` their OpenBLAS ends the process, or tries for ever, while it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_NEEDED = {"numpy": 144 * 2**20, "scipy": 112 * 2**20}
"""Bytes of address space that each takes when it is imported (measured: 75 MiB each), and at its
first product of matrices, for which OpenBLAS takes 32 MiB at a time."""


class _Guard:
    """A finder of modules that finds none, and is asked before all others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises `MemoryError` for a library for which not enough memory is left."""
        if name in _NEEDED:
            from waywiser.machine.met_limit import address_space_left

            left = address_space_left()
            if left is not None and left < _NEEDED[name]:
                raise MemoryError(f"{name} needs {_NEEDED[name]} bytes, and {left} are left")
        return None


def guard_memory() -> None:
    """From now on large libraries are imported only if there is memory for them. Does nothing
    without a limit."""
    import resource

    limits = map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if any(soft != resource.RLIM_INFINITY for soft, _ in limits):
        sys.meta_path.insert(0, _Guard())
