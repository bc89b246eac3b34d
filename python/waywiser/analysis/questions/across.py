"""The same questions for several machines, as tables in the form of the thesis chapter.

Rows are kinds of transfer, columns are machines; a cell links to the curve that is its evidence.
Further tables compare alternatives: pageable or pinned memory, peer access on or off, and what an
executor declares as its alternative, for example managed memory on demand or prefetched. Source
of the form: C. Pearson, M.S. thesis, 2018, the tables of affinity, anisotropy and identical links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path as FilePath
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.analysis.questions import affinity, anisotropy, identical
from waywiser.analysis.questions.anisotropy import slower_direction
from waywiser.analysis.questions.curve_pairs import REGIMES, CurveGroup, curve_groups
from waywiser.analysis.questions.pair_answers import Wording, cell, signed
from waywiser.analysis.questions.peer_groups import peer_groups
from waywiser.curves import (
    BANDWIDTH_BYTES,
    NOT_DETERMINED,
    Curve,
    Regime,
    Sheet,
    SheetCell,
    Subject,
    table,
)
from waywiser.curves.kinds import usual
from waywiser.machine import Traits
from waywiser.machine.traits import Alternative
from waywiser.stats import THRESHOLD, Decision
from waywiser.words import Path, Transfer, format_bytes, format_number, grouped

Cells = dict[str, SheetCell]
"""The cells of a table, by row."""

UNSURE = f"{NOT_DETERMINED}, — not measured."
DIFFER = f"more than {THRESHOLD:.0%}"
LARGE = f"at {format_bytes(BANDWIDTH_BYTES)} and more"


def tables(subjects: Sequence[Subject], names: Sequence[str] = ()) -> tuple[Sheet, ...]:
    """Those that any machine has a row of. ``names`` are those of the columns, by default those of
    the machines."""
    names = names or [subject.name for subject in subjects]
    by_kind = (
        _table(title, "transfer", names, map(cells, subjects), f"yes: {marks}")
        for title, cells, marks in KINDS
    )
    choices = [_by_choice(subject) for subject in subjects]
    by_direction = (
        _table(
            title.capitalize(), "direction", names, (each.get(title, {}) for each in choices),
            f"The faster one {LARGE}, and how many times as fast; yes: they differ by {DIFFER}, "
            "no: equal",
        )
        for title in dict.fromkeys(chain.from_iterable(choices))
    )  # fmt: skip
    return tuple(chain.from_iterable((*by_kind, *by_direction)))


def _table(
    title: str, first: str, names: Sequence[str], cells: Iterable[Cells], marks: str
) -> tuple[Sheet, ...]:
    columns = list(cells)
    rows = dict.fromkeys(row for column in columns for row in column)
    return table(
        title,
        (first, *names),
        (
            (SheetCell(row), *(column.get(row, SheetCell("—")) for column in columns))
            for row in rows
        ),
        f"{marks}, {UNSURE}",
    )


def names_of(subjects: Sequence[Subject], files: Sequence[str]) -> list[str]:
    """The names of the machines. Several profiles of one machine have the name of their file too
    (``vm, monday``), or the time of the survey if that is the same: ``vm, 2026-11-20 12:24``."""
    names = [subject.name for subject in subjects]
    found = []
    for n, name in enumerate(names):
        same = [other for other, each in enumerate(names) if each == name]
        stems = [FilePath(files[other]).stem for other in same]
        own = FilePath(files[n]).stem if len(set(stems)) == len(stems) else _time(subjects[n])
        found.append(f"{name}, {own}" if len(same) > 1 and own else name)
    return found


def _time(subject: Subject) -> str:
    """When its survey began, in UTC; empty if it was not recorded."""
    seen = subject.overview
    return (seen.runs[0].started if seen.runs else seen.created)[:16].replace("T", " ")


def _affinity(subject: Subject) -> Cells:
    return {group.label: _cell(group, signed) for group in affinity.by_kind(subject)}


def _anisotropy(subject: Subject) -> Cells:
    return {group.label: _cell(group, slower_direction) for group in anisotropy.by_kind(subject)}


def _cell(group: CurveGroup, effect: Wording) -> SheetCell:
    """The cell of bandwidth; if no difference was found, with the sizes below that differ."""
    found = cell(group.bandwidth, effect)
    if group.bandwidth is not None and group.bandwidth.outcome != "different":
        for regime in REGIMES[1:]:
            if (below := group.regimes.get(regime)) and below.is_of_kind:
                text = ", ".join(filter(None, (found.text, f"{regime} differs")))
                return SheetCell(text, found.mark, below.pairs[0].a.text)
    return found


def _identical(subject: Subject) -> Cells:
    rows = grouped((str(p[0].kind), peer) for p in peer_groups(subject) for peer in p)
    return {row: identical.group_cell(peers) for row, peers in rows.items()}


KINDS = (
    ("Affinity", _affinity,
     f"memory of another node is slower or faster by {DIFFER} {LARGE}, no: equal"),
    ("Anisotropy", _anisotropy,
     f"one direction is faster by {DIFFER} {LARGE} (-> as written, <- the opposite), no: equal"),
    ("Differences between equivalent paths", _identical,
     f"equivalent paths differ by {DIFFER} {LARGE}, no: all are equivalent"),
)  # fmt: skip
"""Tables with a row for each kind of transfer: title, cells, and what their marks mean."""


def _by_choice(subject: Subject) -> dict[str, Cells]:
    found = grouped((choice.title, (choice, group)) for choice, group in alternatives(subject))
    return {
        title: {
            group.label: cell(group.bandwidth, partial(_times, choice)) for choice, group in own
        }
        for title, own in found.items()
    }


def _times(choice: Choice, decision: Decision, _: Regime) -> str:
    """``pinned ×2.1``: which of the two is faster, and how many times."""
    ratio = decision.ratio
    name, factor = (choice.one, ratio) if ratio >= 1 else (choice.other, 1 / ratio)
    return f"{name} ×{format_number(factor, 0.02)}"


# Two methods for the same transfer.


class Choice(NamedTuple):
    """What is chosen between."""

    title: str
    """``pageable or pinned memory``."""
    one: str
    """As a cell says which is faster."""
    other: str
    counterpart: Callable[[Transfer], str | None]
    """The key (see `_key`) of the curve of the other, if the transfer is one of the one."""


def alternatives(subject: Subject) -> Iterator[tuple[Choice, CurveGroup]]:
    """Every choice of which a machine has both, by direction, which is the label of the group: its
    pairs are the one and the other."""
    traits = subject.machine.traits
    curves: dict[str, Curve] = {}
    for curve, _ in usual(subject):
        curves.setdefault(_key(curve.first_transfer), curve)
    executors = sorted({curve.first_transfer.path.executor for curve in curves.values()})
    for choice in _choices(executors, traits):
        pairs = grouped(
            (_direction(curve), (curve, other))
            for curve in curves.values()
            if (other := curves.get(choice.counterpart(curve.first_transfer) or "")) is not None
            and other is not curve
            and len(set(curve.first_transfer.path.places)) == 2
        )
        for direction, found in pairs.items():
            yield from ((choice, group) for group in curve_groups((direction, p) for p in found))


def _direction(curve: Curve) -> str:
    places = curve.first_transfer.path.places
    return " -> ".join("GPU" if place.kind == "gpu" else "host" for place in places)


def _choices(executors: Iterable[str], traits: Traits) -> Iterator[Choice]:
    """Choices between kinds of memory, of peer access, and those that executors declare."""
    pageable = traits.reference_memory("host", "numa")
    pinned = traits.reference_memory("gpu", "numa")

    def locked(transfer: Transfer) -> str | None:
        path = transfer.path
        if traits.executor(path.executor).reference != "gpu":
            return None
        replaced = _with_kind(path, pageable, pinned, traits)
        return _key(transfer, path=replaced) if replaced else None

    yield Choice(f"{pageable} or {pinned} memory", pageable, pinned, locked)
    yield Choice("peer access on or off", "on", "off", _without_peer_access)
    for name in executors:
        alternative = traits.executor(name).alternative
        if alternative is not None:
            question, own, other = alternative.question, alternative.own, alternative.other
            yield Choice(question, own, other, partial(_by_another, name, alternative))


def _without_peer_access(transfer: Transfer) -> str | None:
    on = transfer.parameters.get("peer", "on") == "on"
    return _key(transfer, peer="off") if on and _is_peer(transfer.path) else None


def _by_another(name: str, alternative: Alternative, transfer: Transfer) -> str | None:
    path = transfer.path
    if path.executor != name or (alternative.host_only and _is_peer(path)):
        return None
    return _key(transfer, path=replace(path, executor=alternative.executor))


def _key(transfer: Transfer, path: Path | None = None, peer: str = "") -> str:
    """A path with peer access on or off."""
    return f"{path or transfer.path} {peer or transfer.parameters.get('peer', 'on')}"


def _with_kind(path: Path, old: str, new: str, traits: Traits) -> Path | None:
    """The path with another kind of memory at the host; None if no end is a GPU's own memory."""
    if traits.reference_memory("gpu", "gpu") not in (end.kind for end in path.ends):
        return None
    one, other = (replace(end, kind=new if end.kind == old else end.kind) for end in path.ends)
    return Path(one, other, path.executor)


def _is_peer(path: Path) -> bool:
    return {place.kind for place in path.places} == {"gpu"}
