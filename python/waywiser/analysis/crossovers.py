"""Which way is best where: by memory and executor over size, and over the size of pieces.

Two answers. *Use which way where* is the shortest table by which a program loses no more than a
few percent at any size (`waywiser.stats.policy`). *Duels* are pairs of ways that differ in one
thing, pageable or pinned memory say, with the sizes at which each wins and by how much
(`waywiser.stats.duel`). Lists and boxes are compared over the size of their pieces
(`waywiser.series.overtaking`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from waywiser.analysis.answer import Answer, Exhibit, Finding
from waywiser.analysis.crossover_tables import (
    MATTERS,
    laid_out,
    of_duels,
    of_layouts,
    of_ways,
    sizes_text,
)
from waywiser.analysis.duels import Duel, duels, is_explicit, timed
from waywiser.analysis.subject import Subject
from waywiser.analysis.ways import groups, way
from waywiser.series.overtaking import Overtaking
from waywiser.stats.duel import Stretch
from waywiser.stats.policy import TOLERANCE
from waywiser.topology.traits import Traits
from waywiser.words import Memory, Place, Transfer, format_bytes
from waywiser.words.number_format import count

QUESTION = "crossovers"
MOST_FINDINGS = 8
MOST_OF_LAYOUTS = 2
LEAST_DECIDED = 2
"""Sizes at which somebody wins: one alone is in the table, and no finding."""
MOST_PLACES = 3
"""Named in one finding."""
LEAST_IMPORTANT = 6
"""Of a duel that nobody asks for."""

_NUMBER = re.compile(r"\d+")


def answer(subject: Subject) -> Answer:
    found = groups(subject)
    traits = subject.machine.traits
    fought = [each for group in found for each in duels(group, traits)]
    fought.sort(key=lambda each: (_importance(each, traits), not _crosses(each), -each.most))
    lists = laid_out(subject)
    findings = [_finding(subject, each) for each in _together(fought)[:MOST_FINDINGS]]
    findings += [_of_layout(subject, each) for each in _worth(lists)]
    tables = (of_ways(found, traits), of_duels(fought), of_layouts(lists))
    return Answer(
        question=QUESTION,
        title="Which way is best where, and where does one overtake another?",
        summary=_summary(fought, lists),
        findings=tuple(findings),
        tables=tuple(table for table in tables if table is not None),
        unanswered=() if fought or lists else ("which way is best: there are no two to compare",),
        judged=bool(fought or lists),
    )


def _importance(found: Duel, traits: Traits) -> int:
    """Duels that people ask for come first: memory of the host against memory that feeds GPUs,
    executors against the alternative that they declare (of managed memory first), managed memory
    against explicit copies, peer access on against off. All others come after them, those that
    cross first."""
    one, other = found.first.transfer, found.second.transfer
    if one is None or other is None or not _places(found):
        return LEAST_IMPORTANT
    known = [traits.executor(each.path.executor) for each in (one, other)]
    if one.path.executor != other.path.executor:
        if is_explicit(one, other, traits):
            return 3 if one.path.destination.place.kind == "gpu" else 4
        declared = {each.name: each.alternative for each in known if each.alternative}
        names = frozenset(found.names)
        if any(names == {own, other.executor} for own, other in declared.items()):
            managed = any(traits.memory(end.kind).migrates for end in _ends(one))
            return 1 if managed else 2
        return LEAST_IMPORTANT
    pageable = traits.reference_memory("host", "numa")
    if frozenset(found.names) == {pageable, traits.reference_memory("gpu", "numa")}:
        return 0
    bare, off = sorted((one, other), key=lambda each: len(each.parameters))
    if known[0].reference == "gpu" and not bare.parameters and off.parameters == {"peer": "off"}:
        return 5
    return LEAST_IMPORTANT


def _ends(transfer: Transfer) -> tuple[Memory, Memory]:
    return transfer.path.source, transfer.path.destination


def _crosses(found: Duel) -> bool:
    return len(set(_winners(found))) > 1


def _winners(found: Duel) -> tuple[str, ...]:
    """The names in the order in which they win, each change once."""
    names = [_name(found, stretch) for stretch in found.decided]
    return tuple(name for n, name in enumerate(names) if n == 0 or name != names[n - 1])


def _together(fought: Sequence[Duel]) -> list[list[Duel]]:
    """Duels of the same two with the same winners: one for each two places, by the memory that
    comes first."""
    found: dict[tuple[frozenset[str], tuple[str, ...]], dict[str, Duel]] = {}
    for each in fought:
        if each.most >= MATTERS and _sizes_decided(each) >= LEAST_DECIDED:
            key = (frozenset(each.names), _winners(each))
            places = found.setdefault(key, {})
            former = places.get(each.pair.text)
            if former is None or each.first.text < former.first.text:
                places[each.pair.text] = each
    return list(_news(list(by_place.values()) for by_place in found.values()))


def _sizes_decided(found: Duel) -> int:
    sizes = [point.bytes for point in found.first.points if found.second.at(point.bytes)]
    return sum(s.low <= size <= s.high for s in found.decided for size in sizes)


def _news(found: Iterable[list[Duel]]) -> Iterator[list[Duel]]:
    """Without what says nothing new: who else beats the same one at the same places, and other
    numbers of the same setting."""
    told: set[tuple[str, ...]] = set()
    for alike in found:
        first = alike[0]
        if _crosses(first):
            names = sorted(_NUMBER.sub("#", name) for name in first.names)
            keys = {(*names, each.pair.text) for each in alike}
        else:
            loser = _loser(first, first.decided[0])
            keys = {(loser, each.pair.text) for each in alike}
        if not keys <= told:
            yield alike
        told |= keys


def _finding(subject: Subject, alike: Sequence[Duel]) -> Finding:
    first = alike[0]
    shown = alike[:MOST_PLACES]
    text = "; ".join(_where(each) for each in shown)
    if len(alike) > len(shown):
        text += f"; and {len(alike) - len(shown)} further pairs of places"
    return Finding(
        id="overtakes" if _crosses(first) else "faster",
        severity="info",
        statement=f"{_head(first)}: {text}",
        effect=max(each.most for each in alike),
        devices=tuple(map(subject.device, dict.fromkeys(chain(*map(_places, alike))))),
        exhibits=tuple(chain.from_iterable(map(_exhibits, shown))),
        remedy=_remedy(first),
    )


def _places(found: Duel) -> list[Place]:
    both = dict.fromkeys((found.pair.source, found.pair.destination))
    return [place for place in both if place.kind == "gpu"]


def _head(found: Duel) -> str:
    winners = _winners(found)
    if _crosses(found):
        return f"which of {found.names[0]} and {found.names[1]} is faster depends on the size"
    return f"{winners[0]} is faster than {_loser(found, found.decided[0])}"


def _where(found: Duel) -> str:
    place = f"{found.pair.text} ({found.common})" if found.common else found.pair.text
    if _crosses(found):
        won = [f"{_name(found, s)} {sizes_text(s)} ({_times(s)})" for s in found.decided]
        text = f"{place} {', '.join(won)}"
    else:
        won = [f"{_times(s)} {sizes_text(s)}" for s in found.decided]
        text = f"{place} {', '.join(won)}"
    if found.of:
        text += f"; so on {_of_all(found.like + 1, found.of + 1)} such pairs of places"
    return text


def _of_all(some: int, total: int) -> str:
    if some == total:
        return "both" if total == 2 else f"all {total}"
    return f"{some} of {total}"


def _name(found: Duel, stretch: Stretch) -> str:
    return found.names[0 if stretch.winner == "first" else 1]


def _loser(found: Duel, stretch: Stretch) -> str:
    return found.names[1 if stretch.winner == "first" else 0]


def _times(stretch: Stretch) -> str:
    """``1.1 to 5.4 times as fast``."""
    low, high = _ratio(1 + max(stretch.least, 0)), _ratio(1 + stretch.most)
    if low == high:
        return f"{high} times as fast"
    return f"{f'up to {high}' if low == '1.00' else f'{low} to {high}'} times as fast"


def _ratio(value: float) -> str:
    """``1.04``, ``1.3``, ``38``: never one that says nothing."""
    return f"{value:.2f}" if value < 1.1 else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _remedy(found: Duel) -> str:
    """What to use, of all that was measured between the two places at these sizes."""
    better = list(dict.fromkeys(way for each in found.decided if (way := _better(found, each))))
    if better:
        return f"use neither, but what is faster than both at these sizes: {', '.join(better)}"
    if not _crosses(found):
        return f"use {_name(found, found.decided[0])} where the program can choose"
    told = []
    for winner, won in groupby(found.decided, key=lambda stretch: stretch.winner):
        first, *rest = won
        whole = Stretch(winner, first.low, (rest or [first])[-1].high, first.least, first.most)
        told.append(f"{_name(found, whole)} {sizes_text(whole)}")
    return f"choose by size: {', '.join(told)}"


def _better(found: Duel, stretch: Stretch) -> str:
    """The way that is faster than the winner at most sizes of a stretch, the most frequent one;
    empty if there is none. Only what moves bytes between the same places can replace it."""
    winner = found.first if stretch.winner == "first" else found.second
    inside = [point for point in winner.points if stretch.low <= point.bytes <= stretch.high]
    ahead: list[str] = []
    for point in inside:
        others = [(other, at) for other in found.pair.curves if (at := other.at(point.bytes))]
        times = {
            way(other.transfer): timed(at, point)
            for other, at in others
            if other is not winner and other.transfer is not None
        }
        faster = [name for name, (theirs, ours) in times.items()
                  if theirs.seconds * (1 + TOLERANCE) < ours.seconds]  # fmt: skip
        if faster:
            ahead.append(min(faster, key=lambda name: times[name][0].seconds))
    if 2 * len(ahead) <= len(inside):
        return ""
    return max(dict.fromkeys(ahead), key=ahead.count)


def _exhibits(found: Duel) -> Iterator[Exhibit]:
    """Both ways where the margin is largest."""
    widest = max(found.decided, key=lambda stretch: stretch.most)
    common = [
        (point, other)
        for point in found.first.points
        if widest.low <= point.bytes <= widest.high
        and (other := found.second.at(point.bytes)) is not None
    ]

    def margin(n: int) -> float:
        a, b = timed(*common[n])
        return max(a.seconds / b.seconds, b.seconds / a.seconds)

    pair = common[max(range(len(common)), key=margin)]
    for point, seen in zip(pair, timed(*pair), strict=True):
        yield Exhibit(point.line.workload, "time", seen.seconds, "s", seen.interval)


def _worth(lists: Sequence[Overtaking]) -> list[Overtaking]:
    """Of the largest amounts of bytes, those whose ways differ most: one for each two memories."""
    largest: dict[tuple[str, str], Overtaking] = {}
    for each in lists:
        key = (each.ends, each.kind)
        if key not in largest or each.bytes > largest[key].bytes:
            largest[key] = each
    clear = [each for each in largest.values() if _margin(each) >= MATTERS]
    return sorted(clear, key=_margin, reverse=True)[:MOST_OF_LAYOUTS]


def _margin(found: Overtaking) -> float:
    return max((each.margin for each in found.fastest if each.clear), default=0.0)


def _of_layout(subject: Subject, found: Overtaking) -> Finding:
    ways = list(dict.fromkeys(each.way for each in found.fastest))
    what = "boxes" if found.kind == "box" else "lists"
    places = [Place.parse(end.partition("@")[2]) for end in found.ends.split(" -> ")]
    changes = len(ways) > 1
    return Finding(
        id="layout-overtakes" if changes else "layout-faster",
        severity="info",
        statement=f"the fastest way for {what} {found.ends} of {format_bytes(found.bytes)}"
        f"{' depends on their pieces' if changes else ''}: "
        f"{', '.join(found.told)}; up to {_ratio(1 + _margin(found))} times as fast as the second",
        effect=_margin(found),
        devices=tuple(
            subject.device(place) for place in dict.fromkeys(places) if place.kind == "gpu"
        ),
        remedy="choose by the size of pieces" if changes else f"move such {what} by {ways[0]}",
    )


def _summary(fought: Sequence[Duel], lists: Sequence[Overtaking]) -> str:
    if not fought and not lists:
        return "No two ways between the same places differ in one thing alone."
    crossing = sum(map(_crosses, fought))
    even = sum(not each.decided for each in fought)
    text = (
        f"Of {count(len(fought), 'pair')} of ways that differ in one thing, {crossing} overtake one"
        f" another as sizes grow, {len(fought) - crossing - even} have one winner and {even} are "
        "even"
    )
    if lists:
        text += f"; {count(len(lists), 'comparison')} over the size of pieces"
    return f"{text}."
