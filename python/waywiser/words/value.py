"""Values that packages exchange: frozen, strict, and with one canonical JSON form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all values that packages exchange: immutable, and strict when decoded."""


def json_bytes(value: object) -> bytes:
    """JSON on one line; whatever has items in an order is a list."""
    return msgspec.json.encode(value, enc_hook=_listed)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Sequence):
        return list(value)
    raise NotImplementedError(f"{type(value).__name__} has no form as JSON")


def json_text(value: object) -> str:
    """JSON on one line, as text."""
    return json_bytes(value).decode()


def canonical_json(value: object) -> bytes:
    """JSON with sorted keys: equal values give equal bytes.

    Words leave out what equals its default, so that a field that is added later, with a default
    that means what was meant before, leaves the identities of recorded workloads as they are.
    """
    return msgspec.json.encode(value, order="sorted")
