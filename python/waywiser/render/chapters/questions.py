"""Each question with its answer, its findings and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.curves import Answer, Finding, Mark
from waywiser.render.assessment import worst_of
from waywiser.render.entry import Entry
from waywiser.render.parts import (
    Block,
    Fold,
    Listing,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    Words,
)
from waywiser.render.remarks import question_anchor, remark
from waywiser.render.views.answers import answer_sheet
from waywiser.words import Severity, count

OPEN_FINDINGS = 5
"""Findings of a question that are not folded."""

OPEN_ROWS = 10
"""A longer table is folded."""

MOST_ROWS = 200
"""Rows of a table or of findings; the rest is counted."""

MOST_UNANSWERED = 40

MARK: dict[Severity, Mark | Severity] = {"info": "", "warning": "warning", "error": "error"}
"""An answer without a finding has no mark: a tick beside a question would look like a yes."""


def questions(entries: Sequence[Entry]) -> Section:
    """How many questions are answered; then folded all answers in a table, and each question with
    its evidence by machine."""
    names = dict.fromkeys(a.question for entry in entries for a in entry.answers)
    several = len(entries) > 1
    sections = []
    for question in names:
        answers = [(e, a) for e in entries for a in e.answers if a.question == question]
        title = answers[0][1].title
        if not several:
            sections.append(_section(*answers[0], title, folded=True))
            continue
        below = tuple(_section(entry, answer, entry.name) for entry, answer in answers)
        sections.append(Section(f"question-{question}", title, (), below, folded=True))
    blocks: tuple[Block, ...] = ()
    if names:
        blocks = (Words(_counts(entries)), Fold("All answers in a table", (_answers(entries),)))
    return Section("questions", "Questions and evidence", blocks, tuple(sections))


def _counts(entries: Sequence[Entry]) -> str:
    """``8 questions: 7 answered, 1 not determined. Findings to review: Quality.``"""
    several = len(entries) > 1
    return " ".join(
        f"{entry.name}: {_counts_of(entry)}" if several else _counts_of(entry) for entry in entries
    )


def _counts_of(entry: Entry) -> str:
    answered = sum(answer.answered for answer in entry.answers)
    unknown = len(entry.answers) - answered
    left = f", {unknown} not determined" if unknown else ""
    text = f"{count(len(entry.answers), 'question')}: {answered} answered{left}."
    for severity, what in (("error", "Problems"), ("warning", "Findings to review")):
        found = [a.title.partition(":")[0] for a in entry.answers if worst_of(a) == severity]
        text += f" {what}: {', '.join(found)}." if found else ""
    return text


def _answers(entries: Sequence[Entry]) -> Sheet:
    """A row for each question, a column for each machine."""
    titles = {a.question: a.title for entry in entries for a in entry.answers}
    several = len(entries) > 1
    key = "" if several else entries[0].key
    return Sheet.of(
        "Questions and answers",
        ("question", *(entry.name if several else "answer" for entry in entries)),
        (
            (
                SheetCell(title, link=f"{key}question-{question}"),
                *(_answer(entry, question) for entry in entries),
            )
            for question, title in titles.items()
        ),
        "? a finding to review, × a problem.",
    )


def _answer(entry: Entry, question: str) -> SheetCell:
    for answer in entry.answers:
        if answer.question == question:
            return SheetCell(answer.summary, MARK[worst_of(answer)])
    return SheetCell("not asked")


def _section(entry: Entry, answer: Answer, title: str, *, folded: bool = False) -> Section:
    blocks: list[Block] = [Words(answer.summary, "lead")]
    blocks += _findings(entry, answer.findings)
    blocks += [_table(entry, table) for table in answer.tables if table.rows]
    if answer.unanswered:
        shown = answer.unanswered[:MOST_UNANSWERED]
        points = Listing(shown, len(answer.unanswered) - len(shown))
        blocks.append(Fold(f"Not answered ({len(answer.unanswered)})", (points,)))
    return Section(question_anchor(entry, answer), title, tuple(blocks), folded=folded)


def _findings(entry: Entry, findings: Sequence[Finding]) -> Iterator[Block]:
    remarks = tuple(remark(entry, finding) for finding in findings[:MOST_ROWS])
    if remarks:
        yield Remarks(remarks[:OPEN_FINDINGS])
    if more := remarks[OPEN_FINDINGS:]:
        left = len(findings) - len(remarks)
        note = (Words(f"and {left} more, in the analysis itself", "note"),) if left else ()
        yield Fold(count(len(more), "more finding"), (Remarks(more), *note))


def _table(entry: Entry, table: Sheet) -> Block:
    sheet = answer_sheet(table, entry.links.to, MOST_ROWS)
    if len(sheet.rows) <= OPEN_ROWS:
        return sheet
    return Fold(f"{table.title} ({count(len(table.rows), 'row')})", (sheet,))
