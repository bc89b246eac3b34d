"""Escapes text from untrusted files, so that a terminal or a page can show it."""

from __future__ import annotations

import re

import msgspec

from waywiser.words.value import json_bytes

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for tab and line feed, and those that turn the direction of a text."""


def visible(text: str) -> str:
    """The text without what would steer the terminal that shows it, or show it otherwise than it
    is."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


_SPACES = re.compile(r"[\t-\r\x1c-\x1e\x85\u2028\u2029]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")


def single_line(text: str) -> str:
    """The same in one line: a line feed in it would end a row or a message, and begin another."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", _SPACES.sub(" ", text))


def single_line_json(text: str) -> str:
    """JSON with each of its texts as `single_line` makes it."""
    text = single_line(text)
    return _ESCAPE.sub(_single_line_escape, text) if "\\" in text else text


def escaped_json(text: str) -> str:
    """JSON that means the same, with escapes for what would steer the terminal that shows it."""
    return _UNSEEN.sub(lambda c: f"\\u{ord(c[0]):04x}", text)


def pretty_json(document: object) -> str:
    """A document in several lines, escaped likewise."""
    text = msgspec.json.format(json_bytes(document), indent=2)
    return escaped_json(text.decode()) + "\n"


def _single_line_escape(found: re.Match[str]) -> str:
    code, letter = found.groups()
    if code is None:
        return {"b": "", "f": " ", "n": " ", "r": " ", "t": " "}.get(letter, found[0])
    character = chr(int(code, 16))
    kept = single_line(character)
    return found[0] if kept == character else kept


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
