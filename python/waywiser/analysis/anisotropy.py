"""Is a path as fast there as back?

Every usual curve is compared with that of the opposite path by the same executor. The question and
the form of the table are those of the thesis chapter on explicit transfers (C. Pearson, M.S.
thesis, 2018, "Anisotropy"). Bandwidth, medium sizes and latency are answered apart, since a link's
width has nothing to do with what it costs to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from waywiser.analysis.answer import Answer, Finding, Table, ranked
from waywiser.analysis.curve_pairs import (
    CurveGroup,
    CurvePair,
    PairQuestion,
    RegimeResult,
    at_sizes,
    decided,
    devices,
    exhibits,
    not_determined,
    slower_by,
    table_of,
)
from waywiser.analysis.kinds import Kind, kind_of, usual
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import of_pairs, percent
from waywiser.stats.decision import THRESHOLD, Decision
from waywiser.words import Memory, Path
from waywiser.words.number_format import count

RATIO = "bandwidth there over bandwidth back"


def answer(subject: Subject) -> Answer:
    """Per kind of transfer, whether there is as fast as back."""
    groups = by_kind(subject)
    rates = [found for group in groups if (found := group.bandwidth)]
    return Answer(
        question="anisotropy",
        title="Is a path as fast there as back?",
        summary=_summary(rates),
        findings=ranked([*_of_moving(subject, groups), *_of_latency(subject, groups)]),
        tables=(_table(groups),) if groups else (),
        unanswered=tuple(not_determined(groups)),
        judged=bool(rates),
    )


def by_kind(subject: Subject) -> list[CurveGroup]:
    """The opposite pairs of each kind, in the profile's order; no files, whose directions differ
    by nature."""
    curves = {
        (str(curve.path), kind.link, kind.submitter): (curve, kind)
        for curve, kind in usual(subject)
        if kind.group != "file"
    }
    pairs: dict[str, tuple[Kind, list[CurvePair]]] = {}
    for curve, kind in curves.values():
        if curve.path is None or not _is_forward(curve.path):
            continue
        back = curves.get((str(curve.path.opposite), kind.link, kind.submitter))
        if back is not None:
            pair = CurvePair(curve, back[0])
            pairs.setdefault(kind.both_ways, (kind, []))[1].append(pair)
    return decided(
        PairQuestion(label, (kind.source, kind.destination, kind.executor), found)
        for label, (kind, found) in pairs.items()
    )


def _is_forward(path: Path) -> bool:
    """From the host to a GPU, and from the lower number to the higher: one of every two."""

    def rank(memory: Memory) -> tuple[bool, int, str]:
        return memory.place.kind == "gpu", memory.place.index, memory.kind

    return rank(path.source) < rank(path.destination)


def _summary(rates: Sequence[RegimeResult]) -> str:
    if not rates:
        return "No path but those of files was measured in both directions at large sizes."
    differ = [found.label for found in rates if found.verdict == "different"]
    kinds = f"{count(len(rates), 'kind')} of transfer"
    if not differ:
        return f"No direction of {kinds} is faster in bandwidth, as far as was measured."
    return (
        f"One direction has more than {THRESHOLD:.0%} more bandwidth for {len(differ)} of {kinds}: "
        f"{', '.join(differ)}."
    )


def _of_moving(subject: Subject, groups: Sequence[CurveGroup]) -> Iterator[Finding]:
    """One for all kinds that differ as such, local and remote ones together, and one for each kind
    of which few pairs differ: in bandwidth, else at medium sizes alone. Directions between two
    kinds of host memory differ by nature, and the table is enough."""
    kinds: dict[str, list[RegimeResult]] = {}
    for group in groups:
        kind = _kind(subject, group)
        if kind.group == "host-host" and kind.source != kind.destination:
            continue
        found = group.bandwidth
        latency = group.of("latency")
        if found is None or found.verdict != "different":
            below = latency is not None and latency.verdict == "different"
            found = None if below else group.of("medium")
        if found is None or found.verdict != "different":
            continue
        if found.is_of_kind:
            kinds.setdefault(f"{kind.bare} {found.evidence[0].slower}", []).append(found)
        else:
            yield _of_few(subject, found)
    for members in kinds.values():
        yield _of_kind(subject, members)


def _kind(subject: Subject, group: CurveGroup) -> Kind:
    first = next(iter(group.regimes.values())).pairs[0].a
    return kind_of(first.workload.transfers[0], subject.machine)


def _of_kind(subject: Subject, members: Sequence[RegimeResult]) -> Finding:
    most = max(members, key=lambda each: slower_by(each.evidence[0])[0])
    decision, at = most.evidence
    much, interval = slower_by(decision)
    kind = kind_of(at.a.workload.transfers[0], subject.machine)
    slow, fast = kind.source, kind.destination
    if not decision.slower:
        slow, fast = fast, slow
    by = f"by {kind.executor}{f' ({kind.link})' if kind.link else ''}"
    statement = (
        f"{slow} ↔ {fast} {by} takes {percent(much, interval)} longer in one direction"
        if slow == fast
        else f"{slow} → {fast} {by} takes {percent(much, interval)} longer than {fast} → {slow}"
    )
    pairs = list(chain.from_iterable(each.pairs for each in members))
    differ = sum(len(each.differing) for each in members)
    some = of_pairs(differ, len(pairs), "pair") if differ else f"mean of {len(pairs)} pairs"
    of = f" ({some})" if len(pairs) > 1 else ""
    return Finding(
        id="anisotropic-kind",
        severity="info",
        statement=f"{statement}{at_sizes(most)}{of}",
        effect=much,
        interval=interval,
        devices=devices(subject, pairs),
        exhibits=exhibits(decision, at, RATIO),
        remedy="plan each direction with its own bandwidth",
    )


def _of_few(subject: Subject, result: RegimeResult) -> Finding:
    """Pairs that differ although their equivalents do not."""
    decision, at = result.evidence
    much, interval = slower_by(decision)
    slow, fast = (at.a, at.b) if decision.slower else (at.b, at.a)
    even = sum(pair.verdict == "equivalent" for pair in result.pairs)
    return Finding(
        id="anisotropic-path",
        severity="warning" if 2 * even > len(result.pairs) else "info",
        statement=f"{slow.line.curve} takes {percent(much, interval)} longer than the opposite "
        f"direction{at_sizes(result)}; of "
        f"{count(len(result.pairs), 'pair')} that should be equivalent {len(result.differing)} "
        f"differ, {even} do not",
        effect=much,
        interval=interval,
        devices=devices(subject, result.differing),
        exhibits=exhibits(decision, at, RATIO),
        remedy="measure again alone: waywiser survey --preset full "
        f"--only '{slow.line.curve}' --only '{fast.line.curve}'",
    )


def _of_latency(subject: Subject, groups: Sequence[CurveGroup]) -> list[Finding]:
    """One for all kinds: who starts a copy, and who waits for it, depends on the direction."""
    found = [each for group in groups if (each := group.of("latency")) and each.is_of_kind]
    if not found:
        return []
    most = max(found, key=lambda each: slower_by(each.evidence[0])[0])
    decision, at = most.evidence
    much, interval = slower_by(decision)
    slow = at.a if decision.slower else at.b
    return [
        Finding(
            id="anisotropic-start",
            severity="info",
            statement=f"small copies of {count(len(found), 'kind')} take longer in one direction, "
            f"most of all {slow.line.curve}: {percent(much, interval)}"
            f"{at_sizes(most)}",
            effect=much,
            interval=interval,
            devices=devices(subject, most.pairs),
            exhibits=exhibits(decision, at, RATIO),
            remedy="plan small copies with the latency of each direction",
        )
    ]


def _table(groups: Sequence[CurveGroup]) -> Table:
    return table_of(
        "There against back",
        groups,
        faster_direction,
        "→ n %: the direction as written is so much faster, ← the opposite one is",
    )


def faster_direction(decision: Decision) -> str:
    """``→ 5.1 %``."""
    return f"{'←' if decision.slower else '→'} {percent(slower_by(decision)[0])}"
