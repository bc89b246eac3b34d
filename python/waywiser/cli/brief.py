"""How Python is set for a verb that ends soon, as all but a survey do."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

LASTING = ("survey", "cluster survey", "cluster join")
"""Verbs that may run for hours. The others keep most of what they read until they end: looking
through it for garbage, again and again, would take up to a third of their time."""

THREADS_VARIABLE = "OPENBLAS_NUM_THREADS"
"""Read when numpy is first imported. Linear algebra is small here, threads take time to start, and
if none can be started OpenBLAS interrupts the process (SIGINT)."""


@contextmanager
def brief_unless_lasting(arguments: Sequence[str], *, exits: bool = False) -> Iterator[None]:
    """Around a command line: without threads of numpy's, and without the garbage collector unless
    its verb is one of `LASTING`.

    If the process ``exits`` afterwards, whatever the verb, nothing is set back: the collector would
    look through everything once more, for a tenth of the whole time.
    """
    lasts = bool({*arguments[:1], " ".join(arguments[:2])} & {*LASTING})
    collects, ours = gc.isenabled(), THREADS_VARIABLE not in os.environ
    if not lasts:
        gc.disable()
    os.environ.setdefault(THREADS_VARIABLE, "1")
    try:
        yield
    finally:
        if exits:
            gc.freeze()
        elif collects:
            gc.enable()
        if ours:
            os.environ.pop(THREADS_VARIABLE, None)
