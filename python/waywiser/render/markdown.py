"""A report as Markdown: whole, with figures as their tables, or as a summary for a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from waywiser.render.parts import (
    MARKS,
    SEVERITIES,
    Assessment,
    Block,
    Code,
    Document,
    Facts,
    Fold,
    Listing,
    Outline,
    Pictures,
    Remark,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    SheetRow,
    Sheets,
    Words,
    shown_of,
    shown_there,
)
from waywiser.words import count, visible

_SPECIAL = re.compile(r"([\\`*_\[\]|#]|(?<!-)>|<(?![0-9]|->))")
"""What Markdown would read as its own; arrows and ``<`` before a digit begin no tag."""


LIMIT_BYTES = 8000
"""Most bytes of a summary: it fits a ticket."""

SPARE_BYTES = 3000
"""Bytes of a summary that status and headline table leave to the findings."""

LINE_BYTES = 100
"""Bytes left for a line that counts what does not fit."""

MOST_TEXT = 500
"""Most characters of a sentence in a summary."""

MOST_NAME = 100
"""Most characters of a machine's name in a summary."""

ALL = "Everything else: `waywiser report --format md --all` with the same files."


class _LimitedText:
    """Lines up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.lines: list[str] = []
        self._left = limit

    def add(self, lines: Iterable[str], spare: int = 0) -> bool:
        """Adds all of the lines if ``spare`` bytes are left after them, else none."""
        added = [visible(line) for line in lines]
        needed = sum(len(line.encode()) + 1 for line in added)
        if needed + spare > self._left:
            return False
        self.lines += added
        self._left -= needed
        return True


def summary(document: Document) -> str:
    """Status, headline table, findings and matrices, in at most `LIMIT_BYTES`. What does not fit is
    left to the whole report, which the last line names."""
    text = _LimitedText(LIMIT_BYTES - len(ALL) - 2)
    text.add([f"# {_text(_cut(document.title, MOST_NAME))}", ""])
    for line in document.subtitle:
        text.add([f"{_text(_cut(line))}  "], SPARE_BYTES)
    text.add([""])
    for anchor in ("status", "headlines", "findings", "links"):
        if section := document.section(anchor):
            _summarize(text, section)
    text.add([_text(document.made), ""])
    return "\n".join([*text.lines, ALL, ""])


def _summarize(text: _LimitedText, section: Section) -> None:
    """Adds as much of a section as fits."""
    head = [f"## {_text(section.title)}", ""]
    for block in _summary_blocks(section):
        if isinstance(block, Remarks):
            added = _add_remarks(text, head, block)
        elif isinstance(block, Sheet) and section.anchor == "headlines":
            added = _add_rows(text, head, block)
        elif isinstance(block, Assessment):
            short = msgspec.structs.replace(block, about=_cut(block.about, MOST_NAME))
            added = text.add([*head, *_block(short)], SPARE_BYTES)
        else:
            added = text.add([*head, *_block(block)])
        head = [] if added else head


def _summary_blocks(section: Section) -> Iterator[Block]:
    """The blocks of a section and of those below it; of pictures the matrices, as tables."""
    for block in section.blocks:
        if isinstance(block, Pictures):
            for picture in block.pictures:
                if picture.is_matrix and picture.data is not None:
                    yield _without_notes(picture.data)
        else:
            yield block
    for below in section.sections:
        yield from _summary_blocks(below)


def _without_notes(sheet: Sheet) -> Sheet:
    """The numbers alone."""
    rows = (
        msgspec.structs.replace(
            row, cells=tuple(msgspec.structs.replace(cell, note="") for cell in row.cells)
        )
        for row in sheet.rows
    )
    return msgspec.structs.replace(sheet, rows=tuple(rows))


def _add_remarks(text: _LimitedText, head: Sequence[str], block: Remarks) -> bool:
    """Adds the first remarks that fit, with sentences that are cut, and how many of all these are;
    returns whether anything was added."""
    text.add(head)
    for number, remark in enumerate(block.remarks):
        short = msgspec.structs.replace(
            remark,
            machine=_cut(remark.machine, MOST_NAME),
            statement=_cut(remark.statement),
            detail=_cut(remark.detail),
            devices=tuple(_cut(device) for device in remark.devices),
            remedy=_cut(remark.remedy),
        )
        if not text.add(_remark(short, f"{number + 1}." if block.ranked else "-"), LINE_BYTES):
            return text.add(["", f"{shown_of(number, block)}.", ""])
    shown = shown_of(len(block.remarks), block)
    return text.add(["", f"{shown}.", ""] if shown else [""])


def _add_rows(text: _LimitedText, head: Sequence[str], sheet: Sheet) -> bool:
    """Adds the first rows that fit; returns whether the head of the table did."""
    if not text.add([*head, *_head_of(sheet)], SPARE_BYTES):
        return False
    for number, row in enumerate(sheet.rows):
        line = _row_of(sheet, row)
        if not text.add([line], SPARE_BYTES):
            text.add(["", f"{count(len(sheet.rows) - number, 'row')} more"])
            break
    text.add([""])
    return True


def _cut(text: str, most: int = MOST_TEXT) -> str:
    """The text, or its start with ``…``."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def markdown(document: Document) -> str:
    """The whole report. Every text is escaped; anchors become none, since readers make their
    own."""
    lines = [f"# {_text(document.title)}", ""]
    lines += [f"{_text(line)}  " for line in document.subtitle]
    lines.append("")
    for section in document.sections:
        lines += _section(section, 2)
    lines += ["---", "", _text(document.made), ""]
    return visible(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)))


def _section(section: Section, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {_text(section.title)}", "")
    for block in section.blocks:
        yield from _block(block)
    for below in section.sections:
        yield from _section(below, level + 1)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Assessment):
        sign = MARKS[block.severity][0]
        about = f"{_text(block.about)}: " if block.about else ""
        yield from (f"**{about}{sign} {_text(block.statement)}**", "")
        for line in (block.equivalence, block.unknown, block.quality):
            yield from ((_text(line), "") if line else ())
    elif isinstance(block, Words):
        yield from (_text(" ".join(filter(None, (block.label, block.text)))), "")
    elif isinstance(block, Code):
        yield from ("```text", block.text.replace("```", "'''"), "```", "")
    elif isinstance(block, Listing):
        yield from (f"- {_text(point)}" for point in block.points)
        yield from ((f"- and {block.more} more", "") if block.more else ("",))
    elif isinstance(block, Outline):
        yield from (*_outline(block), "")
    elif isinstance(block, Facts):
        yield from (f"- {_text(name)}: {_text(meaning)}" for name, meaning in block.facts)
        yield ""
    elif isinstance(block, Remarks):
        for number, remark in enumerate(block.remarks, 1):
            yield from _remark(remark, f"{number}." if block.ranked else "-")
        yield ""
        if shown := shown_of(len(block.remarks), block):
            yield from (f"{shown}; the others are below, by question.", "")
    elif isinstance(block, Sheet):
        yield from _sheet(block)
    elif isinstance(block, Sheets):
        for sheet in block.sheets:
            yield from _sheet(sheet)
    elif isinstance(block, Pictures):
        for picture in block.pictures:
            yield from _sheet(picture.data) if picture.data else ()
    else:
        yield from _fold(block)


def _outline(outline: Outline, indent: str = "") -> Iterator[str]:
    yield f"{indent}- {_text(' '.join(filter(None, (outline.name, outline.about))))}"
    for below in outline.below:
        yield from _outline(below, f"{indent}  ")


def _fold(fold: Fold) -> Iterator[str]:
    """Its summary, unless what is in it has a title of its own."""
    if not any(isinstance(block, Sheet) for block in fold.blocks):
        yield from (f"**{_text(fold.summary)}**", "")
    for block in fold.blocks:
        yield from _block(block)


def _remark(remark: Remark, head: str) -> Iterator[str]:
    indent = " " * (len(head) + 1)
    _, word = SEVERITIES[remark.severity]
    yield f"{head} **{word}:** {_text(remark.statement)}"
    if remark.detail:
        yield f"{indent}{_text(remark.detail)}"
    about = [remark.machine, remark.effect, "; ".join(remark.devices)]
    if any(about):
        yield f"{indent}{_text(' · '.join(filter(None, about)))}"
    if remark.remedy:
        yield f"{indent}To do: {_text(remark.remedy)}"
    if remark.more:
        yield f"{indent}({shown_there(remark)}, shown below)"
    for each in remark.evidence:
        yield f"{indent}- {_text(each.text)}"


def _sheet(sheet: Sheet) -> Iterator[str]:
    yield from _head_of(sheet)
    yield from (_row_of(sheet, row) for row in sheet.rows)
    yield ""
    yield from ((_text(sheet.caption), "") if sheet.caption else ())


def _head_of(sheet: Sheet) -> Iterator[str]:
    yield from (f"**{_text(sheet.title)}**", "")
    columns = [*sheet.names, *filter(None, [sheet.more])]
    yield _row(columns)
    yield _row(["---"] * len(columns), escaped=True)


def _row_of(sheet: Sheet, row: SheetRow) -> str:
    more = [_text(row.more)] if sheet.more else []
    return _row([*map(_cell, row.cells), *more], escaped=True)


def _row(cells: tuple[str, ...] | list[str], escaped: bool = False) -> str:
    return f"| {' | '.join(cell if escaped else _text(cell) for cell in cells)} |"


def _cell(cell: SheetCell) -> str:
    return " ".join(filter(None, (MARKS[cell.mark][0], _text(cell.text), _text(cell.note))))


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
