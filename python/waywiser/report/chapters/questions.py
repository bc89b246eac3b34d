"""Each question with its answer, its findings and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.answer import Answer, Finding, Table
from waywiser.report.entry import Entry
from waywiser.report.parts import (
    Block,
    Fold,
    Listing,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    SheetRow,
    Words,
)
from waywiser.report.remarks import question_anchor, remark
from waywiser.words.number_format import count

OPEN_FINDINGS = 5
"""Findings of a question that are not folded."""

OPEN_ROWS = 10
"""A longer table is folded."""

MOST_ROWS = 200
"""Rows of a table or of findings; the rest is counted."""

MOST_UNANSWERED = 40


def questions(entries: Sequence[Entry]) -> Section:
    """The answers by question, then by machine."""
    names = dict.fromkeys(a.question for entry in entries for a in entry.answers)
    several = len(entries) > 1
    sections = []
    for question in names:
        answers = [(e, a) for e in entries for a in e.answers if a.question == question]
        if not several:
            sections.append(_section(*answers[0], answers[0][1].title))
            continue
        below = tuple(_section(entry, answer, entry.name) for entry, answer in answers)
        sections.append(Section(f"question-{question}", answers[0][1].title, (), below))
    return Section("questions", "The questions", (), tuple(sections))


def _section(entry: Entry, answer: Answer, title: str) -> Section:
    blocks: list[Block] = [Words(answer.summary, "lead")]
    blocks += _findings(entry, answer.findings)
    blocks += [_table(entry, table) for table in answer.tables if table.rows]
    if answer.unanswered:
        shown = answer.unanswered[:MOST_UNANSWERED]
        points = Listing(shown, len(answer.unanswered) - len(shown))
        blocks.append(Fold(f"Not answered ({len(answer.unanswered)})", (points,)))
    return Section(question_anchor(entry, answer), title, tuple(blocks))


def _findings(entry: Entry, findings: Sequence[Finding]) -> Iterator[Block]:
    remarks = tuple(remark(entry, finding) for finding in findings[:MOST_ROWS])
    if remarks:
        yield Remarks(remarks[:OPEN_FINDINGS])
    if more := remarks[OPEN_FINDINGS:]:
        left = len(findings) - len(remarks)
        note = (Words(f"and {left} more, in the analysis itself", "note"),) if left else ()
        yield Fold(count(len(more), "more finding"), (Remarks(more), *note))


def _table(entry: Entry, table: Table) -> Block:
    rows = tuple(
        SheetRow(tuple(SheetCell(c.text, c.mark, link=entry.links.to(c.series)) for c in row))
        for row in table.rows[:MOST_ROWS]
    )
    left = len(table.rows) - len(rows)
    caption = f"{table.caption} {left} more rows are not shown.".strip() if left else table.caption
    sheet = Sheet(table.title, table.columns, rows, caption)
    if len(rows) <= OPEN_ROWS:
        return sheet
    return Fold(f"{table.title} ({count(len(table.rows), 'row')})", (sheet,))
