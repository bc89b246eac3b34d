"""Does it matter at which NUMA node ranks are?

Messages between ranks at other nodes than their GPUs are compared with those between ranks at the
nodes of the same GPUs (`--rank-cpus near,far`), and messages from memory of the host between two
nodes with those of the same rank within its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.questions.curve_pairs import (
    CurveGroup,
    RegimeResult,
    curve_groups,
    in_regime,
)
from waywiser.analysis.questions.pair_answers import finding, largest, pair_table, signed
from waywiser.curves import Curve, Finding, Regime, Sheet, Subject, percent
from waywiser.curves.kinds import usual
from waywiser.stats import THRESHOLD
from waywiser.words import count

RATIO = "bandwidth of remote ranks over bandwidth of local ranks"

_SLOWER: tuple[tuple[Regime, str, str, str], ...] = (
    ("bandwidth", "remote-ranks", "large messages", "have less bandwidth"),
    ("latency", "remote-ranks-latency", "small messages", "take longer"),
)


def by_kind(subject: Subject) -> list[CurveGroup]:
    """Remote against local ranks, for each kind of message."""
    local: dict[tuple[str, tuple[int, ...]], Curve] = {}
    remote: list[tuple[str, tuple[int, ...], Curve]] = []
    for curve, kind in usual(subject):
        if kind.group == "between ranks" and kind.nearness:
            anchor = _anchor(curve, subject)
            if kind.nearness == "local":
                local.setdefault((kind.bare, anchor), curve)
            else:
                remote.append((kind.bare, anchor, curve))
    return curve_groups(
        (kind, (curve, reference))
        for kind, anchor, curve in remote
        if (reference := local.get((kind, anchor)))
    )


def _anchor(curve: Curve, subject: Subject) -> tuple[int, ...]:
    """What stays where it is: the GPUs of the ranks; without GPUs, the first rank."""
    machine = subject.machine
    numbers = [each.index for place in curve.first_transfer.path.places for each in place.each]
    gpus = tuple(rank.gpu if (rank := machine.rank(n)) else -1 for n in numbers)
    return gpus if min(gpus) >= 0 else (-1, numbers[0])


def findings(subject: Subject, groups: Sequence[CurveGroup]) -> Iterator[Finding]:
    """One for bandwidth and one for latency, of all kinds that are slower between remote ranks."""
    for regime, id, what, are_slower in _SLOWER:
        slower = [each for each in in_regime(groups, regime) if each.is_slower_kind]
        if slower:
            most = largest(slower)
            yield finding(
                subject,
                most,
                id,
                f"{what} of {count(len(slower), 'kind')} {are_slower} between ranks at another "
                f"node, most of all {most.label}: {{effect}}{{sizes}}{{pairs}}",
                "bind each rank to the node of its GPU: waywiser advise --placement",
                what=RATIO,
            )


def local_ranks_text(groups: Sequence[CurveGroup]) -> str:
    """What the survey shows about ranks at other nodes; empty if it has none."""
    rates = in_regime(groups, "bandwidth")
    slower = [each.label for each in rates if each.is_slower_kind]
    if slower:
        return f"ranks at another node were measured to be slower: {', '.join(slower)}"
    if not rates or any(each.outcome != "equivalent" for each in rates):
        return ""
    return f"ranks at another node were measured to be no slower{_within(rates)}"


def _within(kinds: Sequence[RegimeResult]) -> str:
    """`` by more than 3%, for 2 kinds``: what the equivalence of all of them excludes."""
    return f" by more than {THRESHOLD:.0%}, for {count(len(kinds), 'kind')}"


def tables(groups: Sequence[CurveGroup]) -> tuple[Sheet, ...]:
    """One row for each kind; none without ranks of both placements."""
    return pair_table(
        "Ranks at another node against local ranks",
        groups,
        signed,
        "bandwidth: −n %: ranks at another node have n % less; latency: +n %: it takes n % longer",
    )


def summary(groups: Sequence[CurveGroup]) -> str:
    """A sentence on ranks; empty if nothing is known."""
    rates = in_regime(groups, "bandwidth")
    if not rates:
        return ""
    differ = [each.label for each in rates if each.outcome == "different"]
    if differ:
        return f"Between ranks: yes, for {', '.join(differ)}."
    equal = all(each.outcome == "equivalent" for each in rates)
    if equal:
        return f"Between ranks: no{_within(rates)}."
    losses = [each.decision.detectable for each in rates]
    known = [loss for loss in losses if loss is not None]
    least = (
        f"{percent(max(known))} or more" if len(known) == len(losses) else "a size that is known"
    )
    return f"Between ranks: no effect on bandwidth of {least} was found."
