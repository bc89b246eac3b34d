"""The same questions of several machines, in the shape of the thesis chapter's tables.

Rows are kinds of transfer, columns are machines; a cell links to the curve that shows why. Source
of the form: C. Pearson, M.S. thesis, 2018, the tables of affinity, anisotropy and identical links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.analysis import affinity, anisotropy, choices, identical
from waywiser.analysis.answer import Answer, Cell, Table
from waywiser.analysis.grouped import Grouped, at_most, percent
from waywiser.analysis.related import RATE_BYTES
from waywiser.analysis.subject import Subject
from waywiser.analysis.twins import Twin
from waywiser.stats.equivalence import MARGIN
from waywiser.stats.figures import format_number
from waywiser.words import format_bytes

Cells = dict[str, Cell]
"""By row."""

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
            f"✓ memory of another node is slower or faster by more than {MARGIN:.1%} {LARGE}, × it "
            "is as fast, ? not to be told, — not measured.",
        ),
        _table(
            "Anisotropy",
            "transfer",
            subjects,
            _anisotropy,
            f"✓ one way is faster by more than {MARGIN:.1%} {LARGE} (→ as written, ← the way "
            "back), × they are as fast, ? not to be told, — not measured.",
        ),
        _table(
            "Identical links",
            "transfer",
            subjects,
            _identical,
            f"✓ paths that ought to be equal differ by more than {MARGIN:.1%} {LARGE}, × all are "
            "equal, ? not to be told, — there are no twins.",
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
    return {group.label: _cell(group, _more_or_less) for _, group in affinity.by_kind(subject)}


def _anisotropy(subject: Subject) -> Cells:
    return {group.label: _cell(group, _there_or_back) for _, group in anisotropy.by_kind(subject)}


def _cell(group: Grouped, told: Callable[[float], str]) -> Cell:
    """The mark of large sizes; where they are equal, the sizes that differ alone."""
    rates = group.rates
    series = group.pairs[0].a.text
    if not rates.pairs:
        return Cell("—", "", series)
    if rates.differing:
        pair, at = rates.typical
        few = "" if rates.verdict == "different" else f" ({len(rates.differing)} of "
        few = f"{few}{len(rates.pairs)})" if few else ""
        return Cell(f"{told(at.comparison.ratio)}{at_most(rates)}{few}", rates.mark, pair.a.text)
    for part, name in ((group.medium, "medium"), (group.small, "small")):
        if part.verdict == "different":
            return Cell(f"{name} sizes only", rates.mark, part.typical[0].a.text)
    return Cell("", rates.mark, series)


def _more_or_less(ratio: float) -> str:
    return f"{'+' if ratio >= 1 else '−'}{percent(ratio - 1)}"


def _there_or_back(ratio: float) -> str:
    return f"← {percent(ratio - 1)}" if ratio >= 1 else f"→ {percent(1 / ratio - 1)}"


def _identical(subject: Subject) -> Cells:
    rows: dict[str, list[Twin]] = {}
    for twins in identical.twins_of(subject):
        rows.setdefault(str(twins[0].kind), []).extend(twins)
    return {row: _twins(twins) for row, twins in rows.items()}


def _twins(twins: Sequence[Twin]) -> Cell:
    differ = [twin for twin in twins if twin.verdict in ("more", "less")]
    if differ:
        worst = max(differ, key=lambda twin: abs(twin.effect))
        text = f"{_more_or_less(1 + worst.effect)} ({len(differ)} of {len(twins)})"
        return Cell(text, "yes", worst.curve)
    equal = all(twin.verdict == "equal" for twin in twins)
    slowest = max(twins, key=lambda twin: twin.effect)
    return Cell("", "no" if equal else "unclear", slowest.curve)


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
        f"Which is faster {LARGE}, and how many times; ✓ they differ by more than {MARGIN:.1%}, "
        "× they do not, ? not to be told, — not measured.",
    )


def _faster(found: choices.Chosen) -> Cell:
    rates = found.group.rates
    if not rates.pairs:
        return Cell("—")
    if not rates.differing:
        return Cell("", rates.mark, rates.pairs[0].a.text)
    pair, at = rates.typical
    ratio = at.comparison.ratio
    name, times = (found.other, ratio) if ratio >= 1 else (found.one, 1 / ratio)
    text = f"{name} ×{format_number(times, 0.02)} at {format_bytes(at.bytes)}"
    return Cell(text, rates.mark, pair.a.text)
