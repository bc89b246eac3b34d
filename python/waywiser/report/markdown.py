"""A report as Markdown: the same sections, findings and tables, with figures as their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from waywiser.report.parts import (
    MARKS,
    SEVERITIES,
    SIGNS,
    Block,
    Code,
    Document,
    Facts,
    Fold,
    Listing,
    Pictures,
    Remark,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    Verdict,
    Words,
    shown_there,
)
from waywiser.visible import visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def markdown(document: Document) -> str:
    """Every text is escaped; anchors become none, since readers make their own."""
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
    if isinstance(block, Verdict):
        sign = SIGNS[block.severity]
        yield from (f"**{sign} {_text(block.statement)}**", "")
        for line in (block.about, block.quality):
            yield from ((_text(line), "") if line else ())
    elif isinstance(block, Words):
        yield from (_text(block.text), "")
    elif isinstance(block, Code):
        yield from ("```text", block.text.replace("```", "'''"), "```", "")
    elif isinstance(block, Listing):
        yield from (f"- {_text(point)}" for point in block.points)
        yield from ((f"- and {block.more} more", "") if block.more else ("",))
    elif isinstance(block, Facts):
        yield from (f"- {_text(name)}: {_text(meaning)}" for name, meaning in block.facts)
        yield ""
    elif isinstance(block, Remarks):
        for number, remark in enumerate(block.remarks, 1):
            yield from _remark(remark, f"{number}." if block.ranked else "-")
        yield ""
    elif isinstance(block, Sheet):
        yield from _sheet(block)
    elif isinstance(block, Pictures):
        for picture in block.pictures:
            yield from _sheet(picture.data) if picture.data else ()
    else:
        yield from _fold(block)


def _fold(fold: Fold) -> Iterator[str]:
    """Its summary, unless what is in it has a title of its own."""
    if not any(isinstance(block, Sheet) for block in fold.blocks):
        yield from (f"**{_text(fold.summary)}**", "")
    for block in fold.blocks:
        yield from _block(block)


def _remark(remark: Remark, head: str) -> Iterator[str]:
    indent = " " * (len(head) + 1)
    sign, word = SEVERITIES[remark.severity]
    yield f"{head} **{sign} {word}:** {_text(remark.statement)}"
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
    yield from (f"**{_text(sheet.title)}**", "")
    yield _row(sheet.columns)
    yield _row(["---"] * len(sheet.columns), escaped=True)
    yield from (_row([_cell(cell) for cell in row.cells], escaped=True) for row in sheet.rows)
    yield ""
    yield from ((_text(sheet.caption), "") if sheet.caption else ())


def _row(cells: tuple[str, ...] | list[str], escaped: bool = False) -> str:
    return f"| {' | '.join(cell if escaped else _text(cell) for cell in cells)} |"


def _cell(cell: SheetCell) -> str:
    return " ".join(filter(None, (MARKS[cell.mark][0], _text(cell.text), _text(cell.note))))


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
