"""What answers report of pairs of curves: the finding, the exhibits and the table that affinity,
anisotropy, alternatives, equivalent paths and measured sides share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from waywiser.analysis.questions.curve_pairs import (
    REGIMES,
    CurveGroup,
    PairResult,
    PointPair,
    RegimeResult,
    in_regime,
)
from waywiser.curves import (
    BANDWIDTH_BYTES,
    EQUIVALENT_WITHIN,
    START_BYTES,
    Device,
    Exhibit,
    Finding,
    Mark,
    Regime,
    Sheet,
    SheetCell,
    Subject,
    hidden_loss,
    of_pairs,
    percent,
    regime_of,
    table,
)
from waywiser.curves.texts import undecided
from waywiser.stats import Decision, Interval, TestOutcome
from waywiser.words import Place, Severity, count, format_bytes

MARKS: dict[TestOutcome, Mark] = {
    "different": "yes", "equivalent": "no", "no change found": "unclear",
}  # fmt: skip


def longer(decision: Decision) -> tuple[float, Interval | None]:
    """How much longer the first takes than the second (below 0: less), relative to it."""
    span = decision.interval
    interval = Interval(1 / span.high - 1, 1 / span.low - 1) if span and span.low > 0 else None
    return 1 / decision.ratio - 1, interval


def shorter(decision: Decision) -> tuple[float, Interval | None]:
    """How much longer the second takes than the first, relative to the first."""
    span = decision.interval
    return decision.ratio - 1, Interval(span.low - 1, span.high - 1) if span else None


def loss(
    decision: Decision, regime: Regime, *, of_second: bool = False
) -> tuple[float, Interval | None]:
    """How much less bandwidth the first has than the second, or the second than the first; of
    latencies, how much longer it takes. Below 0 if it is the faster one."""
    if regime == "latency":
        return shorter(decision) if of_second else longer(decision)
    span = decision.interval
    if not of_second:
        return 1 - decision.ratio, Interval(1 - span.high, 1 - span.low) if span else None
    low = 1 - 1 / span.low if span and span.low > 0 else None
    interval = Interval(low, 1 - 1 / span.high) if span and low is not None else None
    return 1 - 1 / decision.ratio, interval


def slower_by(decision: Decision, regime: Regime) -> tuple[float, Interval | None]:
    """`loss` of the slower of the two."""
    return loss(decision, regime, of_second=not decision.slower)


def signed(decision: Decision, regime: Regime) -> str:
    """``−46 %``: the first has so much less bandwidth than the second; of latencies ``+8.1 %``: it
    takes so much longer."""
    effect = longer(decision)[0] if regime == "latency" else decision.ratio - 1
    return f"{'+' if effect >= 0 else '−'}{percent(effect)}"


def largest(found: Iterable[RegimeResult]) -> RegimeResult:
    """The result with the largest effect."""
    return max(found, key=lambda each: slower_by(each.evidence[0], each.regime)[0])


def answer_by_kind(
    rates: Sequence[RegimeResult], *, effect: str, equal: str, different: str
) -> str:
    """The answer to a question about pairs of curves: whether any kind of transfer differs.
    ``equal`` and ``different`` are the answers, {kinds} stands for the number of kinds; ``effect``
    is what was not found if neither is shown."""
    kinds = f"{count(len(rates), 'kind')} of transfer"
    differ = [each.label for each in rates if each.outcome == "different"]
    if differ:
        some = different.format(kinds=f"{len(differ)} of {kinds}")
        return f"Yes: {some}: {', '.join(differ)}."
    unknown = sum(each.outcome != "equivalent" for each in rates)
    if not unknown:
        return f"No: {equal.format(kinds=kinds)}, at the measured sizes."
    return (
        f"No {effect} was found in {kinds}, at the measured sizes; {unknown} of {len(rates)} are "
        "not determined."
    )


def finding(
    subject: Subject,
    result: RegimeResult | PairResult,
    id: str,
    statement: str,
    remedy: str,
    *,
    what: str = "",
    severity: Severity = "info",
    pairs: Sequence[PairResult] | None = None,
    devices: Iterable[Device] = (),
    shown: Iterable[Exhibit] = (),
) -> Finding:
    """A finding that rests on ``result``, whose exhibit of the ratio says ``what`` it is, unless
    other exhibits are to be ``shown``.

    In ``statement`` and ``remedy`` the word {effect} stands for how much less bandwidth the slower
    of the two has (of latencies, how much longer it takes), {slower} for the same with its verb,
    {slow} and {fast} for the curves of the two, {sizes} for where it is so, and {pairs} for how
    many of all pairs show it. The devices of a kind are those of ``pairs``, or of all.
    """
    decision, at = result.evidence
    regime = regime_of(at.a.workload)
    effect, interval = slower_by(decision, regime)
    slow, fast = (at.a, at.b) if decision.slower else (at.b, at.a)
    words = {"effect": percent(effect, interval), "slow": slow.curve, "fast": fast.curve}
    words["slower"] = slower_text(words["effect"], regime)
    if isinstance(result, RegimeResult):
        words |= {"sizes": at_sizes(result), "pairs": _share_of_pairs(result)}
        devices = devices or devices_of(subject, result.pairs if pairs is None else pairs)
    return Finding(
        id=id,
        severity=severity,
        statement=statement.format_map(words),
        effect=effect,
        interval=interval,
        devices=tuple(devices),
        exhibits=tuple(shown) or exhibits(decision, at, what),
        remedy=remedy.format_map(words),
    )


def slower_text(effect: str, regime: Regime) -> str:
    """``has 46 % less bandwidth``; of latencies ``takes 8.1 % longer``."""
    return f"takes {effect} longer" if regime == "latency" else f"has {effect} less bandwidth"


def _share_of_pairs(result: RegimeResult) -> str:
    total, some = len(result.pairs), len(result.differing)
    return f" ({of_pairs(some, total, 'pair')})" if some else f" (mean of {total} pairs)"


def devices_of(subject: Subject, pairs: Sequence[PairResult]) -> tuple[Device, ...]:
    """The GPUs of all pairs; their nodes if there are no GPUs."""
    places: dict[str, Place] = {}
    for pair in pairs:
        for curve in (pair.a, pair.b):
            places |= {str(place): place for place in curve.workload.places}
    nodes = sorted(places.values(), key=lambda place: (place.kind, place.index))
    return subject.gpus(nodes) or tuple(map(subject.device, nodes))


def exhibits(decision: Decision, at: PointPair, what: str) -> tuple[Exhibit, ...]:
    """Both bandwidths of a size (times if they say nothing there), and the ratio that was
    decided about."""
    first, second = (point.exhibit(BANDWIDTH_BYTES) for point in (at.a, at.b))
    return first, second, Exhibit(first.series, what, decision.ratio, "ratio", decision.interval)


def time_ratio(series: str, what: str, decision: Decision) -> Exhibit:
    """How many times as long the first takes as the second."""
    effect, span = longer(decision)
    times = Interval(1 + span.low, 1 + span.high) if span else None
    return Exhibit(series, what, 1 + effect, "ratio", times)


def where(result: RegimeResult) -> str:
    """`` at 32 MiB to 64 MiB``: of a difference at some sizes alone; empty for a whole regime."""
    if result.evidence[0] is result.decision or not result.sizes_text:
        return ""
    return f" at {result.sizes_text}"


def at_sizes(result: RegimeResult) -> str:
    """`` at 64 MiB``: the sizes that differ, or of a whole regime the size that is shown."""
    return where(result) or f" at {format_bytes(result.evidence[1].bytes)}"


Wording = Callable[[Decision, Regime], str]
"""An effect, as the question writes it."""


def cell(result: RegimeResult | None, effect: Wording) -> SheetCell:
    """The mark of a kind in one regime, with the effect of a kind that differs; of others the cell
    says how large a difference could have been missed."""
    if result is None:
        return SheetCell("—")
    series = result.pairs[0].a.text
    mark = MARKS[result.outcome]
    if result.outcome == "different":
        few = "" if result.is_of_kind else f" ({len(result.differing)} of {len(result.pairs)})"
        decision, at = result.evidence
        text = f"{effect(decision, result.regime)}{where(result)}{few}"
        return SheetCell(text, mark, at.a.curve)
    return SheetCell("" if mark == "no" else hidden_loss(result.decision), mark, series)


def pair_table(
    title: str, groups: Sequence[CurveGroup], effect: Wording, marks: str
) -> tuple[Sheet, ...]:
    """One row for each kind. ``marks`` explains the effects."""
    return table(
        title,
        ("transfer", "bandwidth", "medium sizes", "latency", "pairs"),
        (
            (
                SheetCell(group.label),
                *(cell(group.regimes.get(regime), effect) for regime in REGIMES),
                SheetCell(str(group.count)),
            )
            for group in groups
        ),
        f"yes: differs by {EQUIVALENT_WITHIN}; {marks}; bandwidth from "
        f"{format_bytes(BANDWIDTH_BYTES)} on, latency below {format_bytes(START_BYTES)}.",
    )


def not_determined(groups: Iterable[CurveGroup]) -> tuple[str, ...]:
    """Kinds whose bandwidth could differ unseen, by how much."""
    found = in_regime(groups, "bandwidth")
    decisions = [(r.label, r.decision) for r in found if r.outcome == "no change found"]
    return tuple(undecided(decisions, ", without equivalent paths"))
