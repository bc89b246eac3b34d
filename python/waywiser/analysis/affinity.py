"""Does it matter on which NUMA node memory is?

If the system shows which node a GPU is at, every usual path between host and GPU is compared with
the same path from or to the other nodes, and copies within a node with copies to another. The
question and the form of the table are those of the thesis chapter on explicit transfers (C.
Pearson, M.S. thesis, 2018, "Affinity"). If the system shows nothing, or something else than
latencies show, the sides that were measured answer (`waywiser.analysis.hidden`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.analysis import hidden
from waywiser.analysis.answer import Answer, Finding, Table, ranked
from waywiser.analysis.curve_pairs import (
    CurveGroup,
    CurvePair,
    PairQuestion,
    PairResult,
    RegimeResult,
    at_sizes,
    decided,
    devices,
    exhibits,
    longer,
    not_determined,
    signed,
    slower_by,
    table_of,
    where,
)
from waywiser.analysis.kinds import kind_of, usual
from waywiser.analysis.subject import Curve, Subject
from waywiser.analysis.texts import of_pairs, percent
from waywiser.words import Path
from waywiser.words.number_format import count

RATIO = "bandwidth remote over bandwidth local"


def answer(subject: Subject) -> Answer:
    """Per kind of transfer, whether remote memory is slower than local."""
    groups = by_kind(subject)
    tables = [_table(groups)] if groups else []
    return Answer(
        question="affinity",
        title="Does it matter where memory is?",
        summary=" ".join(filter(None, (_summary(subject, groups), hidden.summary(subject)))),
        findings=ranked([*hidden.findings(subject), *_findings(subject, groups)]),
        tables=(*tables, *hidden.tables(subject)),
        unanswered=tuple(not_determined(groups)),
        judged=bool(groups) or bool(hidden.summary(subject)),
    )


def by_kind(subject: Subject) -> list[CurveGroup]:
    """Remote against local, of each kind of transfer."""
    kinds = [(c, k) for c, k in usual(subject) if k.group in ("host-GPU", "host-host")]
    local: dict[tuple[str, str], Curve] = {
        (kind.bare, _anchor(curve.path)): curve
        for curve, kind in kinds
        if kind.nearness == "local" and curve.path is not None
    }
    pairs: dict[str, list[CurvePair]] = {}
    for curve, kind in kinds:
        if kind.nearness != "remote" or curve.path is None:
            continue
        if near := local.get((kind.bare, _anchor(curve.path))):
            pairs.setdefault(kind.bare, []).append(CurvePair(curve, near))
    return decided(PairQuestion(label, label, found) for label, found in pairs.items())


def _anchor(path: Path) -> str:
    """What stays where it is: the GPU, or the source."""
    ends = path.places
    return str(next((place for place in ends if place.kind == "gpu"), ends[0]))


def _summary(subject: Subject, groups: Sequence[CurveGroup]) -> str:
    rates = [found for group in groups if (found := group.bandwidth)]
    if not rates:
        nodes = count(len(subject.machine.numa), "NUMA node")
        if not subject.machine.nodes_known:
            return "Nothing describes the NUMA nodes of this machine."
        if not subject.machine.numa:
            return "The system shows no NUMA node."
        if len(subject.machine.numa) > 1:
            return f"There are {nodes}, and nothing was measured both local and remote."
        return f"The system shows {nodes}: no memory is nearer than another."
    differ = [found.label for found in rates if found.verdict == "different"]
    kinds = f"{count(len(rates), 'kind')} of transfer"
    if not differ:
        return f"The node does not change the bandwidth of any of {kinds}, as far as was measured."
    return f"The node changes the bandwidth of {len(differ)} of {kinds}: {', '.join(differ)}."


def _findings(subject: Subject, groups: Sequence[CurveGroup]) -> Iterator[Finding]:
    """One for bandwidth and one for latency, and one for each kind whose pairs differ to both
    sides or of which local memory is the slower."""
    for regime, id, what in (
        ("bandwidth", "far-memory", "large copies"),
        ("latency", "far-start", "small copies"),
    ):
        found = [r for g in groups for r in g.regimes.values() if r.regime == regime]
        kinds = [r for r in found if r.is_of_kind]
        slower = [r for r in kinds if r.evidence[0].slower]
        if slower:
            yield _slower(subject, slower, id, what)
        if regime == "bandwidth":
            faster = [r for r in kinds if not r.evidence[0].slower]
            if faster:
                yield _faster(subject, faster)
            few = [r for r in found if not r.is_of_kind and r.differing]
            yield from (_by_pair(subject, r) for r in few)


def _slower(subject: Subject, found: list[RegimeResult], id: str, what: str) -> Finding:
    most = max(found, key=lambda each: longer(each.evidence[0])[0])
    decision, at = most.evidence
    effect, interval = longer(decision)
    return Finding(
        id=id,
        severity="info",
        statement=f"{what} of {count(len(found), 'kind')} take longer with memory of another "
        f"node, most of all {most.label}: {percent(effect, interval)}"
        f"{at_sizes(most)}{_of_pairs(most)}",
        effect=effect,
        interval=interval,
        devices=devices(subject, most.pairs),
        exhibits=exhibits(decision, at, RATIO),
        remedy="allocate a GPU's buffers on its own node: numactl --cpunodebind and --membind, "
        "or first touch by a thread there",
    )


def _of_pairs(result: RegimeResult) -> str:
    total = len(result.pairs)
    some = len(result.differing)
    return f" ({of_pairs(some, total, 'pair')})" if some else f" (mean of {total} pairs)"


def _faster(subject: Subject, found: Sequence[RegimeResult]) -> Finding:
    """Of local memory that is the slower one. It is odd only if GPUs copy by themselves: what CPUs
    or drivers do with memory may be faster from another node."""
    most = max(found, key=lambda each: slower_by(each.evidence[0])[0])
    decision, at = most.evidence
    effect, interval = slower_by(decision)
    kind = kind_of(at.a.workload.transfers[0], subject.machine)
    odd = kind.is_quiet and decision is most.decision
    more = f"; so it is with {len(found) - 1} more kinds" if len(found) > 1 else ""
    return Finding(
        id="far-is-faster",
        severity="warning" if odd else "info",
        statement=f"{most.label} is faster with memory of another node: {at.b.line.curve} takes "
        f"{percent(effect, interval)} longer than {at.a.line.curve}"
        f"{at_sizes(most)}{_of_pairs(most)}{more}",
        effect=effect,
        interval=interval,
        devices=devices(subject, most.pairs),
        exhibits=exhibits(decision, at, RATIO),
        remedy="check that the system shows the right node (numa_node of the PCI device), and "
        "whether something else loads the local one"
        if odd
        else "choose the node of these buffers by measurement",
    )


def _by_pair(subject: Subject, result: RegimeResult) -> Finding:
    """Of a kind whose pairs differ from one another: each pair with its own effect."""
    decision, at = result.evidence
    effect, interval = slower_by(decision)
    said = [f"{_device(pair)} {signed(pair.evidence[0])}" for pair in result.differing]
    return Finding(
        id="affinity-differs",
        severity="info",
        statement=f"memory of another node changes the time of {result.label} differently from "
        f"pair to pair: {', '.join(said)}{where(result)}; "
        f"{len(result.differing)} of {len(result.pairs)} pairs differ",
        effect=effect,
        interval=interval,
        devices=devices(subject, result.differing),
        exhibits=exhibits(decision, at, RATIO),
        remedy="choose the node of each buffer by its own GPU",
    )


def _device(pair: PairResult) -> str:
    places: Iterable[str] = (str(p) for p in pair.a.workload.transfers[0].path.places)
    return " -> ".join(dict.fromkeys(places))


def _table(groups: Sequence[CurveGroup]) -> Table:
    return table_of(
        "Remote against local memory",
        groups,
        signed,
        "+n %: remote takes so much longer, −n % so much less",
    )
