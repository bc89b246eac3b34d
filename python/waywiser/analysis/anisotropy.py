"""Is a way as fast there as back?

Every usual curve is related with that of the opposite path by the same executor, over all sizes
that both have. The question and the form of the table are those of the thesis chapter on explicit
transfers (C. Pearson, M.S. thesis, 2018, "Anisotropy"); large, medium and small sizes are answered
apart, since a link's width has nothing to do with what it costs to begin.
"""

from __future__ import annotations

import msgspec

from waywiser.analysis.answer import Answer, Finding, Table, ranked
from waywiser.analysis.grouped import (
    Grouped,
    at_most,
    devices,
    exhibits,
    of_pairs,
    percent,
    unclear,
)
from waywiser.analysis.grouped_table import table_of
from waywiser.analysis.kinds import Kind, usual
from waywiser.analysis.related import Alike, AtSize, Related, relate
from waywiser.analysis.subject import Curve, Subject
from waywiser.stats.equivalence import MARGIN
from waywiser.stats.figures import count
from waywiser.stats.order import Interval
from waywiser.words import Memory, Path, Transfer, format_bytes

ODD = 0.10
"""A copy engine between page-locked memories is slower one way by more than this only where
something is odd: links are as wide there as back, and an H200's differ by under 1 %."""


def answer(subject: Subject) -> Answer:
    """Per kind of transfer, whether there is as fast as back."""
    groups = by_kind(subject)
    findings = [
        finding
        for kind, group in _near_or_far(groups)
        for finding in _of_moving(subject, kind, group)
    ]
    findings += _of_small(subject, [group.small for _, group in groups])
    rates = [group.rates for _, group in groups if group.rates.pairs]
    return Answer(
        question="anisotropy",
        title="Is a way as fast there as back?",
        summary=_summary(rates),
        findings=ranked(findings),
        tables=(_table(groups),) if groups else (),
        unanswered=tuple(unclear(rates)),
        judged=bool(rates),
    )


def by_kind(subject: Subject) -> list[tuple[Kind, Grouped]]:
    """The opposite pairs of each kind, in the profile's order; no files, whose ways differ by
    nature."""
    curves = {
        _way_of(curve.workload.transfers[0]): (curve, kind)
        for curve, kind in usual(subject)
        if kind.group != "file"
    }
    alike: dict[str, list[Curve]] = {}
    for curve, kind in curves.values():
        alike.setdefault(_between_which(kind), []).append(curve)
    scatter = {which: Alike(members) for which, members in alike.items()}
    found: dict[str, tuple[Kind, list[Related]]] = {}
    for curve, kind in curves.values():
        transfer = curve.transfer
        if transfer is None or not _is_forward(transfer.path):
            continue
        back = curves.get(_way_of(opposite(transfer)))
        if back is None:
            continue
        lent = scatter[_between_which(kind)]
        pair = relate(curve, back[0], alike=lent, traits=subject.machine.traits)
        if pair.sizes:
            found.setdefault(kind.both_ways, (kind, []))[1].append(pair)
    return [(kind, Grouped(label, tuple(pairs))) for label, (kind, pairs) in found.items()]


def _near_or_far(groups: list[tuple[Kind, Grouped]]) -> list[tuple[Kind, Grouped]]:
    """Local and remote pairs together: what both show is one finding."""
    joined: dict[str, tuple[Kind, list[Related]]] = {}
    for kind, group in groups:
        joined.setdefault(kind.bare, (kind, []))[1].extend(group.pairs)
    found = []
    for kind, pairs in joined.values():
        bare = msgspec.structs.replace(kind, nearness="")
        found.append((bare, Grouped(bare.both_ways, tuple(pairs))))
    return found


def _between_which(kind: Kind) -> str:
    """The same for a kind and for the kind of the way back."""
    ends = " and ".join(sorted((kind.source, kind.destination)))
    return f"{ends} by {kind.executor}{kind.states}"


def opposite(transfer: Transfer) -> Transfer:
    """The way back with the same settings, without a size."""
    return Transfer(transfer.path.opposite, 0, transfer.parameters, transfer.layout)


def _way_of(transfer: Transfer) -> str:
    return f"{transfer.path} {transfer.parameters.get('peer', '')}"


def _is_forward(path: Path) -> bool:
    """From the host to a GPU, and from the lower number to the higher: one of every two."""

    def rank(memory: Memory) -> tuple[bool, int, str]:
        return memory.place.kind == "gpu", memory.place.index, memory.kind

    return rank(path.source) < rank(path.destination)


def slower_by(at: AtSize) -> tuple[float, Interval | None]:
    """By how much the slower of two takes longer than the faster."""
    ratio, span = at.comparison.ratio, at.comparison.interval
    if ratio >= 1:
        return ratio - 1, at.comparison.effect_interval
    return 1 / ratio - 1, Interval(1 / span.high - 1, 1 / span.low - 1) if span else None


def _summary(rates: list[Grouped]) -> str:
    if not rates:
        return "No path but those of files was measured both ways at sizes that tell of a rate."
    differ = [group.label for group in rates if group.verdict == "different"]
    if not differ:
        return (
            f"None of {count(len(rates), 'kind')} of transfer is known to be faster one way at "
            "large sizes."
        )
    return (
        f"One way is faster by more than {MARGIN:.1%} at large sizes for {len(differ)} of "
        f"{count(len(rates), 'kind')} of transfer: {', '.join(differ)}."
    )


def _of_moving(subject: Subject, kind: Kind, whole: Grouped) -> list[Finding]:
    """At large sizes, else at medium ones alone. Between two kinds of host memory ways differ by
    nature, and the table is enough."""
    if kind.group == "host-host" and kind.source != kind.destination:
        return []
    rates = whole.rates
    alone = not rates.differing and whole.small.verdict != "different"
    group = whole.medium if alone else rates
    if not group.differing:
        return []
    return [
        _of_kind(subject, kind, group) if group.verdict == "different" else _of_few(subject, group)
    ]


def _of_kind(subject: Subject, kind: Kind, group: Grouped) -> Finding:
    pair, at = group.typical
    much, interval = slower_by(at)
    odd = kind.is_quiet and kind.reference == "gpu" and much > ODD
    slow, fast = kind.source, kind.destination
    if at.effect < 0:
        slow, fast = fast, slow
    by = f" by {kind.executor}{kind.states}"
    statement = (
        f"{kind.both_ways} is {percent(much, interval)} slower one way"
        if slow == fast
        else f"{slow} → {fast}{by} takes {percent(much, interval)} longer than {fast} → {slow}"
    )
    return Finding(
        id="anisotropic-kind",
        severity="warning" if odd else "info",
        statement=f"{statement} at {format_bytes(at.bytes)}{at_most(group)}"
        f"{_in_brackets(_of_pairs(group), _elsewhere(pair.ranges, at.bytes))}",
        effect=much,
        interval=interval,
        devices=devices(subject, group.leading.differing),
        exhibits=exhibits(at, "time there over time back"),
        remedy="links are as wide back as there: compare slots, widths and firmware settings"
        if odd
        else "plan each way with its own rate",
    )


def _of_pairs(group: Grouped) -> str:
    """Nothing where there is no other of its kind."""
    if len(group.pairs) == 1:
        return ""
    text = group.of_all
    return f"{text}{' of this size' if text == of_pairs(1, 1, 'pair') else ''}"


def _elsewhere(ranges: str, size: int) -> str:
    """Nothing where they differ at that size alone."""
    return "" if ranges == format_bytes(size) else f"differs at {ranges}"


def _in_brackets(*parts: str) -> str:
    told = "; ".join(filter(None, parts))
    return f" ({told})" if told else ""


def _of_few(subject: Subject, group: Grouped) -> Finding:
    """Pairs that differ where their twins do not."""
    pair, at = group.typical
    much, interval = slower_by(at)
    slow = at.a if at.effect > 0 else at.b
    same = sum(each.verdict == "same" for each in group.pairs)
    return Finding(
        id="anisotropic-path",
        severity="warning" if group.verdict == "same" else "info",
        statement=f"{slow.line.curve} takes {percent(much, interval)} longer than its way back at "
        f"{format_bytes(at.bytes)}; of {count(len(group.pairs), 'pair')} that ought to be alike "
        f"{len(group.differing)} differ, {same} do not",
        effect=much,
        interval=interval,
        devices=devices(subject, group.differing),
        exhibits=exhibits(at, "time there over time back"),
        remedy=f"measure again alone: waywiser survey --preset full --only '{pair.a.text}' "
        f"--only '{pair.b.text}'",
    )


def _of_small(subject: Subject, groups: list[Grouped]) -> list[Finding]:
    """One for all kinds: who starts a copy, and who waits for it, differs there and back."""
    differ = [group for group in groups if group.verdict == "different"]
    if not differ:
        return []
    group = max(differ, key=lambda each: slower_by(each.typical[1])[0])
    pair, at = group.typical
    much, interval = slower_by(at)
    slow = at.a if at.effect > 0 else at.b
    return [
        Finding(
            id="anisotropic-start",
            severity="info",
            statement=f"small copies of {count(len(differ), 'kind')} take longer one way, most of "
            f"all {slow.line.curve}: {percent(much, interval)} at {format_bytes(at.bytes)}"
            f"{_in_brackets(_elsewhere(pair.ranges, at.bytes))}",
            effect=much,
            interval=interval,
            devices=devices(subject, [pair]),
            exhibits=exhibits(at, "time there over time back"),
            remedy="plan small copies with the latency of each way",
        )
    ]


def _table(groups: list[tuple[Kind, Grouped]]) -> Table:
    return table_of(
        "There against back",
        [group for _, group in groups],
        _way,
        f"✓ differs by more than {MARGIN:.1%}, × equal within it, ? not to be told; → n %: the way "
        "as written is so much faster, ← the way back is.",
    )


def _way(at: AtSize) -> str:
    return f"{'←' if at.effect > 0 else '→'} {percent(slower_by(at)[0])}"
