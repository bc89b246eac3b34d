"""Reads policy files. What the transfer library reads, docs/policy.md specifies."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from waywiser.analysis.policy.errors import NotAPolicy
from waywiser.analysis.policy.table import FORMAT, LIMIT_BYTES, VERSION, Policy, PolicyRow
from waywiser.words import read_regular, why_not_read

_REMEDY = "waywiser export PROFILE --for waywiser -o FILE makes one"


def is_policy(data: bytes) -> bool:
    """Whether the beginning of a file is that of a policy, damaged or not."""
    return data.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in data[:4096]


def read_policy(path: str | Path) -> Policy:
    """Raises `NotAPolicy`."""
    where = str(path)
    try:
        data = read_regular(path, LIMIT_BYTES)
    except OSError as error:
        raise NotAPolicy(why_not_read(error), where=where, remedy=_REMEDY) from error
    return decoded(data, where)


def decoded(data: bytes, where: str = "") -> Policy:
    """Raises `NotAPolicy` for anything that no program of this version wrote."""
    if not is_policy(data):
        raise NotAPolicy("is not a policy", where=where, remedy=_REMEDY)
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.version != VERSION:
            raise NotAPolicy(
                f"is a policy of version {head.version}, and this program reads version {VERSION}",
                where=where,
                remedy="make it again with this program",
            )
        found = msgspec.json.decode(data, type=Policy)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotAPolicy(f"is a damaged policy: {error}", where=where, remedy=_REMEDY) from error
    reasons = [reason for _, row in found if (reason := _damage(row))]
    if any(row.count < 2 for each in found.classes for row in each.host_contiguous):
        reasons.append("a row of one copy is among those of lists")
    if reasons:
        raise NotAPolicy(f"is a damaged policy: {reasons[0]}", where=where, remedy=_REMEDY)
    return found


class _Head(msgspec.Struct, frozen=True):
    version: int = 0


def _damage(row: PolicyRow) -> str:
    """Why no program wrote the row; empty if one could."""
    whole = (row.from_bytes, row.bytes, row.count, row.threads, row.pieces)
    if min(whole) < 0 or row.count < 1:
        return "a number is negative"
    times = (row.low, row.seconds, row.high)
    if not all(map(math.isfinite, times)) or not 0 < row.low <= row.seconds <= row.high:
        return "a time is not within its interval"
    return ""
