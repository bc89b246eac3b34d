"""Which sizes a survey visits: lists and ranges of bytes, as people write them.

    8:1GiB          powers of two from 8 B to 1 GiB
    8:1GiB:4        four points per octave
    1KiB,1MiB,8:64  a list of any of these

The ends of a range are always among its sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from waywiser.curves.regimes import BANDWIDTH_BYTES
from waywiser.words import DecimalUnit, WaywiserError, WordError, parse_bytes, whole_number

DEFAULT = "8:1GiB"
"""Latency ends near 8 B and every known path is saturated at 1 GiB."""

GROWING = 64 * 2**20
"""Above this a size is visited only while the rate still grows (see
`waywiser.measure.plan.schedule`)."""

LATENCY_BELOW = 64 * 2**10
"""The time of smaller sizes is mostly latency."""

SMALL_BYTES = 4096
"""Up to here a time shows the latency."""

NEIGHBOURS = 2
"""Sizes of a sweep differ by at most this factor. What lies between others was not measured, and no
figure draws a line there."""

MOST_POINTS = 64
"""Points per octave: neighbours would differ by 1 %, which is as fine as a median is stated."""

ALIGNMENT = 8
"""Points between powers of two are rounded to it from 64 B up, so that no size is awkward."""


class SizesError(WaywiserError, ValueError):
    """A text that names no sizes."""


def parse_sizes(text: str) -> tuple[int, ...]:
    """The sizes in bytes that ``text`` names, ascending, each once.

    Raises `SizesError` naming the piece that is wrong.
    """
    sizes: set[int] = set()
    for piece in text.split(","):
        try:
            sizes.update(_parse_piece(piece.strip()))
        except WordError as error:
            usual = "write 8:1GiB, 8:1GiB:4 (points per octave) or 1KiB,1MiB"
            remedy = error.remedy if isinstance(error, DecimalUnit) else usual
            raise SizesError(f"--sizes {text!r}: {error.what}", remedy=remedy) from error
    return tuple(sorted(sizes))


def _parse_piece(piece: str) -> tuple[int, ...]:
    parts = piece.split(":")
    if len(parts) > 3:
        raise WordError(f"{piece!r} has too many colons")
    low = _positive(parts[0])
    if len(parts) == 1:
        return (low,)
    high = _positive(parts[1])
    if high < low:
        raise WordError(f"{piece!r} ends below its start")
    return size_range(low, high, _points(parts[2]) if len(parts) == 3 else 1)


def _positive(text: str) -> int:
    size = parse_bytes(text)
    if size == 0:
        raise WordError("a size of 0 bytes moves nothing")
    return size


def _points(text: str) -> int:
    points = whole_number(text, MOST_POINTS)
    if not points:
        raise WordError(f"{text!r} is not a number of points per octave from 1 to {MOST_POINTS}")
    return points


def size_range(low: int, high: int, points_per_octave: int = 1) -> tuple[int, ...]:
    """``low``, then ``points_per_octave`` steps to each doubling, then ``high``; ascending.

    Doublings of ``low`` are exact; points between them are rounded to whole multiples of
    `ALIGNMENT` bytes where that is fine enough.
    """
    sizes = {low, high}
    steps = math.ceil(math.log2(high / low) * points_per_octave)
    for step in range(steps + 1):
        octave, fraction = divmod(step, points_per_octave)
        exact = low * 2**octave * 2 ** (fraction / points_per_octave)
        unit = ALIGNMENT if fraction and exact >= 8 * ALIGNMENT else 1
        size = round(exact / unit) * unit
        if low <= size <= high:
            sizes.add(size)
    return tuple(sorted(sizes))


def joined(sizes: Sequence[int]) -> list[slice]:
    """The parts of ascending ``sizes`` that a line may join: neighbours of a sweep, two or more."""
    found, first = [], 0
    for n in range(1, len(sizes) + 1):
        if n == len(sizes) or sizes[n] > NEIGHBOURS * sizes[n - 1]:
            if n - first > 1:
                found.append(slice(first, n))
            first = n
    return found


def thin(sizes: tuple[int, ...], octaves: int, largest: int = GROWING) -> tuple[int, ...]:
    """The top one of the ``sizes`` up to ``largest``, and those at least ``octaves`` below the one
    kept before; all above ``largest`` are dropped."""
    kept: list[int] = []
    for size in sorted((s for s in sizes if s <= largest), reverse=True):
        if not kept or size * 2**octaves <= kept[-1]:
            kept.append(size)
    return tuple(reversed(kept))


def representative_sizes(sizes: Iterable[int], bandwidth: int = BANDWIDTH_BYTES) -> frozenset[int]:
    """The size nearest to ``bandwidth``, the smaller one of two, and the smallest one if it shows
    the latency."""
    known = sorted(sizes)
    if not known:
        return frozenset()
    nearest = min(known, key=lambda size: abs(math.log2(max(size, 1) / bandwidth)))
    return frozenset((nearest, known[0] if known[0] < LATENCY_BELOW else nearest))
