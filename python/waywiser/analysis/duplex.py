"""What both ways of a path cost one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.analysis.answer import Finding
from waywiser.analysis.kinds import Kind, kind_of
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import NAMED, of_pairs
from waywiser.analysis.together import Together
from waywiser.analysis.told import devices_of, exhibits_of, rate_text
from waywiser.stats.order import Interval

HALF = 0.75
"""A link that is as wide both ways carries nearly twice as much both ways; below this share of the
sum it behaves more like one that is taken in turns."""


class _Lost(NamedTuple):
    """What paths of a kind lose both ways."""

    kind: Kind
    slowed: list[Together]
    of: int
    """Paths of the kind that were measured both ways."""
    equal: int
    """Of them, those that are as fast."""

    @property
    def middle(self) -> Together:
        return sorted(self.slowed, key=lambda each: each.share)[len(self.slowed) // 2]

    @property
    def is_odd(self) -> bool:
        """Some lose what most do not, or an engine has a link to itself and gets half of it."""
        engine = self.kind.is_quiet and self.kind.reference == "gpu"
        return self.equal > len(self.slowed) or (engine and self.middle.share < HALF)


def findings(subject: Subject, duplex: Sequence[Together]) -> list[Finding]:
    """One finding for each kind that is odd, and one for all others."""
    kinds: dict[str, tuple[Kind, list[Together]]] = {}
    for each in duplex:
        kind = kind_of(each.transfers[0], subject.machine)
        kinds.setdefault(kind.both_ways, (kind, []))[1].append(each)
    lost = [
        _Lost(
            kind,
            slowed,
            len(members),
            sum(each.is_unslowed for each in members),
        )
        for kind, members in kinds.values()
        if (slowed := [each for each in members if each.is_slowed])
    ]
    lost.sort(key=lambda each: each.middle.share)
    usual = [each for each in lost if not each.is_odd]
    found = [_duplex_loss(subject, [each]) for each in lost if each.is_odd]
    return [*found, _duplex_loss(subject, usual)] if usual else found


def _duplex_loss(subject: Subject, lost: Sequence[_Lost]) -> Finding:
    """Of kinds, that which loses most first."""
    each, odd = lost[0].middle, lost[0].is_odd
    span = each.share_interval
    told = "; ".join(
        f"{one.kind.both_ways} {rate_text(one.middle.rate, _interval(one.middle))}, "
        f"{one.middle.share:.0%} of the sum{_of_paths(one)}"
        for one in lost[:NAMED]
    )
    paths = [transfer for one in lost for each in one.slowed for transfer in each.transfers]
    return Finding(
        id="duplex-loss",
        severity="warning" if odd else "info",
        statement=f"both ways at once carry less than the sum of each way alone: {told}",
        effect=1 - each.share,
        interval=Interval(1 - span.high, 1 - span.low) if span else None,
        devices=devices_of(subject, paths),
        exhibits=tuple(e for one in lost[:NAMED] for e in exhibits_of(one.middle, range(2))),
        remedy="compare these paths with their twins: slot, width and firmware settings"
        if odd
        else "plan with these rates where both ways are busy at once",
    )


def _of_paths(lost: _Lost) -> str:
    return f" ({of_pairs(len(lost.slowed), lost.of, 'path')})" if lost.of > 1 else ""


def _interval(each: Together) -> Interval | None:
    rate = each.point.estimate.rate
    return rate.interval if rate else None
