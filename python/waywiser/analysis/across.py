"""The same questions of several machines, in the shape of the thesis chapter's tables.

Rows are kinds of transfer, columns are machines; a cell links to the curve that shows why. Source
of the form: C. Pearson, M.S. thesis, 2018, the tables of affinity, anisotropy and identical links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.analysis import affinity, anisotropy, choices, identical
from waywiser.analysis.anisotropy import faster_direction
from waywiser.analysis.answer import Answer, Cell, Table
from waywiser.analysis.curve_pairs import CurveGroup, Wording, cell, signed, where
from waywiser.analysis.peer_groups import PeerResult, peer_groups
from waywiser.analysis.regimes import RATE_BYTES
from waywiser.analysis.subject import Subject
from waywiser.stats.decision import THRESHOLD, Decision
from waywiser.words import format_bytes
from waywiser.words.number_format import format_number

Cells = dict[str, Cell]
"""By row."""

UNSURE = "? not determined (< n %: a larger difference would have been found), — not measured."
LARGE = f"at {format_bytes(RATE_BYTES)} and more"


def answer(subjects: Sequence[Subject]) -> Answer:
    """Of one machine and more."""
    found = tables(subjects)
    names = ", ".join(names_of(subjects))
    return Answer(
        question="across",
        title="How do machines compare in kind?",
        summary=f"{len(found)} tables over {names}." if found else "Nothing was measured of both.",
        tables=found,
    )


def tables(subjects: Sequence[Subject]) -> tuple[Table, ...]:
    """Those of which any machine tells something."""
    made = [
        _table(
            "Affinity",
            "transfer",
            subjects,
            _affinity,
            f"✓ memory of another node is slower or faster by more than {THRESHOLD:.0%} {LARGE}, "
            f"× it is as fast, {UNSURE}",
        ),
        _table(
            "Anisotropy",
            "transfer",
            subjects,
            _anisotropy,
            f"✓ one way is faster by more than {THRESHOLD:.0%} {LARGE} (→ as written, ← the way "
            f"back), × they are as fast, {UNSURE}",
        ),
        _table(
            "Identical links",
            "transfer",
            subjects,
            _identical,
            f"✓ equivalent paths differ by more than {THRESHOLD:.0%} {LARGE}, × all are "
            f"equivalent, {UNSURE}",
        ),
        *(_choice(title, subjects) for title in _titles(subjects)),
    ]
    return tuple(table for table in made if table.rows)


def _table(
    title: str,
    first: str,
    subjects: Sequence[Subject],
    cells: Callable[[Subject], Cells],
    caption: str,
) -> Table:
    columns = [cells(subject) for subject in subjects]
    rows = list(dict.fromkeys(row for column in columns for row in column))
    return Table(
        title=title,
        columns=(first, *names_of(subjects)),
        rows=tuple(
            (Cell(row), *(column.get(row, Cell("—")) for column in columns)) for row in rows
        ),
        caption=caption,
    )


def names_of(subjects: Sequence[Subject]) -> list[str]:
    """Of machines, those of one name numbered: ``vm``, ``vm (2)``."""
    seen: dict[str, int] = {}
    names = []
    for subject in subjects:
        seen[subject.name] = seen.get(subject.name, 0) + 1
        again = f" ({seen[subject.name]})" if seen[subject.name] > 1 else ""
        names.append(f"{subject.name}{again}")
    return names


def _affinity(subject: Subject) -> Cells:
    return {group.label: _cell(group, signed) for group in affinity.by_kind(subject)}


def _anisotropy(subject: Subject) -> Cells:
    return {group.label: _cell(group, faster_direction) for group in anisotropy.by_kind(subject)}


def _cell(group: CurveGroup, effect: Wording) -> Cell:
    """That of bandwidth; if no difference was found, with the sizes below that differ."""
    result = group.bandwidth
    if result is None:
        return Cell("—")
    found = cell(result, f"{effect(result.evidence[0])}{where(result)}")
    if result.verdict != "different":
        for regime in ("medium", "latency"):
            below = group.of(regime)
            if below is not None and below.is_of_kind:
                text = ", ".join(filter(None, (found.text, f"{regime} differs")))
                return Cell(text, found.mark, below.pairs[0].a.text)
    return found


def _identical(subject: Subject) -> Cells:
    rows: dict[str, list[PeerResult]] = {}
    for peers in peer_groups(subject):
        rows.setdefault(str(peers[0].kind), []).extend(peers)
    return {row: identical.group_cell(peers) for row, peers in rows.items()}


def _titles(subjects: Sequence[Subject]) -> list[str]:
    """Of the choices that any machine has."""
    found = (each.title for subject in subjects for each in choices.chosen(subject))
    return list(dict.fromkeys(found))


def _choice(title: str, subjects: Sequence[Subject]) -> Table:
    def cells(subject: Subject) -> Cells:
        return {
            found.group.label: _faster(found)
            for found in choices.chosen(subject)
            if found.title == title
        }

    return _table(
        title.capitalize(),
        "direction",
        subjects,
        cells,
        f"Which is faster {LARGE}, and how many times; ✓ they differ by more than {THRESHOLD:.0%}, "
        f"× they do not, {UNSURE}",
    )


def _faster(found: choices.Chosen) -> Cell:
    def times(decision: Decision) -> str:
        ratio = decision.ratio
        name, factor = (found.one, ratio) if ratio >= 1 else (found.other, 1 / ratio)
        return f"{name} ×{format_number(factor, 0.02)}"

    result = found.group.bandwidth
    return cell(result, f"{times(result.evidence[0])}{where(result)}" if result else "")
