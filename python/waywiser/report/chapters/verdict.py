"""The first section: the status of the machine, and what to know of it."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.answer import Mark
from waywiser.report.assessment import assess, things, worst_of
from waywiser.report.entry import Entry
from waywiser.report.parts import Block, Remarks, Section, Sheet, SheetCell, SheetRow, Words
from waywiser.severity import Severity

MARK: dict[Severity, Mark | Severity] = {"info": "", "warning": "warning", "error": "error"}
"""An answer without a finding has no mark: a tick beside a question would look like a yes."""


def verdict(entries: Sequence[Entry]) -> Section:
    several = len(entries) > 1
    blocks: list[Block] = [assess(entry, entry.name if several else "") for entry in entries]
    for entry in entries:
        if not entry.subject.machine.gpus:
            whose = f" of {entry.name}" if several else ""
            why = entry.subject.machine.gpu_reason or "there is no GPU"
            blocks.append(Words(f"Host memory alone{whose} was measured: {why}."))
    below = []
    if found := things(entries):
        below.append(Section("first", "What to know first", (Remarks(found, ranked=True),)))
    if any(entry.answers for entry in entries):
        below.append(Section("asked", "What was asked", (_asked(entries),)))
    else:
        blocks.append(Words("No question could be asked of so little.", "note"))
    return Section("verdict", "Verdict", tuple(blocks), tuple(below))


def _asked(entries: Sequence[Entry]) -> Sheet:
    """A row for each question, a column for each machine."""
    titles = {a.question: a.title for entry in entries for a in entry.answers}
    several = len(entries) > 1
    return Sheet(
        title="Questions and answers",
        columns=("question", *(entry.name if several else "answer" for entry in entries)),
        rows=tuple(
            SheetRow(
                (
                    SheetCell(title, link=_where(entries, question)),
                    *(_answer(entry, question) for entry in entries),
                )
            )
            for question, title in titles.items()
        ),
        caption="? a finding to review, × a problem.",
    )


def _where(entries: Sequence[Entry], question: str) -> str:
    """The section of a question: of its only machine, or of all."""
    return f"{entries[0].key if len(entries) == 1 else ''}question-{question}"


def _answer(entry: Entry, question: str) -> SheetCell:
    for answer in entry.answers:
        if answer.question == question:
            return SheetCell(answer.summary, MARK[worst_of(answer)])
    return SheetCell("not asked")
