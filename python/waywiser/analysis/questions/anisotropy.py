"""Anisotropy: does the bandwidth of a path depend on its direction?

Every usual curve is compared with that of the opposite path by the same executor. The question and
the form of the table are those of the thesis chapter on explicit transfers (C. Pearson, M.S.
thesis, 2018, "Anisotropy"). Bandwidth, medium sizes and latency are answered apart, since a link's
width has nothing to do with what it costs to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from waywiser.analysis.questions.curve_pairs import (
    CurveGroup,
    RegimeResult,
    curve_groups,
    in_regime,
)
from waywiser.analysis.questions.pair_answers import (
    answer_by_kind,
    finding,
    largest,
    not_determined,
    pair_table,
    slower_by,
)
from waywiser.curves import (
    Answer,
    Finding,
    Kind,
    Regime,
    Subject,
    kind_of,
    of_pairs,
    percent,
    practical,
    ranked,
)
from waywiser.curves.kinds import usual
from waywiser.stats import THRESHOLD, Decision
from waywiser.words import Memory, Path, count

RATIO = "bandwidth over that of the opposite direction"


def answer(subject: Subject) -> Answer:
    """Compares both directions of each kind of transfer."""
    groups = by_kind(subject)
    rates = in_regime(groups, "bandwidth")
    return Answer(
        question="anisotropy",
        title="Anisotropy: does the speed of a path depend on its direction?",
        summary=_summary(rates),
        findings=ranked(practical([*_of_moving(subject, groups), *_of_latency(subject, groups)])),
        tables=pair_table(
            "Each direction against the opposite one",
            groups,
            slower_direction,
            "the arrow is the slower direction: -> as written, <- the opposite one; −n %: it has "
            "n % less bandwidth, of latencies +n %: it takes n % longer",
        ),
        unanswered=not_determined(groups),
        answered=bool(rates),
    )


def by_kind(subject: Subject) -> list[CurveGroup]:
    """The opposite pairs of each kind, in the profile's order; no files, whose directions differ
    by nature, and no messages of processes, which are timed there and back: of messages those that
    kernels of GPUs alone move."""
    curves = {
        (str(curve.path), kind.link, kind.submitter): (curve, kind)
        for curve, kind in usual(subject)
        if kind.group != "file" and (kind.group != "between ranks" or kind.is_quiet)
    }
    pairs = [
        (kind, (curve, back[0]))
        for curve, kind in curves.values()
        if _is_forward(path := curve.first_transfer.path)
        and (back := curves.get((str(path.opposite), kind.link, kind.submitter)))
    ]
    families = {k.bidirectional: (k.source, k.destination, k.executor) for k, _ in reversed(pairs)}
    return curve_groups(((kind.bidirectional, pair) for kind, pair in pairs), families)


def _is_forward(path: Path) -> bool:
    """Whether a path leads from the host to a GPU, or from the lower number to the higher."""

    def rank(memory: Memory) -> tuple[bool, int, str]:
        return memory.place.kind == "gpu", memory.place.index, memory.kind

    return rank(path.source) < rank(path.destination)


def _summary(rates: Sequence[RegimeResult]) -> str:
    if not rates:
        return (
            "Not determined: no path between memories was measured in both directions at "
            "large sizes."
        )
    return answer_by_kind(
        rates,
        effect="difference in bandwidth",
        equal="both directions of {kinds} have the same bandwidth",
        different=f"one direction has more than {THRESHOLD:.0%} less bandwidth for {{kinds}}",
    )


def _of_moving(subject: Subject, groups: Sequence[CurveGroup]) -> Iterator[Finding]:
    """One for all kinds that differ as such, local and remote ones together, and one for each kind
    of which few pairs differ: in bandwidth, else at medium sizes alone. Directions between two
    kinds of host memory differ by nature, and the table is enough."""
    kinds: dict[str, list[RegimeResult]] = {}
    for group in groups:
        kind = _kind(subject, next(iter(group.regimes.values())))
        if kind.group == "host-host" and kind.source != kind.destination:
            continue
        found, latency = group.bandwidth, group.regimes.get("latency")
        if found is None or found.outcome != "different":
            below = latency is not None and latency.outcome == "different"
            found = None if below else group.regimes.get("medium")
        if found is None or found.outcome != "different":
            continue
        if found.is_of_kind:
            kinds.setdefault(f"{kind.bare} {found.evidence[0].slower}", []).append(found)
        else:
            yield _of_few(subject, found)
    for members in kinds.values():
        yield _of_kind(subject, members)


def _kind(subject: Subject, result: RegimeResult) -> Kind:
    return kind_of(result.pairs[0].a.first_transfer, subject.machine)


def _of_kind(subject: Subject, members: Sequence[RegimeResult]) -> Finding:
    most = largest(members)
    kind = _kind(subject, most)
    slow, fast = kind.source, kind.destination
    if not most.evidence[0].slower:
        slow, fast = fast, slow
    by = f"by {kind.executor}{f' ({kind.link})' if kind.link else ''}"
    pairs = list(chain.from_iterable(each.pairs for each in members))
    differ = sum(len(each.differing) for each in members)
    some = of_pairs(differ, len(pairs), "pair") if differ else f"mean of {len(pairs)} pairs"
    return finding(
        subject,
        most,
        "anisotropic-kind",
        (
            f"{slow} <-> {fast} {by} {{slower}} in one direction{{sizes}}"
            if slow == fast
            else f"{slow} -> {fast} {by} {{slower}} than {fast} -> {slow}{{sizes}}"
        )
        + (f" ({some})" if len(pairs) > 1 else ""),
        "",
        what=RATIO,
        pairs=pairs,
    )


def _of_few(subject: Subject, result: RegimeResult) -> Finding:
    """Returns the finding of pairs that differ although their equivalents do not."""
    even = sum(pair.outcome == "equivalent" for pair in result.pairs)
    return finding(
        subject,
        result,
        "anisotropic-path",
        f"{{slow}} {{slower}} than the opposite direction{{sizes}}; of "
        f"{count(len(result.pairs), 'pair')} that should be equivalent {len(result.differing)} "
        f"differ, {even} do not",
        subject.again("{slow}", "{fast}"),
        what=RATIO,
        severity="warning" if 2 * even > len(result.pairs) else "info",
        pairs=result.differing,
    )


def _of_latency(subject: Subject, groups: Sequence[CurveGroup]) -> Iterator[Finding]:
    """One for all kinds: who starts a copy, and who waits for it, depends on the direction."""
    latencies = [each for group in groups if (each := group.regimes.get("latency"))]
    found = [each for each in latencies if each.is_of_kind]
    if found:
        yield finding(
            subject,
            largest(found),
            "anisotropic-start",
            f"small copies of {count(len(found), 'kind')} take longer in one direction, most of "
            "all {slow}: {effect}{sizes}",
            "",
            what=RATIO,
        )


def slower_direction(decision: Decision, regime: Regime) -> str:
    """``-> −5.1 %``: the direction as written has 5.1 % less bandwidth; of latencies
    ``<- +5.1 %``: the opposite one takes 5.1 % longer."""
    sign = "+" if regime == "latency" else "−"
    way = "->" if decision.slower else "<-"
    return f"{way} {sign}{percent(slower_by(decision, regime)[0])}"
