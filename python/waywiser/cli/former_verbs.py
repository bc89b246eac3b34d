"""Verbs of earlier versions, and what is written instead."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence


def _check(words: Sequence[str]) -> list[str]:
    return ["check", *words]


def _normal(words: Sequence[str]) -> list[str]:
    if "--as-rows" in words:
        at = words.index("--as-rows")
        others = [*words[:at], *words[at + 2 :]]
        return ["export", *others, "--for", "normal-values", "--source", *words[at + 1 : at + 2]]
    if all(word.startswith("-") for word in words):
        return ["list", "--normal", *words]
    return ["check", *words]


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
