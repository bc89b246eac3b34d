"""The choice of consumers that have one switch for all pieces: kernel or copy engine.

The switch depends on the bytes of one piece, which depend on the model. Without them the file
shows the choice for each measured size and sets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.exchange.settings.list_methods import (
    KernelAndEngine,
    ListDirection,
    kernels_and_engines,
)
from waywiser.exchange.settings.origin import longer_text
from waywiser.words import format_bytes

MOST_FACTOR = 2.0
"""A measured size that differs from the pieces of the user by a larger factor decides nothing."""


class SwitchChoice(NamedTuple):
    """What is chosen, and why."""

    kernel: bool | None
    """None if it cannot be decided."""
    reason: str
    found: Sequence[KernelAndEngine]
    """The lists that decide."""


def choose(direction: ListDirection | None, piece: int, *engine_calls: str) -> SwitchChoice:
    """The method that loses less at the measured sizes next to ``piece`` bytes."""
    found = kernels_and_engines(direction.cells, *engine_calls) if direction is not None else []
    if not found:
        return SwitchChoice(
            None, "no list was moved by both a kernel and this copy-engine call", ()
        )
    if not piece:
        return SwitchChoice(
            None, "it depends on the bytes of a piece; name them with --piece", found
        )
    sizes = sorted({each.cell.piece for each in found})
    near = min(sizes, key=lambda size: max(size / piece, piece / size))
    if max(near / piece, piece / near) > MOST_FACTOR:
        reason = f"pieces of about {format_bytes(piece)} were not measured"
        return SwitchChoice(None, f"{reason}; the nearest are of {format_bytes(near)}", found)
    decisive = [each for each in found if each.cell.piece == near]
    losses = {kernel: max(d.loss(kernel) for d in decisive) for kernel in (True, False)}
    kernel = losses[True] < losses[False]
    return SwitchChoice(
        kernel,
        f"at pieces of {format_bytes(near)} it takes {longer_text(losses[kernel], 'the other')}; "
        f"the other takes {longer_text(losses[not kernel], 'it')}",
        decisive,
    )
