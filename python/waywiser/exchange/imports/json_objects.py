"""JSON objects in a text: alone, one after the other, or between lines of other programs."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from waywiser.exchange.imports.foreign_file import (
    DuplicateKey,
    Malformed,
    parse_json,
    without_duplicates,
)

_BEGIN = re.compile(r"^[^\S\n]*\{", re.MULTILINE)
_NEXT = re.compile(r"[ \t,]*\{")
"""The beginning of an object right after another one."""
_DECODER = json.JSONDecoder(object_pairs_hook=without_duplicates)

MOST_TRIES = 1_000
"""Beginnings that are tried and are no object: each may cost a look at the whole rest."""


class JsonObjects(NamedTuple):
    values: tuple[tuple[int, dict[str, Any]], ...]
    """(line of its beginning, object)"""
    errors: tuple[Malformed, ...]
    """What begins as an object and does not end as one."""


def json_objects(text: str, where: str) -> JsonObjects:
    """Every object of the text that begins a line, or right after another one, in order, whatever
    stands between them.

    An object within one that is damaged is returned, too: the caller knows which it needs. Of a
    damaged one only the outermost beginning is an error.
    """
    values: list[tuple[int, dict[str, Any]]] = []
    errors: list[Malformed] = []
    position = tries = line = counted = 0
    reported = -1
    if "{" not in text:
        return JsonObjects((), ())
    ended = False
    while tries < MOST_TRIES and (
        begin := (ended and _NEXT.match(text, position)) or _BEGIN.search(text, position)
    ):
        start = begin.end() - 1
        line += text.count("\n", counted, start)
        counted = start
        try:
            value, position = _DECODER.raw_decode(text, start)
            values.append((line + 1, value))
            ended = True
        except (ValueError, RecursionError, DuplicateKey):
            tries += 1
            ended = False
            position = start + 1
            if reported != len(values) or not errors:
                reported = len(values)
                errors += _error(text[start:], where, line)
    return JsonObjects(tuple(values), tuple(errors))


def _error(rest: str, where: str, line: int) -> list[Malformed]:
    """Why the rest of a text is not one object, at the lines of the whole text."""
    try:
        parse_json("\n" * line + rest, where)
    except Malformed as error:
        return [error]
    return []
