"""Text from files that anyone may have made, fit to be shown."""

from __future__ import annotations

import re

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for tab and line feed, and those that turn the direction of a text."""


def visible(text: str) -> str:
    """The text without what would steer the terminal that shows it, or show it otherwise than it
    is."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)
