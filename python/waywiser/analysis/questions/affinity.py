"""Does it matter on which NUMA node memory is?

If the system shows which node a GPU is at, every usual path between host and GPU is compared with
the same path from or to the other nodes, and copies within a node with copies to another. The
question and the form of the table are those of the thesis chapter on explicit transfers (C.
Pearson, M.S. thesis, 2018, "Affinity"). If the system shows nothing, or something else than
latencies show, the sides that were measured answer (`waywiser.analysis.questions.hidden`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.questions import hidden, rank_affinity
from waywiser.analysis.questions.curve_pairs import (
    CurveGroup,
    PairResult,
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
    signed,
    where,
)
from waywiser.curves import Answer, Curve, Finding, Regime, Subject, kind_of, ranked
from waywiser.curves.kinds import usual
from waywiser.words import Place, count

RATIO = "bandwidth remote over bandwidth local"

SLOWER: tuple[tuple[Regime, str, str, str], ...] = (
    ("bandwidth", "remote-memory", "large copies", "have less bandwidth"),
    ("latency", "remote-latency", "small copies", "take longer"),
)
"""The findings of kinds that are slower with remote memory."""


def answer(subject: Subject) -> Answer:
    """Per kind of transfer, whether remote memory is slower than local."""
    groups = by_kind(subject)
    of_ranks = rank_affinity.by_kind(subject)
    other = " ".join(filter(None, (hidden.summary(subject), rank_affinity.summary(of_ranks))))
    return Answer(
        question="affinity",
        title="NUMA affinity: does the node of host memory change the speed?",
        summary=f"{_summary(subject, groups)} {other}".strip(),
        findings=ranked(
            [
                *hidden.findings(subject),
                *_findings(subject, groups),
                *rank_affinity.findings(subject, of_ranks),
            ]
        ),
        tables=(
            *pair_table(
                "Remote against local memory",
                groups,
                signed,
                "bandwidth: −n %: remote memory has n % less; latency: +n %: it takes n % longer",
            ),
            *rank_affinity.tables(of_ranks),
            *hidden.tables(subject),
        ),
        unanswered=not_determined([*groups, *of_ranks]),
        answered=bool(groups) or bool(other),
    )


def by_kind(subject: Subject) -> list[CurveGroup]:
    """Remote against local, of each kind of transfer."""
    kinds = [(c, k) for c, k in usual(subject) if k.group in ("host-GPU", "host-host")]
    local = {(k.bare, _anchor(curve)): curve for curve, k in kinds if k.nearness == "local"}
    return curve_groups(
        (kind.bare, (curve, reference))
        for curve, kind in kinds
        if kind.nearness == "remote" and (reference := local.get((kind.bare, _anchor(curve))))
    )


def _anchor(curve: Curve) -> Place:
    """What stays where it is: the GPU, or the source."""
    ends = curve.first_transfer.path.places
    return next((place for place in ends if place.kind == "gpu"), ends[0])


def _summary(subject: Subject, groups: Sequence[CurveGroup]) -> str:
    rates = in_regime(groups, "bandwidth")
    if not rates:
        nodes = count(len(subject.machine.numa), "NUMA node")
        if not subject.machine.nodes_known:
            return "Not determined: the file does not describe the NUMA nodes of this machine."
        if not subject.machine.numa:
            return "Not determined: the system shows no NUMA node."
        if len(subject.machine.numa) > 1:
            return (
                f"Not determined: there are {nodes}, and no path was measured both local and "
                "remote."
            )
        return f"Not applicable: the system shows {nodes}."
    return answer_by_kind(
        rates,
        effect="effect on bandwidth",
        equal="the node does not change the bandwidth of any of {kinds}",
        different="the node changes the bandwidth of {kinds}",
    )


def _findings(subject: Subject, groups: Sequence[CurveGroup]) -> Iterator[Finding]:
    """One for bandwidth and one for latency, and one for each kind whose pairs differ to both
    sides or of which local memory is the slower."""
    for regime, id, what, are_slower in SLOWER:
        found = in_regime(groups, regime)
        slower = [each for each in found if each.is_slower_kind]
        if slower:
            most = largest(slower)
            yield finding(
                subject,
                most,
                id,
                f"{what} of {count(len(slower), 'kind')} {are_slower} with memory of another node, "
                f"most of all {most.label}: {{effect}}{{sizes}}{{pairs}}",
                "allocate a GPU's buffers on its own node: numactl --cpunodebind and --membind, "
                "or first touch by a thread there",
                what=RATIO,
            )
        if regime == "bandwidth":
            if faster := [each for each in found if each.is_of_kind and each not in slower]:
                yield _faster(subject, faster)
            yield from (_by_pair(subject, r) for r in found if not r.is_of_kind and r.differing)


def _faster(subject: Subject, found: Sequence[RegimeResult]) -> Finding:
    """Returns the finding of local memory that is the slower one. It is odd only if GPUs copy by
    themselves: what CPUs or drivers do with memory may be faster from another node."""
    most = largest(found)
    decision, at = most.evidence
    kind = kind_of(at.a.workload.copies[0], subject.machine)
    odd = kind.is_quiet and decision is most.decision
    more = f"; the same for {len(found) - 1} more kinds" if len(found) > 1 else ""
    return finding(
        subject,
        most,
        "local-memory-slower",
        f"{most.label} is faster with memory of another node: {{slow}} {{slower}} "
        f"than {{fast}}{{sizes}}{{pairs}}{more}",
        "check that the system shows the right node (numa_node of the PCI device), and whether "
        "something else loads the local one"
        if odd
        else "choose the node of these buffers by measurement",
        what=RATIO,
        severity="warning" if odd else "info",
    )


def _by_pair(subject: Subject, result: RegimeResult) -> Finding:
    """Returns the finding of a kind whose pairs differ from one another: each with its effect."""
    listed = [
        f"{_places(pair)} {signed(pair.evidence[0], result.regime)}" for pair in result.differing
    ]
    return finding(
        subject,
        result,
        "affinity-differs",
        f"memory of another node changes the time of {result.label} differently from pair to pair: "
        f"{', '.join(listed)}{where(result)}; {len(result.differing)} of {len(result.pairs)} pairs "
        "differ",
        "choose the node of each buffer by its own GPU",
        what=RATIO,
        pairs=result.differing,
    )


def _places(pair: PairResult) -> str:
    return " -> ".join(dict.fromkeys(str(p) for p in pair.a.first_transfer.path.places))
