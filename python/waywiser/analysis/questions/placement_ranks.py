"""The ranks of a placement: all choices of a question are compared with each other, and all
questions are decided together (`waywiser.analysis.questions.curve_pairs`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from waywiser.analysis.questions import hidden
from waywiser.analysis.questions.curve_pairs import REGIMES, PairResult, curve_groups
from waywiser.analysis.questions.pair_answers import longer, shorter
from waywiser.analysis.questions.placement import (
    PlacementChoice,
    PlacementCost,
    PlacementRank,
    PlacementSource,
)
from waywiser.analysis.questions.placement_options import OptionGroup, is_headline_kind
from waywiser.curves.kinds import usual
from waywiser.curves.regimes import Regime, regime_of
from waywiser.curves.subject import Subject
from waywiser.stats.decision import Decision, Verdict


def decided_ranks(questions: Iterable[OptionGroup]) -> Iterator[PlacementRank]:
    """Compares all options of each question, and decides about all questions together.

    Comparisons between the same two traits are one group: memory of a remote node against memory of
    the local one. So pairs of which nothing differs are not pooled with pairs of which much does.
    """
    several = [each for each in questions if len(each.options) > 1]
    pairs = [
        (f"{each.question}: {each.transfer}: {one.trait}, {other.trait}", (one.curve, other.curve))
        for each in several
        for two in combinations(each.options, 2)
        for one, other in [sorted(two, key=lambda option: option.trait)]
    ]
    known: dict[tuple[str, str], dict[Regime, PairResult]] = {}
    for group in curve_groups(pairs):
        for regime, result in group.regimes.items():
            for pair in result.pairs:
                known.setdefault((pair.a.text, pair.b.text), {})[regime] = pair
    for each in several:
        for regime in REGIMES:
            if rank := _rank(each, regime, known):
                yield rank


def _rank(
    question: OptionGroup,
    regime: Regime,
    known: Mapping[tuple[str, str], Mapping[Regime, PairResult]],
) -> PlacementRank | None:
    """The options by the mean of their ratios to all others; None if few can be compared."""
    found: dict[tuple[str, str], PairResult] = {}
    for one, other in combinations(question.options, 2):
        for a, b in ((one, other), (other, one)):
            if pair := known.get((a.curve.text, b.curve.text), {}).get(regime):
                found[a.name, b.name] = pair
    level = dict.fromkeys((name for names in found for name in names), 0.0)
    for (first, second), pair in found.items():
        change = math.log(pair.evidence[0].ratio)
        level[first] += change
        level[second] -= change
    options = {option.name: option for option in question.options}
    order = sorted(level, key=lambda name: -level[name])
    costs = {name: _cost(found, order[0], name) for name in order[1:]}
    compared = {name: cost for name, cost in costs.items() if cost is not None}
    if not compared:
        return None
    order = [order[0], *sorted(compared, key=lambda name: compared[name].longer)]
    size = compared[order[-1]].bytes
    choices = []
    for name in order:
        curve = options[name].curve
        point = curve.at(size)
        rate = point.rate if point is not None else 0.0
        choices.append(PlacementChoice(name, rate, curve.text, compared.get(name)))
    return PlacementRank(
        question.question,
        question.subject,
        question.transfer,
        question.is_headline,
        regime,
        tuple(choices),
    )


def _cost(
    found: Mapping[tuple[str, str], PairResult], best: str, name: str
) -> PlacementCost | None:
    if pair := found.get((best, name)):
        decision, at = pair.evidence
        return _cost_of(decision, at.bytes, pair.verdict, is_first=False)
    if pair := found.get((name, best)):
        decision, at = pair.evidence
        return _cost_of(decision, at.bytes, pair.verdict, is_first=True)
    return None


def _cost_of(decision: Decision, size: int, verdict: Verdict, *, is_first: bool) -> PlacementCost:
    """The cost of the first or the second of a pair, whose ratio is that of bandwidths."""
    more, interval = longer(decision) if is_first else shorter(decision)
    return PlacementCost(verdict, more, interval, decision.detectable, size)


def side_ranks(subject: Subject, source: PlacementSource) -> Iterator[PlacementRank]:
    """The own side against the other one, of hidden sides."""
    for each in hidden.costs(subject) if source == "latency" else ():
        curve = subject.curve(each.curve)
        if curve is None:
            continue
        size = next(
            (p.bytes for p in reversed(curve.measured) if regime_of(p.workload) == each.regime),
            curve.measured[-1].bytes,
        )
        cost = _cost_of(each.decision, size, each.decision.verdict, is_first=True)
        own, other = (PlacementChoice(name, 0.0, each.curve, c)
                      for name, c in (("own side", None), ("other side", cost)))  # fmt: skip
        kind = next(kind for known, kind in usual(subject) if known.text == each.curve)
        headline = is_headline_kind(kind, subject.machine)
        yield PlacementRank("side", "", each.kind, headline, each.regime, (own, other))
