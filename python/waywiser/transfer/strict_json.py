"""JSON objects from files that anyone may have made."""

from __future__ import annotations

import json
from typing import Any, NoReturn

VALUES_LIMIT = 4_000_000
"""The most values of one text. It bounds the memory that a hostile text of 100 MB makes Python take
to about 1 GB; the headers of the largest models have some 100,000."""

DIGITS_LIMIT = 19
"""The most digits of one number: those of 2^63 - 1. Longer ones take quadratic time to convert."""


_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_TOO_MANY_DIGITS = b"0" * (DIGITS_LIMIT + 1)


class StrictJsonError(ValueError):
    """A text that is not an acceptable JSON object. The message says why, without a file name."""


def parse_object(raw: bytes, *, counts_only: bool) -> dict[str, Any]:
    """Parses one JSON object.

    Errors, besides what is no JSON: a byte order mark, white space before the object, equal names
    in one object, NaN and infinities, lone surrogates in names and in their texts, numbers of over
    `DIGITS_LIMIT` digits, over `VALUES_LIMIT` values, nesting beyond Python's recursion limit; with
    ``counts_only`` also every number that is not a non-negative integer.

    Raises `StrictJsonError`, and nothing else, for any bytes.
    """
    if sum(raw.count(mark) for mark in (b",", b"[", b"{")) > VALUES_LIMIT:
        raise StrictJsonError(f"it has more than {VALUES_LIMIT:,} values")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"it is not UTF-8 text at byte {error.start}") from None
    if not text.startswith("{"):
        raise StrictJsonError("it does not start with '{'")
    odd_numbers = b"-" in raw or _TOO_MANY_DIGITS in raw.translate(_DIGITS_AS_ZERO)
    decoder = json.JSONDecoder(
        object_pairs_hook=_object_of_text if "\\u" in text else _object,
        # A function of Python for each number doubles the time; few headers need one.
        parse_int=(_count if counts_only else _integer) if odd_numbers else int,
        parse_float=_no_float if counts_only else float,
        parse_constant=_no_constant,
    )
    try:
        parsed: dict[str, Any] = decoder.decode(text)
    except StrictJsonError:
        raise
    except RecursionError:
        raise StrictJsonError("it is nested too deeply") from None
    except MemoryError:
        raise StrictJsonError("there is too little memory to parse it") from None
    except ValueError as error:
        raise StrictJsonError(f"it is not JSON: {error}") from None
    return parsed


def clipped(value: object, most: int = 80) -> str:
    """A text quoted, or another value, on one line for a message; only its start if it is long."""
    if isinstance(value, str):
        return repr(value) if len(value) <= most else f"{value[:most]!r}…"
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= most else f"{shown[:most]}…"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise StrictJsonError(f"the name {clipped(name)} occurs twice in one object")
            seen.add(name)
    return made


def _object_of_text(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As `_object`. Escapes can make surrogates that stand alone, which no UTF-8 text can."""
    made = _object(pairs)
    for name, value in made.items():
        for text in (name, value) if isinstance(value, str) else (name,):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise StrictJsonError(f"{clipped(text)} is not Unicode text") from None
    return made


def _count(digits: str) -> int:
    if digits.startswith("-"):
        raise StrictJsonError(f"it has the negative number {clipped(digits, 24)}")
    return _integer(digits)


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_LIMIT + digits.startswith("-"):
        raise StrictJsonError(f"it has a number of {len(digits)} digits")
    return int(digits)


def _no_float(digits: str) -> NoReturn:
    raise StrictJsonError(f"it has the number {clipped(digits, 24)}, which is not an integer")


def _no_constant(name: str) -> NoReturn:
    raise StrictJsonError(f"it has {name}, which JSON does not know")
