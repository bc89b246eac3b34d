"""Sizes in the texts of series and curves: as people read them, or left out."""

from __future__ import annotations

import re

from waywiser.words import format_bytes

_OF_TRANSFER = re.compile(
    r"( by [a-z0-9-]+(?:\[[^\]]*\])?(?: as [a-z]+\[[^\]]*\])?) of (\d+)\b( (?:[KMGT]i)?B)?"
)
_OF_SETTING = re.compile(r"(?<==)\d+(?=[,\]])")


def without_sizes(text: str) -> str:
    """A series' text as its curve's: ``by cpu of 1048576``, ``by cpu of 1 MiB`` as ``by cpu``."""
    return _OF_TRANSFER.sub(r"\1", text)


def with_sizes(text: str) -> str:
    """The sizes of transfers with units: ``by cpu of 1048576`` as ``by cpu of 1 MiB``."""

    def with_unit(match: re.Match[str]) -> str:
        return match[0] if match[3] else f"{match[1]} of {format_bytes(int(match[2]))}"

    return _OF_TRANSFER.sub(with_unit, text)


def with_units(settings: str) -> str:
    """``piece=28672`` as ``piece=28KiB``; what is no whole number of KiB stays as it is."""

    def unit(match: re.Match[str]) -> str:
        text = format_bytes(int(match[0]))
        return text.replace(" ", "") if not text.endswith(" B") else match[0]

    return _OF_SETTING.sub(unit, settings)
