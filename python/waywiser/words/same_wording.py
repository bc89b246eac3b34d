"""Texts of one wording: texts that differ in one word."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

LEAST_ALIKE = 3
"""Texts of one wording from which on they are one line."""


def by_wording(texts: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(line, texts) for each wording, in the order of its first text.

    At least `LEAST_ALIKE` texts that differ in one word alone are one line, which names the first
    of these words and counts the others. All other texts are lines of their own.
    """
    words = {text: text.split() for text in texts}
    members: dict[Hashable, list[str]] = {}
    for text, own in words.items():
        for key in _keys(own):
            members.setdefault(key, []).append(text)
    lines: list[tuple[str, list[str]]] = []
    done: set[str] = set()
    for text, own in words.items():
        if text in done:
            continue
        alike = [(key, [e for e in members[key] if e not in done]) for key in _keys(own)]
        key, found = max(alike, key=lambda each: len(each[1]), default=((0, ()), [text]))
        if len(found) < LEAST_ALIKE:
            found, line = [text], text
        else:
            at = key[0]
            word = own[at].rstrip(",:;")
            end = own[at][len(word) :]
            several = f"{word} and {len(found) - 1} others{end}"
            line = " ".join([*own[:at], several, *own[at + 1 :]])
        lines.append((line, found))
        done.update(found)
    return lines


def _keys(own: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """The wordings of a text, each with the place of the word that may be another one."""
    return [(at, (*own[:at], "", *own[at + 1 :])) for at in range(len(own))]
