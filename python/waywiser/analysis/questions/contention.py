"""What do transfers that run together cost one another, and what is it that they share?

Aggregates are all bytes over the time from the common start to the last finish, never sums of
bandwidths. Both directions of one path are reported as its duplex. Of sets of more, those pairs
that slow one another are joined: all that are connected share something. If only all together were
measured, those with the same slowdown are one group. Each member of a set with a collective is
compared with itself (`waywiser.analysis.questions.sustained`).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.analysis.questions.sustained import (
    SustainedMember,
    found_sustained,
    sustained_findings,
    sustained_table,
)
from waywiser.analysis.questions.together import Together, found_together
from waywiser.curves import (
    MATTERS,
    Answer,
    Exhibit,
    Finding,
    Kind,
    Sheet,
    SheetCell,
    Subject,
    kind_of,
    name_of,
    of_pairs,
    practical,
    ranked,
    size_span,
    table,
)
from waywiser.curves.answer import SHARED
from waywiser.curves.texts import NAMED, named, span, undecided
from waywiser.stats import THRESHOLD, Interval, relative
from waywiser.words import Severity, Transfer, count, format_rate, grouped

OF_SUM = 0.01
"""The uncertainty that a sum of bandwidths alone is written with: three digits."""

HALF = 0.75
"""A bidirectional transfer over a full-duplex link has nearly the sum of both directions. Below
this share of the sum the link is more like a half-duplex one."""


def answer(subject: Subject) -> Answer:
    """What each workload of several transfers reaches of what they reach alone."""
    together, unknown = found_together(subject)
    members = found_sustained(subject.curves)
    bidirectional = [each for each in together if each.is_duplex]
    sets = [each for each in together if not each.is_duplex]
    unmeasured = named([curve.name for curve in unknown])
    unclear = [
        (each.curve.name, each.decision)
        for each in together
        if each.decision.outcome == "no change found"
    ]
    return Answer(
        question="contention",
        title="Contention: are transfers slower together than alone?",
        summary=_summary(subject, sets, bidirectional, members),
        findings=ranked(
            [
                *practical([*_of_sets(subject, sets), *_of_duplex(subject, bidirectional)]),
                *sustained_findings(members, subject),
            ]
        ),
        tables=(
            *_table("Concurrent transfers against each alone", sets),
            *_table("Bidirectional against each direction alone", bidirectional),
            *sustained_table(members),
        ),
        unanswered=(
            *([f"not all of their transfers were measured alone: {unmeasured}"] if unknown else []),
            *undecided(unclear, what="loss"),
        ),
        answered=bool(together or members),
    )


def _summary(
    subject: Subject,
    sets: Sequence[Together],
    bidirectional: Sequence[Together],
    members: Sequence[SustainedMember],
) -> str:
    if not sets and not bidirectional and not members:
        return "Not determined: no transfers were measured together."
    parts = [
        f"{sum(each.is_slowed for each in found)} of {len(found)} {what}"
        for found, what in (
            (sets, "sets of concurrent transfers"),
            (bidirectional, "bidirectional paths"),
        )
        if found
    ]
    if members:
        slowed = sum(each.is_slowed for each in members)
        parts.append(f"{slowed} of {len(members)} members of sets with a collective")
    slower = f"Slower together than alone: {', '.join(parts)}."
    return f"{slower}{_shares_of_sum(subject, bidirectional)}"


def _shares_of_sum(subject: Subject, bidirectional: Sequence[Together]) -> str:
    """What the reference paths of host and GPUs reach in both directions, as a sentence, however
    small the loss is; empty without any."""
    kinds = grouped(
        (kind_of(each.transfers[0], subject.machine).bidirectional, each)
        for each in bidirectional
        if _is_reference(each, subject)
    )
    parts: list[str] = []
    for name, paths in kinds.items():
        shares = span(*(f"{end(each.share for each in paths):.0%}" for end in (min, max)))
        reached = [each.point.rate for each in paths]
        rates = span(*(format_rate(end(reached), OF_SUM) for end in (min, max)))
        of_sum = "" if parts else " of the sum of each alone"
        parts.append(f"{shares}{of_sum} for {name}, {rates} GB/s")
    return f" Both directions at once reach {'; '.join(parts)}." if parts else ""


def _is_reference(each: Together, subject: Subject) -> bool:
    """Whether it is between GPUs, or GPU and host, by the executor and memories that such paths are
    compared by."""
    traits = subject.machine.traits
    return all(
        traits.executor(transfer.path.executor).reference == "gpu"
        and all(traits.memory(end.kind).reference == "gpu" for end in transfer.path.ends)
        for transfer in each.transfers
    )


def _table(title: str, found: Sequence[Together]) -> tuple[Sheet, ...]:
    return table(
        title,
        ("transfers", "slowed", "GB/s", "of the sum alone", "slowest transfer", "fastest"),
        map(_row, found),
        "yes: takes longer than its slowest transfer alone by more than "
        f"{THRESHOLD:.0%}, no: equal, ? not determined. GB/s: all bytes until the last transfer "
        "ends. Slowest, fastest: time together over time alone. If transfers wait for others (for "
        "example copies out of one GPU on one engine), the slowest is counted from the common "
        "start to the common end, and the fastest from its own start.",
    )


def _row(each: Together) -> tuple[SheetCell, ...]:
    different = each.decision.outcome == "different"
    return (
        SheetCell(each.curve.name),
        SheetCell(
            "not replicated" if each.decision.detectable is None else "",
            "no" if each.is_unslowed else "yes" if different else "unclear",
            each.curve.text,
        ),
        SheetCell(format_rate(each.point.rate, each.point.measured.relative), "", each.point.text),
        SheetCell(f"{each.share:.0%}"),
        SheetCell(f"×{each.slowest:.2f}" + (f", {each.waiting}" if each.waiting else "")),
        SheetCell(f"×{min(each.slowdowns):.2f}"),
    )


# One path in both directions.


class _Lost(NamedTuple):
    """The bidirectional loss of the paths of one kind."""

    kind: Kind
    slowed: list[Together]
    of: int
    """Paths of the kind with a bidirectional measurement."""
    equal: int
    """How many of them lose nothing."""

    @property
    def middle(self) -> Together:
        return sorted(self.slowed, key=lambda each: each.share)[len(self.slowed) // 2]

    @property
    def is_odd(self) -> bool:
        """Some lose what most do not, or an engine has a link to itself and gets half of it."""
        engine = self.kind.is_quiet and self.kind.reference == "gpu"
        return self.equal > len(self.slowed) or (engine and self.middle.share < HALF)


def _of_duplex(subject: Subject, duplex: Sequence[Together]) -> list[Finding]:
    """One finding for each kind that is odd, and one for all others."""
    kinds = [(kind_of(each.transfers[0], subject.machine), each) for each in duplex]
    first = {kind.bidirectional: kind for kind, _ in reversed(kinds)}
    lost = [
        _Lost(first[name], slowed, len(members), sum(each.is_unslowed for each in members))
        for name, members in grouped((kind.bidirectional, each) for kind, each in kinds).items()
        if (slowed := [each for each in members if each.is_slowed])
    ]
    lost.sort(key=lambda each: each.middle.share)
    usual = [each for each in lost if not each.is_odd and 1 - each.middle.share >= MATTERS]
    found = [_duplex_loss(subject, [each]) for each in lost if each.is_odd]
    return [*found, _duplex_loss(subject, usual)] if usual else found


def _duplex_loss(subject: Subject, lost: Sequence[_Lost]) -> Finding:
    """Returns the finding of kinds of which the first loses most."""
    each, odd = lost[0].middle, lost[0].is_odd
    share = each.share_interval
    parts = []
    for one in lost[:NAMED]:
        rate, interval = one.middle.carried((0, 1))
        paths = f" ({of_pairs(len(one.slowed), one.of, 'path')})" if one.of > 1 else ""
        parts.append(
            f"{one.kind.bidirectional} {_rate_text(rate, interval)}, "
            f"{one.middle.share:.0%} of the sum{paths}"
        )
    transfers = [transfer for one in lost for each in one.slowed for transfer in each.transfers]
    return Finding(
        id="duplex-loss",
        severity="warning" if odd else "info",
        statement="bidirectional bandwidth is less than the sum of both directions alone: "
        + "; ".join(parts),
        effect=1 - each.share,
        interval=Interval(1 - share.high, 1 - share.low) if share else None,
        devices=subject.gpus(place for t in transfers for place in t.path.places),
        exhibits=tuple(e for one in lost[:NAMED] for e in _exhibits(one.middle, (0, 1))),
        remedy=f"compare these paths with their equivalents{_compared(lost[0].kind)}"
        if odd
        else "",
    )


def _compared(kind: Kind) -> str:
    """What of the hardware to compare: of messages and of what CPUs copy nothing is known to be."""
    return ": slot, width and firmware settings" if kind.shows_hardware else ""


# Sets of transfers that share a bottleneck.


def _of_sets(subject: Subject, sets: Sequence[Together]) -> list[Finding]:
    """One for each group of connected pairs, and one for each shape of larger set that pairs do not
    explain; stars share the link of their one GPU by nature."""
    pairs = [
        each
        for each in sets
        if len(each.transfers) == 2 and not _is_star(each) and not each.point.workload.shared
    ]
    joined = _joined([each for each in pairs if each.is_slowed])
    paired, shared = _ways(pairs), list(map(_ways, joined))
    shapes: dict[str, Together] = {}
    for each in sets:
        paths = _ways([each])
        known_by_pairs = any(paths <= group or group <= paths <= paired for group in shared)
        if _is_star(each) or (known_by_pairs and not each.point.workload.shared):
            continue
        best = shapes.setdefault(_shape(each), each)
        if _rank(each, subject) < _rank(best, subject):
            shapes[_shape(each)] = each
    return [
        *(_connected(subject, group) if len(group) > 1 else _shared(subject, group[0])
          for group in joined),
        *(_shared(subject, each) for each in shapes.values() if each.is_slowed),
    ]  # fmt: skip


def _joined(pairs: Sequence[Together]) -> list[list[Together]]:
    """Pairs that have transfers in common, directly or by others."""
    groups: list[list[Together]] = []
    for each in pairs:
        ways = _ways([each])
        joined = [group for group in groups if _ways(group) & ways]
        apart = [group for group in groups if not _ways(group) & ways]
        groups = [*apart, [*chain.from_iterable(reversed(joined)), each]]
    return groups


def _ways(found: Sequence[Together]) -> set[str]:
    """The ways of all their transfers."""
    return {transfer.way for each in found for transfer in each.transfers}


def _shape(each: Together) -> str:
    """Sets of one name, by whatever executor, show the same links."""
    shape = name_of(each.point.workload).partition(" ")[0]
    buffer = " (shared)" if each.point.workload.shared else ""
    return f"{shape}{buffer}" if "-" in shape and "@" not in shape else each.curve.text


def _rank(each: Together, subject: Subject) -> tuple[bool, bool, float]:
    """Ranks sets of one shape: first those with a clear answer; then those by the reference
    executor, for kernels may be slowed if links are not; then the most precise."""
    span = each.decision.interval
    executor = subject.machine.traits.executor(each.transfers[0].path.executor)
    unclear = each.decision.outcome == "no change found"
    return unclear, executor.reference != "gpu", span.width if span else math.inf


def _is_star(each: Together) -> bool:
    """All go out of one GPU, or all into one."""
    sources, destinations = ({t.path.places[end] for t in each.transfers} for end in (0, 1))
    return any(len(s) == 1 and next(iter(s)).kind == "gpu" for s in (sources, destinations))


def _connected(subject: Subject, pairs: Sequence[Together]) -> Finding:
    """Returns the finding of transfers that share something two by two."""
    middle = sorted(pairs, key=lambda each: each.point.rate)[len(pairs) // 2]
    members = list({t.way: t for each in pairs for t in each.transfers}.values())
    rate, span = middle.carried((0, 1))
    return _bottleneck(
        subject,
        middle,
        (0, 1),
        members,
        f"{len(members)} transfers share a bottleneck: {len(pairs)} pairs of them are slower "
        f"together: {_rate_text(rate, span)} instead of "
        f"{format_rate(middle.alone_rate, OF_SUM)} GB/s ({_ends(members)})",
        "run transfers together that do not share it",
    )


def _shared(subject: Subject, each: Together) -> Finding:
    """Returns the finding of a set, or of its slowest group."""
    groups = each.groups or (tuple(range(len(each.transfers))),)
    group, *further = groups
    members = [each.transfers[n] for n in group]
    rate, span = each.carried(group)
    alone = [each.alone[n].rate for n in group]
    total, is_buffer = len(each.transfers), each.point.workload.shared
    who = f"all {total}" if len(group) == total else f"{len(group)} of {total}"
    more = f"; {count(len(further), 'other group')} slowed less" if further else ""
    # of several groups the sum comes first
    whole = (
        f"together {_rate_text(*each.carried(range(total)))} of "
        f"{format_rate(each.alone_rate, OF_SUM)} GB/s alone; "
        if further
        else ""
    )
    remedy = ""
    if len(members) > 2:
        remedy = subject.surveyed(
            "measure pairs to see which of them share a bottleneck: "
            f"{shlex.join(['waywiser', 'survey', *subject.launch])} "
            f"--workload '{members[0].way}; {members[1].way}'"
        )
    return _bottleneck(
        subject,
        each,
        group,
        members,
        f"{each.curve.name}: {whole}{who} transfers share "
        f"{'one buffer' if is_buffer else 'a bottleneck'} that carries {_rate_text(rate, span)}, "
        f"and alone they add up to {format_rate(sum(alone), OF_SUM)} GB/s "
        f"({_ends(members)}, {_sizes(members)}{more})",
        "give each transfer a buffer of its own" if is_buffer else remedy,
        "warning" if rate < max(alone) or is_buffer else "info",
    )


def _sizes(members: Sequence[Transfer]) -> str:
    least, most = (end(transfer.bytes for transfer in members) for end in (min, max))
    return size_span(least, most) + (" each" if least == most else "")


def _bottleneck(
    subject: Subject,
    each: Together,
    group: Sequence[int],
    members: Sequence[Transfer],
    statement: str,
    remedy: str,
    severity: Severity = "info",
) -> Finding:
    """Returns the finding of what a group of a set's transfers carries of the sum alone."""
    rate, span = each.carried(group)
    alone = sum(each.alone[n].rate for n in group)
    return Finding(
        id=SHARED,
        severity=severity,
        statement=f"{statement}{_who(subject, members)}",
        effect=1 - rate / alone,
        interval=Interval(1 - span.high / alone, 1 - span.low / alone) if span else None,
        devices=subject.gpus(place for t in members for place in t.path.places),
        exhibits=tuple(_exhibits(each, group)),
        remedy=remedy,
    )


def _who(subject: Subject, transfers: Sequence[Transfer]) -> str:
    """What their GPUs have in common, if not all GPUs take part."""
    places = [place for transfer in transfers for place in transfer.path.places]
    gpus = {place.index for place in places if place.kind == "gpu"}
    machine, sides = subject.machine, subject.overview.sides
    if gpus == {gpu.index for gpu in machine.gpus}:
        return ""
    for node in machine.numa:
        if gpus == {gpu.index for gpu in machine.gpus if gpu.numa == node.index}:
            return f"; they are the GPUs of numa:{node.index}"
    if sides is not None and gpus in map(set, sides.groups):
        return "; they are the GPUs of one hidden side"
    return ""


def _ends(transfers: Sequence[Transfer]) -> str:
    return named([f"{t.path.source.place} -> {t.path.destination.place}" for t in transfers])


def _rate_text(rate: float, span: Interval | None) -> str:
    """``101.2 GB/s (101.0–101.5)``."""
    if span is None:
        return f"{format_rate(rate)} GB/s"
    half = relative(rate, span, of_rate=True)
    low, high = format_rate(span.low, half), format_rate(span.high, half)
    return f"{format_rate(rate, half)} GB/s ({low}–{high})"


def _exhibits(each: Together, group: Sequence[int]) -> Iterator[Exhibit]:
    """The bandwidth of a group of transfers together, and of each alone."""
    rate, span = each.carried(group)
    yield Exhibit(each.point.text, "bandwidth together", rate, "B/s", span)
    for n in group[:NAMED]:
        yield replace(each.alone[n].exhibit(), what="bandwidth alone")
