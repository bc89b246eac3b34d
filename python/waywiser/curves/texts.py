"""Wording that several answers share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from waywiser.stats import THRESHOLD, Decision, Interval
from waywiser.words import format_bytes

NAMED = 8
"""Things that a list names one by one at most."""

MANY_TIMES = 10.0
"""A share of this size and above is written as a multiple."""

NOT_DETERMINED = "? not determined (< n %: a larger difference would have been found)"
EQUIVALENT_WITHIN = f"more than {THRESHOLD:.0%}, no: equivalent within it, {NOT_DETERMINED}"
"""What the marks of a table mean, after the words for a tick."""


FROM_CALL = "Times are from call to completion."
"""Which time of a transfer the tables of methods show."""

ONE_BLOCK = "seen in a single block only"


def survey_again(*curves: str, launch: Sequence[str] = (), preset: str = "full") -> str:
    """The command that measures curves again alone, with the preset that is thorough or another;
    ``launch`` are its options of ranks."""
    only = (f"--only '{curve}'" for curve in curves)
    return " ".join([f"waywiser survey --preset {preset}", *map(shlex.quote, launch), *only])


def capital(text: str) -> str:
    """The text as a sentence begins; all but its first letter as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def amount(share: float, digits: int = 0) -> str:
    """``17%``; ``402 ×`` the value if percents would have many digits."""
    return f"{share:.{digits}%}" if share < MANY_TIMES else f"{share:.0f} ×"


def span(low: str, high: str) -> str:
    """``4 KiB to 1 MiB``; ``4 KiB`` if both are that."""
    return low if low == high else f"{low} to {high}"


def size_span(low: int, high: int) -> str:
    """`span` of two sizes in bytes."""
    return span(format_bytes(low), format_bytes(high))


def percent(effect: float, interval: Interval | None = None) -> str:
    """``5.1 % (4.8–5.3)`` of an effect without its sign; no interval that no digit shows."""
    text = f"{_digits(abs(effect))} %"
    if interval is None:
        return text
    low, high = sorted((abs(interval.low), abs(interval.high)))
    if interval.low * interval.high < 0:
        low = 0.0
    span = (_digits(low), _digits(high))
    return f"{text} ({'–'.join(span)})" if len(set(span)) > 1 else text


def _digits(share: float) -> str:
    return f"{share * 100:.{0 if share >= 0.1 else 1 if share >= 0.01 else 2}f}"


def hidden_loss(decision: Decision) -> str:
    """``< 4.2 %``: how large a difference could have been missed; ``not replicated`` if the noise
    is not known."""
    return "not replicated" if decision.detectable is None else f"< {percent(decision.detectable)}"


def undecided(
    decisions: Iterable[tuple[str, Decision]], loss: str = "", what: str = "difference"
) -> list[str]:
    """Lines for what was not decided, by name: one for decisions without known noise, which says
    the ``loss``, and one for those that could hide a difference."""
    found = list(decisions)
    unknown = [name for name, each in found if each.detectable is None]
    hidden = [f"{name} {hidden_loss(each)}" for name, each in found if each.detectable is not None]
    return [
        *([f"measured in one process{loss}: {named(unknown)}"] if unknown else []),
        *([f"a {what} of this size could have been missed: {named(hidden)}"] if hidden else []),
    ]


def size_ranges(sizes: Sequence[int], among: Sequence[int]) -> str:
    """``64 KiB to 1 MiB, 1 GiB``: runs of sizes that follow one another in ``among``."""
    runs: list[list[int]] = []
    before = None
    for size in among:
        if size in sizes:
            if runs and before == runs[-1][1]:
                runs[-1][1] = size
            else:
                runs.append([size, size])
        before = size
    return ", ".join(size_span(low, high) for low, high in runs)


def named(labels: Sequence[str]) -> str:
    """``a, b and 3 more``."""
    more = f" and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
    return f"{', '.join(labels[:NAMED])}{more}"


def of_pairs(some: int, total: int, what: str) -> str:
    """``all 8 GPUs``, ``both GPUs``, ``3 of 8 GPUs``, ``the only GPU``."""
    if total == 1:
        return f"the only {what}"
    if some == total == 2:
        return f"both {what}s"
    return f"all {total} {what}s" if some == total else f"{some} of {total} {what}s"
