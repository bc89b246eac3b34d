"""Which of the transfers that start together share a bottleneck, and what it carries.

Pairs tell best: transfers that slow one another are joined, and whatever hangs together shares
something. Where only all were started at once, those that are slowed alike are one group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from waywiser.analysis.answer import Finding
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import NAMED
from waywiser.analysis.together import Together
from waywiser.analysis.told import devices_of, exhibits_of, rate_text
from waywiser.plan.name import name_of
from waywiser.severity import Severity
from waywiser.stats.order import Interval
from waywiser.words import Transfer, format_bytes
from waywiser.words.number_format import count, format_rate

OF_SUM = 0.01
"""How sharply a sum of rates alone is told: three digits, beside what is reached of it."""


def findings(subject: Subject, sets: Sequence[Together]) -> list[Finding]:
    """One for each group of pairs that hang together, and one for each shape of larger set, where
    pairs have not told it already; stars share the link of their one GPU by nature."""
    pairs = [
        each
        for each in sets
        if len(each.transfers) == 2 and not _is_star(each) and not each.point.workload.shared
    ]
    joined = _joined([each for each in pairs if each.is_slowed])
    told = {transfer.way for each in pairs for transfer in each.transfers} if joined else set()
    shapes: dict[str, Together] = {}
    for each in sets:
        known_by_pairs = {transfer.way for transfer in each.transfers} <= told
        if _is_star(each) or (known_by_pairs and not each.point.workload.shared):
            continue
        best = shapes.setdefault(_shape(each), each)
        if _rank(each, subject) < _rank(best, subject):
            shapes[_shape(each)] = each
    found = [_shared(subject, each) for each in shapes.values() if each.is_slowed]
    return [*(_hanging_together(subject, group) for group in joined), *found]


def _joined(pairs: Sequence[Together]) -> list[list[Together]]:
    """Pairs that have transfers in common, directly or by others."""
    groups: list[tuple[set[str], list[Together]]] = []
    for each in pairs:
        ways, members = {transfer.way for transfer in each.transfers}, [each]
        apart = []
        for other_ways, others in groups:
            if ways & other_ways:
                ways |= other_ways
                members = [*others, *members]
            else:
                apart.append((other_ways, others))
        groups = [*apart, (ways, members)]
    return [members for _, members in groups]


def _hanging_together(subject: Subject, pairs: Sequence[Together]) -> Finding:
    """Of two that share something, or of more that do so two by two."""
    if len(pairs) == 1:
        return _shared(subject, pairs[0])
    middle = sorted(pairs, key=lambda each: each.rate)[len(pairs) // 2]
    ways = {t.way: t for each in pairs for t in each.transfers}
    rate, span = middle.carried((0, 1))
    alone = middle.alone_rate
    return Finding(
        id="shared-bottleneck",
        severity="info",
        statement=f"{len(ways)} transfers share something: {len(pairs)} pairs of them are "
        f"slower together: {rate_text(rate, span)} instead of {format_rate(alone, OF_SUM)} GB/s "
        f"({_members(list(ways.values()))}){_who(subject, list(ways.values()))}",
        effect=1 - rate / alone,
        interval=Interval(1 - span.high / alone, 1 - span.low / alone) if span else None,
        devices=devices_of(subject, list(ways.values())),
        exhibits=tuple(exhibits_of(middle, (0, 1))),
        remedy="spread what runs together over transfers that do not share it",
    )


def _shape(each: Together) -> str:
    """Sets of one name, by whatever executor, tell of the same links."""
    name = name_of(each.point.workload)
    shape = name.partition(" ")[0]
    buffer = " (shared)" if each.point.workload.shared else ""
    return f"{shape}{buffer}" if "-" in shape and "@" not in shape else each.curve.text


def _rank(each: Together, subject: Subject) -> tuple[bool, bool, float]:
    """Of sets of one shape first those with a clear answer; then those by the executor that links
    are judged by, for kernels may be slowed if links are not; then the most precise."""
    span = each.decision.interval
    executor = subject.machine.traits.executor(each.transfers[0].path.executor)
    unclear = each.decision.verdict == "no change found"
    return unclear, executor.reference != "gpu", span.width if span else math.inf


def _is_star(each: Together) -> bool:
    """All go out of one GPU, or all into one."""
    for side in (
        {transfer.path.source.place for transfer in each.transfers},
        {transfer.path.destination.place for transfer in each.transfers},
    ):
        if len(side) == 1 and next(iter(side)).kind == "gpu":
            return True
    return False


def _shared(subject: Subject, each: Together) -> Finding:
    groups = each.groups or (tuple(range(len(each.transfers))),)
    group = groups[0]
    members = [each.transfers[n] for n in group]
    rate, span = each.carried(group)
    alone = sum(each.alone[n].rate for n in group)
    loss = 1 - rate / alone
    best = max(each.alone[n].rate for n in group)
    severity: Severity = "warning" if rate < best or each.point.workload.shared else "info"
    effect_span = Interval(1 - span.high / alone, 1 - span.low / alone) if span else None
    rest = len(each.transfers) - len(group)
    who = (
        f"all {len(group)} transfers"
        if not rest
        else f"{len(group)} of {len(each.transfers)} transfers"
    )
    more = (
        f"; {count(len(groups) - 1, 'further group')} slowed by another factor"
        if groups[1:]
        else ""
    )
    # of several groups the sum is what one asks for first, whatever each of them carries
    whole = (
        f"together {rate_text(each.rate, each.carried(range(len(each.transfers)))[1])} of "
        f"{format_rate(each.alone_rate, OF_SUM)} alone; "
        if groups[1:]
        else ""
    )
    what = "one buffer" if each.point.workload.shared else "something"
    return Finding(
        id="shared-bottleneck",
        severity=severity,
        statement=f"{each.curve.name}: {whole}{who} share {what} that carries "
        f"{rate_text(rate, span)}, where alone they add up to {format_rate(alone, OF_SUM)} GB/s "
        f"({_members(members)}, {format_bytes(members[0].bytes)} each{more})"
        f"{_who(subject, members)}",
        effect=loss,
        interval=effect_span,
        devices=devices_of(subject, members),
        exhibits=tuple(exhibits_of(each, group)),
        remedy="give each transfer a buffer of its own"
        if each.point.workload.shared
        else _pairs_tell(members),
    )


def _pairs_tell(members: Sequence[Transfer]) -> str:
    remedy = "plan with this rate for all of them together"
    if len(members) < 3:
        return remedy
    first, second = members[0].way, members[1].way
    return (
        f"{remedy}; measure pairs to tell whether they share one thing or several: "
        f"waywiser survey --workload '{first}; {second}'"
    )


def _who(subject: Subject, transfers: Sequence[Transfer]) -> str:
    """What their GPUs have in common, where not all GPUs take part."""
    gpus = {int(device.place.partition(":")[2]) for device in devices_of(subject, transfers)}
    machine = subject.machine
    if gpus == {gpu.index for gpu in machine.gpus}:
        return ""
    for node in machine.numa:
        if gpus == {gpu.index for gpu in machine.gpus if gpu.numa == node.index}:
            return f"; they are the GPUs of numa:{node.index}"
    sides = subject.overview.sides
    if sides is not None and any(gpus == set(group) for group in sides.groups):
        return "; they are the GPUs of one hidden side"
    return ""


def _members(transfers: Sequence[Transfer]) -> str:
    named = [
        f"{transfer.path.source.place} → {transfer.path.destination.place}"
        for transfer in transfers[:NAMED]
    ]
    more = f" and {len(transfers) - NAMED} more" if len(transfers) > NAMED else ""
    return f"{', '.join(named)}{more}"
