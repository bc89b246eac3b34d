"""Does it matter on which NUMA node memory is?

Where the system tells which node a GPU is at, every usual path between host and GPU is related with
the same path from or to the other nodes, and copies within a node with copies to another. The
question and the form of the table are those of the thesis chapter on explicit transfers (C.
Pearson, M.S. thesis, 2018, "Affinity"). Where the system tells nothing, or something else than
latencies show, the sides that were measured answer (`waywiser.analysis.hidden`).
"""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis import hidden
from waywiser.analysis.answer import Answer, Finding, Table, ranked
from waywiser.analysis.grouped import (
    Grouped,
    at_most,
    devices,
    exhibits,
    percent,
    unclear,
)
from waywiser.analysis.grouped_table import table_of
from waywiser.analysis.kinds import Kind, usual
from waywiser.analysis.related import Alike, Related, relate
from waywiser.analysis.subject import Curve, Subject
from waywiser.stats.equivalence import MARGIN
from waywiser.stats.figures import count
from waywiser.stats.order import Interval
from waywiser.words import Path, format_bytes


def answer(subject: Subject) -> Answer:
    """Per kind of transfer, whether remote memory is slower than local."""
    groups = by_kind(subject)
    kinds = [group for _, group in groups]
    findings = [*hidden.findings(subject), *_slower(subject, kinds), *_faster(subject, kinds)]
    tables = [_table(kinds)] if kinds else []
    tables += hidden.tables(subject)
    return Answer(
        question="affinity",
        title="Does it matter where memory is?",
        summary=" ".join(filter(None, (_summary(subject, kinds), hidden.summary(subject)))),
        findings=ranked(findings),
        tables=tuple(tables),
        unanswered=tuple(unclear([group.rates for group in kinds])),
        judged=bool(kinds) or bool(hidden.summary(subject)),
    )


def by_kind(subject: Subject) -> list[tuple[Kind, Grouped]]:
    """Remote against local, of each kind of transfer."""
    kinds = [(c, k) for c, k in usual(subject) if k.group in ("host-GPU", "host-host")]
    local: dict[tuple[str, str], Curve] = {}
    alike: dict[str, list[Curve]] = {}
    for curve, kind in kinds:
        alike.setdefault(kind.bare, []).append(curve)
        if kind.nearness == "local" and curve.path is not None:
            local[kind.bare, _anchor(curve.path)] = curve
    scatter = {bare: Alike(curves) for bare, curves in alike.items()}
    found: dict[str, tuple[Kind, list[Related]]] = {}
    for curve, kind in kinds:
        if kind.nearness != "remote" or curve.path is None:
            continue
        near = local.get((kind.bare, _anchor(curve.path)))
        if near is None:
            continue
        pair = relate(curve, near, alike=scatter[kind.bare], traits=subject.machine.traits)
        if pair.sizes:
            found.setdefault(kind.bare, (kind, []))[1].append(pair)
    return [(kind, Grouped(label, tuple(pairs))) for label, (kind, pairs) in found.items()]


def _anchor(path: Path) -> str:
    """What stays where it is: the GPU, or the source."""
    ends = path.places
    return str(next((place for place in ends if place.kind == "gpu"), ends[0]))


def _summary(subject: Subject, groups: Sequence[Grouped]) -> str:
    rates = [group.rates for group in groups if group.rates.pairs]
    if not rates:
        nodes = count(len(subject.machine.numa), "NUMA node")
        if not subject.machine.nodes_known:
            return "Nothing describes the NUMA nodes of this machine."
        if not subject.machine.numa:
            return "No NUMA node is told."
        if len(subject.machine.numa) > 1:
            return f"There are {nodes}, and nothing was measured both near and far."
        return f"The system shows {nodes}: no memory is nearer than another."
    differ = [group.label for group in rates if group.verdict == "different"]
    if not differ:
        return (
            f"At large sizes the node matters to none of {count(len(rates), 'kind')} of transfer."
        )
    return (
        f"At large sizes the node matters to {len(differ)} of {count(len(rates), 'kind')} of "
        "transfer: "
        f"{', '.join(differ)}."
    )


def _slower(subject: Subject, groups: Sequence[Grouped]) -> list[Finding]:
    """One for large sizes, and one for small."""
    found = []
    for part, id, what in (
        ([group.rates for group in groups], "far-memory", "large copies"),
        ([group.small for group in groups], "far-start", "small copies"),
    ):
        slower = [group for group in part if _depends(group) and group.typical[1].effect > 0]
        if slower:
            found.append(_finding(subject, slower, id, what))
    return found


def _depends(group: Grouped) -> bool:
    return group.verdict == "different"


def _finding(subject: Subject, groups: list[Grouped], id: str, what: str) -> Finding:
    group = max(groups, key=lambda each: each.typical[1].effect)
    _, at = group.typical
    comparison = at.comparison
    return Finding(
        id=id,
        severity="info",
        statement=f"{what} of {count(len(groups), 'kind')} take longer with memory of another "
        f"node, most of all {group.label}: {percent(at.effect, comparison.effect_interval)} at "
        f"{format_bytes(at.bytes)}{at_most(group)} "
        f"({group.of_all})",
        effect=at.effect,
        interval=comparison.effect_interval,
        devices=devices(subject, group.leading.differing),
        exhibits=exhibits(at, "time remote over time local"),
        remedy="allocate a GPU's buffers on its own node: numactl --cpunodebind and --membind, "
        "or first touch by a thread there",
    )


def _faster(subject: Subject, groups: Sequence[Grouped]) -> list[Finding]:
    """Of local memory that is the slower one."""
    odd = [
        group.rates
        for group in groups
        if _depends(group.rates) and group.rates.typical[1].effect < 0
    ]
    if not odd:
        return []
    group = min(odd, key=lambda each: each.typical[1].effect)
    pair, at = group.typical
    ratio, span = at.comparison.ratio, at.comparison.interval
    return [
        Finding(
            id="far-is-faster",
            severity="warning",
            statement=f"{group.label} is faster with memory of another node: "
            f"{pair.b.text} takes {percent(1 / ratio - 1)} longer than {pair.a.text} at "
            f"{format_bytes(at.bytes)} "
            f"({group.of_all}"
            f"{f'; so it is with {len(odd) - 1} more kinds' if len(odd) > 1 else ''})",
            effect=1 / ratio - 1,
            interval=Interval(1 / span.high - 1, 1 / span.low - 1) if span else None,
            devices=devices(subject, group.leading.differing),
            exhibits=exhibits(at, "time remote over time local"),
            remedy="check that the system tells the right node (numa_node of the PCI device), and "
            "whether something else loads the local one",
        )
    ]


def _table(groups: Sequence[Grouped]) -> Table:
    return table_of(
        "Remote against local memory",
        groups,
        lambda at: _signed(at.effect),
        f"✓ the node matters by more than {MARGIN:.1%}, × equal within it, ? not to be told; "
        "+n %: remote takes so much longer, −n % so much less.",
    )


def _signed(effect: float) -> str:
    return f"{'+' if effect >= 0 else '−'}{percent(effect)}"
