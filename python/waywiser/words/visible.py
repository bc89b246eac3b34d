"""Text from files that anyone may have made, fit to be shown."""

from __future__ import annotations

import re

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for tab and line feed, and those that turn the direction of a text."""


def visible(text: str) -> str:
    """The text without what would steer the terminal that shows it, or show it otherwise than it
    is."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


LONGEST_QUOTE = 300
"""Characters of a quoted text that is shown whole: more hides the rest of a message."""
LONGEST_WORD = 5000
"""The longest path of a file on Linux, of 4,096 characters, is shown whole."""
_KEPT = 100
_QUOTE = re.compile(r"""(?<!\w)(['"])(.+?)\1(?!\w)""", re.DOTALL)
_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def with_short_quotes(text: str) -> str:
    """The text with the middle left out of each quoted text of more than `LONGEST_QUOTE`
    characters, and of each word of more than `LONGEST_WORD`."""

    def shortened(found: re.Match[str]) -> str:
        quote, inside = found.groups()
        if len(inside) <= LONGEST_QUOTE:
            return found[0]
        return f"{quote}{inside[:_KEPT]}…{inside[-_KEPT:]}{quote}"

    text = _QUOTE.sub(shortened, text)
    return _WORD.sub(lambda found: f"{found[0][:_KEPT]}…{found[0][-_KEPT:]}", text)
