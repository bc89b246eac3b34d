"""Sizes in the texts of series and curves: as people read them, or left out."""

from __future__ import annotations

import re

from waywiser.words.errors import WordError
from waywiser.words.sizes import format_bytes, parse_bytes

_OF_TRANSFER = re.compile(
    r"( by [a-z0-9-]+(?:\[[^\]]*\])?(?: as [a-z]+\[[^\]]*\])?) of ([0-9]{1,20})\b( (?:[KMGT]i)?B)?"
)
_BYTES = "block|bytes|chunk|piece|pitch|stride|width"
"""Settings whose values are bytes; those of others are counts."""

_OF_SETTING = re.compile(rf"\b({_BYTES})=([0-9]{{1,20}})(?=[,\]]|$)")

_WITH_UNIT = re.compile(
    rf"(\b(?:{_BYTES})=|\bof )([0-9]{{1,20}} ?(?:[kmgt]i)?b)(?![\w.])", re.IGNORECASE
)


def without_sizes(text: str) -> str:
    """A series' text as its curve's: ``by cpu of 1048576``, ``by cpu of 1 MiB`` as ``by cpu``."""
    return _OF_TRANSFER.sub(r"\1", text)


def with_sizes(text: str) -> str:
    """All sizes with units: ``by cpu of 1048576`` as ``by cpu of 1 MiB``, and those of settings as
    `with_units` has them."""

    def with_unit(match: re.Match[str]) -> str:
        return match[0] if match[3] else f"{match[1]} of {format_bytes(int(match[2]))}"

    return with_units(_OF_TRANSFER.sub(with_unit, text))


def with_units(settings: str) -> str:
    """``piece=28672`` as ``piece=28KiB``; what is no whole number of KiB stays as it is."""

    def unit(match: re.Match[str]) -> str:
        text = format_bytes(int(match[2]))
        return f"{match[1]}={text.replace(' ', '')}" if not text.endswith(" B") else match[0]

    return _OF_SETTING.sub(unit, settings)


def without_units(pattern: str) -> str:
    """The sizes of a text as numbers of bytes, as texts of series have them: ``piece=28KiB`` as
    ``piece=28672``, ``of 64 MiB`` as ``of 67108864``."""

    def in_bytes(match: re.Match[str]) -> str:
        try:
            return f"{match[1]}{parse_bytes(match[2])}"
        except WordError:
            return match[0]

    return _WITH_UNIT.sub(in_bytes, pattern)


def size_of(series: str) -> str:
    """The size of a series as people read it, from its text: ``1 MiB``, of several equal transfers
    ``2 × 1 MiB``, of others what they are together; empty without bytes."""
    size, transfers = _size_and_number(series)
    if not size:
        return ""
    return f"{transfers} × {format_bytes(size)}" if transfers > 1 else format_bytes(size)


def bytes_of_each(series: str) -> int:
    """Bytes of each of several equal transfers, from the text of a series; of others together."""
    return _size_and_number(series)[0]


def _size_and_number(series: str) -> tuple[int, int]:
    sizes = [int(match[2]) for match in _OF_TRANSFER.finditer(series)]
    if len(set(sizes)) == 1:
        return sizes[0], len(sizes)
    return sum(sizes), 1
