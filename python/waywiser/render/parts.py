"""What a report is made of, whatever form it takes: sections of blocks, as frozen values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from waywiser.curves import Finding, Mark
from waywiser.curves.sheet import Sheet as Sheet
from waywiser.curves.sheet import SheetCell as SheetCell
from waywiser.curves.sheet import SheetColumn as SheetColumn
from waywiser.curves.sheet import SheetRow as SheetRow
from waywiser.curves.sheet import Tone as Tone
from waywiser.curves.sheet import numbers as numbers
from waywiser.words import STATUSES, Reason, Severity, Status, Value, count
from waywiser.words.titles import divide

if TYPE_CHECKING:
    from waywiser.render.figures.drawing import Drawing

MARKS: dict[Mark | Severity, tuple[str, str]] = {
    "": ("", ""),
    "yes": ("yes", "yes"),
    "no": ("no", "no"),
    "unclear": ("?", "not determined"),
    "info": ("✓", "OK"),
    "warning": ("?", "review"),
    "error": ("×", "problem"),
}
"""A mark as it is seen, and as it is read aloud. An answer is a word, a status is a sign."""

SEVERITIES: dict[Severity, tuple[str, str]] = {
    "info": ("i", "note"),
    "warning": ("?", "review"),
    "error": ("×", "problem"),
}
"""The same of a finding's severity."""

_TONES: dict[Status, Tone] = {
    Status.FAILED: "error",
    Status.SUSPECTED: "warning",
    Status.UNDECIDED: "unknown",
    Status.OK: "good",
    Status.NOT_COMPARED: "unknown",
}


def tone_of(reason: Reason) -> Tone:
    """How good or grave it is; a change that is no loss is worth reading."""
    return "info" if reason == "changed" else _TONES[STATUSES[reason]]


class Sheets(Value, frozen=True):
    """Tables with the same columns, which stand below each other."""

    sheets: tuple[Sheet, ...]


class Words(Value, frozen=True):
    """A paragraph."""

    text: str
    kind: Literal["plain", "lead", "note"] = "plain"
    tone: Tone = "plain"
    """That of the label, if there is one, else of the whole text."""
    indent: int = 0
    """How far below the paragraph before it stands, in characters."""
    label: str = ""
    """A word that begins the paragraph, within its indent."""


class Listing(Value, frozen=True):
    """Points of equal rank; ``more`` are not shown."""

    points: tuple[str, ...]
    more: int = 0


class Outline(Value, frozen=True):
    """Something with what it consists of."""

    name: str
    about: str
    below: tuple[Outline, ...] = ()


class Facts(Value, frozen=True):
    """Names and what they stand for."""

    facts: tuple[tuple[str, str], ...]


class Code(Value, frozen=True):
    """Text to be copied as it is."""

    text: str
    indent: int = 0
    """How far below the paragraph before it stands, in characters."""
    is_elsewhere: bool = False
    """It is for another computer, where the path of this command says nothing."""


class RemarkEvidence(Value, frozen=True):
    """What a remark rests on, and where it is seen."""

    text: str
    link: str = ""


class Remark(Value, frozen=True):
    """A finding as it is read."""

    severity: Severity
    statement: str
    machine: str = ""
    """The machine, if the page shows several."""
    devices: tuple[str, ...] = ()
    effect: str = ""
    remedy: str = ""
    evidence: tuple[RemarkEvidence, ...] = ()
    link: str = ""
    """The anchor of the full text."""
    more: int = 0
    """Other things to look at that are shown there and not here."""
    detail: str = ""
    """What the statement has no room for: it is a title."""

    def __post_init__(self) -> None:
        divide(self)

    @classmethod
    def of(cls, finding: Finding, statement: str = "") -> Remark:
        """A finding, with another ``statement`` if it has one here."""
        where = (str(finding.where),) if finding.where is not None else ()
        return cls(
            severity=finding.severity,
            statement=statement or finding.title,
            devices=(*where, *map(str, finding.devices)),
            remedy=finding.remedy,
            evidence=tuple(map(RemarkEvidence, finding.evidence)),
            detail="" if statement else finding.below,
        )


class Remarks(Value, frozen=True):
    """Findings, the gravest first; ``ranked`` where their order is a number."""

    remarks: tuple[Remark, ...]
    ranked: bool = False
    of: int = 0
    """All findings, if these are the first of more."""


def shown_of(shown: int, remarks: Remarks) -> str:
    """``5 of 12 findings``; empty if all are shown."""
    total = max(remarks.of, len(remarks.remarks))
    return f"{shown} of {count(total, 'finding')}" if shown < total else ""


def shown_there(remark: Remark) -> str:
    """What else stands where a remark leads: ``and 2 more things to look at``."""
    return f"and {remark.more} more {'thing' if remark.more == 1 else 'things'} to look at"


class Assessment(Value, frozen=True):
    """Whether a machine is all right."""

    severity: Severity
    statement: str
    about: str = ""
    """Smaller: which machine it is of, or what the verdict comes of."""
    quality: str = ""
    """Smaller: the quality of the numbers."""
    link: str = ""
    """The anchor of what is said about the quality."""
    unknown: str = ""
    """Smaller: what could not be determined."""
    equivalence: str = ""
    """Smaller: whether equivalent links are equal."""
    equivalence_link: str = ""
    """The anchor of what is said about it."""


class Tile(Value, frozen=True):
    """A headline number, which a page shows large."""

    name: str
    bandwidth: str
    """GB/s."""
    sure: str
    """How sure the bandwidth is: ``±0.1 %``, ``1 proc.``; empty without an interval."""
    share: float | None
    """The bandwidth over its bound; None without a bound."""
    latency: str
    normal: str
    """Whether it is normal for its link; empty if that is not known."""
    tone: Tone
    link: str
    """The anchor that it leads to, without ``#``."""


class Picture(Value, frozen=True):
    """A figure: drawn when it is first shown, with a table that says the same."""

    name: str
    """The name by which it is asked for: letters, digits and dashes."""
    title: str
    description: str
    """A sentence for readers who cannot see it."""
    draw: Callable[[], Drawing]
    data: Sheet | None = None
    wide: bool = False
    """Takes the page's whole width; others stand side by side."""

    @property
    def is_matrix(self) -> bool:
        """Whether it shows all pairs of places, and its table is short."""
        return "matrix-" in self.name


class Pictures(Value, frozen=True):
    """Figures that are looked at together."""

    pictures: tuple[Picture, ...]


class Fold(Value, frozen=True):
    """Opened by who wants to know."""

    summary: str
    blocks: tuple[Any, ...]
    anchor: str = ""


Block = (
    Words
    | Listing
    | Outline
    | Facts
    | Code
    | Remarks
    | Assessment
    | Sheet
    | Sheets
    | Pictures
    | Fold
)


class Section(Value, frozen=True):
    """A heading and what is below it."""

    anchor: str
    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    folded: bool = False
    """The heading alone is shown until a reader opens it, follows a link into it, or prints."""


class Document(Value, frozen=True):
    """A whole report."""

    title: str
    subtitle: tuple[str, ...]
    sections: tuple[Section, ...]
    made: str
    """The program and the date of the report."""
    tiles: tuple[Tile, ...] = ()
    """The headline numbers. On a page they, the status and what to do first fill the first screen;
    other forms have them in a table."""

    def section(self, anchor: str) -> Section | None:
        """The section of the first level with this anchor; None if there is none."""
        return next((section for section in self.sections if section.anchor == anchor), None)

    def first_remarks(self) -> Remarks | None:
        """The findings that ask for something; None if there are none."""
        section = self.section("findings")
        blocks = section.blocks if section is not None else ()
        return next((block for block in blocks if isinstance(block, Remarks)), None)

    def pictures(self) -> list[Picture]:
        """All of them, in order."""
        return [picture for section in self.sections for picture in _pictures(section)]


def _pictures(section: Section) -> list[Picture]:
    found = _in_blocks(section.blocks)
    return found + [each for below in section.sections for each in _pictures(below)]


def _in_blocks(blocks: tuple[Any, ...]) -> list[Picture]:
    found: list[Picture] = []
    for block in blocks:
        if isinstance(block, Pictures):
            found += block.pictures
        elif isinstance(block, Fold):
            found += _in_blocks(block.blocks)
    return found
