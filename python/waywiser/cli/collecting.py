"""When Python's garbage collector may work."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

LASTING = ("survey",)
"""Verbs that may run for hours. All others end soon and keep most of what they read until then:
looking through it for garbage, again and again, would take up to a third of their time."""


@contextmanager
def collecting_if_lasting(arguments: Sequence[str]) -> Iterator[None]:
    """Around a command line: without the collector, unless its verb is one of `LASTING`."""
    was = gc.isenabled()
    if was and not set(LASTING) & set(arguments[:1]):
        gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
