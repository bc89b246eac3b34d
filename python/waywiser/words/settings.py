"""Settings as text: ``[key=value,key=value]``, behind the word that they are of."""

from __future__ import annotations

import re

from waywiser.words.errors import WordError

_IN_KEY = r"!-+\--<>-Z\\^-~"
"""Visible ASCII characters but for those that end a key or a setting."""

_SETTING = re.compile(rf"([{_IN_KEY}]+) *= *([{_IN_KEY}=]+)")
_WORD_WITH_SETTINGS = re.compile(r" *([a-z][a-z0-9-]*) *(\[[^\[\]]*\])? *")


def format_settings(settings: dict[str, str]) -> str:
    """``{"b": "2", "a": "1"}`` as ``[a=1,b=2]``; nothing for no settings."""
    if not settings:
        return ""
    return "[" + ",".join(f"{key}={settings[key]}" for key in sorted(settings)) + "]"


def parse_settings(text: str) -> dict[str, str]:
    """The inverse of `format_settings`; accepts the text with or without its brackets."""
    body = text.strip().removeprefix("[").removesuffix("]").strip()
    settings: dict[str, str] = {}
    for item in filter(None, (piece.strip() for piece in body.split(","))):
        match = _SETTING.fullmatch(item)
        if match is None:
            raise WordError(f"{item!r} is not a setting", remedy="write KEY=VALUE")
        key, value = match.groups()
        if key in settings:
            raise WordError(f"{key!r} is set twice in {text!r}")
        settings[key] = value
    return settings


def parse_word(text: str, what: str) -> tuple[str, dict[str, str]]:
    """A word, and the settings behind it. Raises `WordError`."""
    match = _WORD_WITH_SETTINGS.fullmatch(text.strip())
    if match is None:
        raise WordError(f"{text!r} is not {what}", remedy="write WORD or WORD[KEY=VALUE,...]")
    return match[1], parse_settings(match[2] or "")
