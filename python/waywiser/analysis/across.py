"""The same questions of several machines, in the shape of the thesis chapter's tables.

Rows are kinds of transfer, columns are machines; a cell links to the curve that shows why. Source
of the form: C. Pearson, M.S. thesis, 2018, the tables of affinity, anisotropy and identical links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from waywiser.analysis import affinity, anisotropy, identical
from waywiser.analysis.alternatives import Choice, alternatives
from waywiser.analysis.anisotropy import faster_direction
from waywiser.analysis.answer import Answer, Cell, Table, table
from waywiser.analysis.curve_pairs import REGIMES, CurveGroup
from waywiser.analysis.pair_answers import Wording, cell, signed
from waywiser.analysis.peer_groups import PeerResult, peer_groups
from waywiser.analysis.regimes import RATE_BYTES
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import NOT_DETERMINED
from waywiser.stats.decision import THRESHOLD, Decision
from waywiser.words import format_bytes
from waywiser.words.number_format import format_number

Cells = dict[str, Cell]
"""By row."""

UNSURE = f"{NOT_DETERMINED}, — not measured."
DIFFER = f"more than {THRESHOLD:.0%}"
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
    """Those that any machine has a row of."""
    choices = (each.title for subject in subjects for each, _ in alternatives(subject))
    return (
        *_table(
            "Affinity",
            "transfer",
            subjects,
            _affinity,
            f"✓ memory of another node is slower or faster by {DIFFER} {LARGE}, × it is as fast",
        ),
        *_table(
            "Anisotropy",
            "transfer",
            subjects,
            _anisotropy,
            f"✓ one way is faster by {DIFFER} {LARGE} (→ as written, ← the way back), × they are "
            "as fast",
        ),
        *_table(
            "Identical links",
            "transfer",
            subjects,
            _identical,
            f"✓ equivalent paths differ by {DIFFER} {LARGE}, × all are equivalent",
        ),
        *chain.from_iterable(
            _table(
                title.capitalize(),
                "direction",
                subjects,
                partial(_choice, title),
                f"Which is faster {LARGE}, and how many times; ✓ they differ by {DIFFER}, × they "
                "do not",
            )
            for title in dict.fromkeys(choices)
        ),
    )


def _table(
    title: str,
    first: str,
    subjects: Sequence[Subject],
    cells: Callable[[Subject], Cells],
    marks: str,
) -> tuple[Table, ...]:
    columns = [cells(subject) for subject in subjects]
    rows = dict.fromkeys(row for column in columns for row in column)
    return table(
        title,
        (first, *names_of(subjects)),
        ((Cell(row), *(column.get(row, Cell("—")) for column in columns)) for row in rows),
        f"{marks}, {UNSURE}",
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
    found = cell(group.bandwidth, effect)
    if group.bandwidth is not None and group.bandwidth.verdict != "different":
        for regime in REGIMES[1:]:
            below = group.regimes.get(regime)
            if below is not None and below.is_of_kind:
                text = ", ".join(filter(None, (found.text, f"{regime} differs")))
                return Cell(text, found.mark, below.pairs[0].a.text)
    return found


def _identical(subject: Subject) -> Cells:
    rows: dict[str, list[PeerResult]] = {}
    for peers in peer_groups(subject):
        rows.setdefault(str(peers[0].kind), []).extend(peers)
    return {row: identical.group_cell(peers) for row, peers in rows.items()}


def _choice(title: str, subject: Subject) -> Cells:
    return {
        group.label: cell(group.bandwidth, partial(_times, choice))
        for choice, group in alternatives(subject)
        if choice.title == title
    }


def _times(choice: Choice, decision: Decision) -> str:
    """``pinned ×2.1``: which of the two is faster, and how many times."""
    ratio = decision.ratio
    name, factor = (choice.one, ratio) if ratio >= 1 else (choice.other, 1 / ratio)
    return f"{name} ×{format_number(factor, 0.02)}"
