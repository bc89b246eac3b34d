"""Verbs of earlier versions, and what is written instead."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence


def _check(words: Sequence[str]) -> list[str]:
    return ["check", *words]


def _normal(words: Sequence[str]) -> list[str]:
    words = [part for word in words for part in _parted(word)]
    if "--as-rows" in words:
        at = words.index("--as-rows")
        others = [*words[:at], *words[at + 2 :]]
        return ["export", *others, "--for", "normal-values", "--source", *words[at + 1 : at + 2]]
    tables = {at + 1 for at, word in enumerate(words) if word == "--values"}
    files = [word for at, word in enumerate(words) if word[:1] != "-" and at not in tables]
    return ["check", *words] if files else ["list", "--normal", *words]


def _parted(word: str) -> list[str]:
    """``--values FILE`` of ``--values=FILE``."""
    name, equals, value = word.partition("=")
    return [name, value] if equals and name.startswith("--") else [word]


FORMER: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "fleet": _check,
    "history": _check,
    "normal": _normal,
}
"""The command of today for the words behind a former verb."""


def command_of_today(words: Sequence[str]) -> str:
    """``waywiser check nodes`` of ``fleet nodes``; empty if the verb is one of today."""
    if not words or words[0] not in FORMER:
        return ""
    return shlex.join(["waywiser", *FORMER[words[0]](words[1:])])
