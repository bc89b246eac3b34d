"""How grave something is that was found: of a machine before measuring, or of what was measured."""

from __future__ import annotations

from typing import Literal

from waywiser.words.errors import WordError

Severity = Literal["info", "warning", "error"]
"""``info`` explains a number; ``warning`` makes a machine or a number worse or less certain;
``error`` says that something is broken, or prevents a measurement."""

ORDER: tuple[Severity, ...] = ("info", "warning", "error")


def parse_severity(text: str) -> Severity:
    """The severity of that name. Raises `WordError` for anything else."""
    for severity in ORDER:
        if text == severity:
            return severity
    raise WordError(f"{text!r} is no severity", remedy=f"write {' or '.join(ORDER)}")


def is_at_least(severity: Severity, least: Severity) -> bool:
    """Whether it is as grave as ``least``, or graver."""
    return ORDER.index(severity) >= ORDER.index(least)
