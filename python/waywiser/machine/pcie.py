"""PCI Express: what a generation and a width can carry at best."""

from __future__ import annotations

import re
from typing import NamedTuple

from waywiser.words import count


class Generation(NamedTuple):
    """Transfers per second of one lane, and how much of them is payload after line encoding.

    PCI Express Base Specification: 8b/10b in revisions 1 and 2, 128b/130b in 3 to 5, flits with
    236 bytes of transaction layer payload and 6 of link layer in 256 in revision 6.
    """

    gt_per_s: float
    payload: int
    coded: int


GENERATIONS = {
    1: Generation(2.5, 8, 10),
    2: Generation(5.0, 8, 10),
    3: Generation(8.0, 128, 130),
    4: Generation(16.0, 128, 130),
    5: Generation(32.0, 128, 130),
    6: Generation(64.0, 242, 256),
}


def bytes_per_second(generation: int, width: int) -> float:
    """One direction, line encoding subtracted, packet headers not; 0 if unknown."""
    if generation not in GENERATIONS or width <= 0:
        return 0.0
    rate = GENERATIONS[generation]
    return width * rate.gt_per_s * 1e9 * rate.payload / rate.coded / 8


def describe(generation: int, width: int) -> str:
    """``PCIe 5 x16: 16 lanes × 32 GT/s × 128/130 / 8 = 63.0 GB/s``."""
    rate = GENERATIONS[generation]
    return (
        f"PCIe {generation} x{width}: {count(width, 'lane')} × {rate.gt_per_s:g} GT/s × "
        f"{rate.payload}/{rate.coded} / 8 = {bytes_per_second(generation, width) / 1e9:.1f} GB/s"
    )


def generation_of_speed(text: str | None) -> int:
    """The generation of the kernel's ``32.0 GT/s PCIe``; 0 for ``Unknown`` or nothing."""
    match = re.match(r"([\d.]+) GT/s", text or "")
    if match is None:
        return 0
    speed = float(match[1])
    return next((number for number, rate in GENERATIONS.items() if rate.gt_per_s == speed), 0)
