"""What is known of a machine, a node, a path, a link, a rail or a night; and how grave something is
that was found, before measuring or of what was measured."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, get_args

from waywiser.words.errors import WordError

Severity = Literal["info", "warning", "error"]
"""``info`` explains a number; ``warning`` makes a machine or a number worse or less certain;
``error`` says that something is broken, or prevents a measurement."""

SEVERITY_ORDER: tuple[Severity, ...] = ("info", "warning", "error")


def parse_severity(text: str) -> Severity:
    """The severity of that name. Raises `WordError` for anything else."""
    for severity in SEVERITY_ORDER:
        if text == severity:
            return severity
    raise WordError(f"{text!r} is no severity", remedy=f"write {' or '.join(SEVERITY_ORDER)}")


def is_at_least(severity: Severity, least: Severity) -> bool:
    """Whether it is as grave as ``least``, or graver."""
    return SEVERITY_ORDER.index(severity) >= SEVERITY_ORDER.index(least)


class Status(IntEnum):
    """How bad something is, in ascending order."""

    NOT_COMPARED = 0
    """There is nothing to compare it with."""
    OK = 1
    UNDECIDED = 2
    """The measurements do not show whether it is OK."""
    SUSPECTED = 3
    """They show that it is worse, and should be made again before that counts."""
    FAILED = 4
    """It is slow, broken or missing."""


_Failed = Literal[
    "regression", "missing", "slower", "bad", "failed", "stuck", "slow", "not reached", "excluded"
]
_Suspected = Literal["suspected", "suspect", "below"]
_Undecided = Literal["pair", "not decided", "not determined", "inconclusive"]
_Ok = Literal[
    "improvement", "changed", "no change", "steady", "ok", "fine", "normal", "above"
]  # fmt: skip
_NotCompared = Literal["no common size", "too few nights", "skipped", "not compared", "new", ""]
_GROUPS = {
    Status.FAILED: _Failed,
    Status.SUSPECTED: _Suspected,
    Status.UNDECIDED: _Undecided,
    Status.OK: _Ok,
    Status.NOT_COMPARED: _NotCompared,
}

Reason = Literal[_Failed, _Suspected, _Undecided, _Ok, _NotCompared]
"""The code of a status in JSON, metrics and texts, the worst first.

A host beside its peers is ``bad``, ``suspect``, ``not determined`` or ``fine``; a node beside its
baseline ``failed``, ``inconclusive`` or ``ok``. Those of paths, nights, nodes of a cluster and
ranges of other machines are explained by `PATH_REASONS` of
`waywiser.analysis.comparison.path_change`, `NIGHT_REASONS` of `waywiser.analysis.history.history`,
`NODE_REASONS` of `waywiser.analysis.cluster.verdict_values`, and `waywiser.curves.normal`.
"""

STATUSES: dict[Reason, Status] = {
    reason: status for status, group in _GROUPS.items() for reason in get_args(group)
}

SEVERITIES: dict[Status, Severity] = {
    Status.FAILED: "error",
    Status.SUSPECTED: "warning",
    Status.UNDECIDED: "warning",
    Status.OK: "info",
    Status.NOT_COMPARED: "info",
}


def severity_of(reason: Reason) -> Severity:
    """How grave a reason is."""
    return SEVERITIES[STATUSES[reason]]


def rank(reason: Reason) -> int:
    """The key by which the worst is first."""
    return list(STATUSES).index(reason)
