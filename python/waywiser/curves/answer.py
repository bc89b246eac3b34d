"""What an analysis says: findings with their evidence, tables, and what could not be answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from waywiser.curves.sheet import Mark as Mark
from waywiser.curves.sheet import Sheet as Sheet
from waywiser.curves.sheet import SheetCell as SheetCell
from waywiser.curves.sheet import SheetColumn
from waywiser.machine import Machine
from waywiser.stats import Interval
from waywiser.words import SEVERITY_ORDER, ClusterPlace, Place, Severity, Value
from waywiser.words.status import is_at_least
from waywiser.words.titles import divided

MOST_ROWS = 40
"""Rows that a table shows at most."""

MOST_FINDINGS = 8
"""Findings shown of a question that has one for each path; all of them are in its table."""

MOST_EXHIBITS = 4
"""Exhibits of a finding that many series show."""

MATTERS = 0.10
"""Smaller differences are in tables and no findings: they change nothing that a person does."""

Unit = Literal["B/s", "s", "B", "ratio"]


class Exhibit(Value, frozen=True):
    """One piece of evidence: what a series (or several) showed."""

    series: str
    """The text of its workload, size included; a report links it to the curve."""
    what: str
    """Which figure of it: ``rate``, ``latency``, ``ratio to gpu:0``."""
    value: float
    unit: Unit
    interval: Interval | None = None
    """95 %, in the same unit; None if the measurement has none."""


class Device(Value, frozen=True):
    """A device that a finding is about, named so that a person finds it in the rack."""

    place: str
    """``gpu:0``, ``numa:1``."""
    uuid: str = ""
    pci: str = ""

    def __str__(self) -> str:
        known = ", ".join(part for part in (self.pci, self.uuid) if part)
        return f"{self.place} ({known})" if known else self.place


def device_at(place: Place, machine: Machine) -> Device:
    """A device with UUID and PCI address if the machine has them."""
    gpu = machine.gpu(place.index) if place.kind == "gpu" else None
    return Device(str(place), gpu.uuid, gpu.pci) if gpu else Device(str(place))


class Finding(Value, frozen=True):
    """One thing worth knowing, of a machine, a profile, a host of a fleet or a cluster."""

    id: str
    """Stable, for scripts: ``slow-link``, ``hidden-sockets``."""
    severity: Severity
    """A ``warning`` too if it is suspected, and should be measured again before it counts."""
    statement: str
    """What is so, with its figures."""
    effect: float | None = None
    """Relative size: 0.05 is 5 % more or less than it should be. None if it has no size."""
    interval: Interval | None = None
    """The interval of the effect."""
    devices: tuple[Device, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    remedy: str = ""
    """What it suggests to do; empty if nothing."""
    detail: str = ""
    """What else is to be said."""
    evidence: tuple[str, ...] = ()
    """What was read, counted or tested, and where: a line each."""
    again: str = ""
    """The command that measures it again; empty if none does."""
    tests: int = 0
    """The tests of a cluster behind it."""
    where: ClusterPlace | None = None
    """Where in a cluster it is; None if it is no finding about one."""

    @property
    def title(self) -> str:
        """The statement, or its beginning if it is longer than a title."""
        return divided(self.statement)[0]

    @property
    def below(self) -> str:
        """What the title has no room for, and the detail."""
        return "; ".join(filter(None, (divided(self.statement)[1], self.detail)))

    @property
    def text(self) -> str:
        """The statement and the detail."""
        return "; ".join(filter(None, (self.statement, self.detail)))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of a cluster that it is about."""
        return self.where.nodes if self.where is not None else ()


def table(
    title: str, columns: Iterable[str], rows: Iterable[tuple[SheetCell, ...]], caption: str
) -> tuple[Sheet, ...]:
    """Returns a table of at most `MOST_ROWS` rows, whose caption says how many more there are; no
    table if there are no rows."""
    found = tuple(rows)
    if not found:
        return ()
    if more := len(found[MOST_ROWS:]):
        caption += f" {more} further rows are not shown."
    names = (SheetColumn(name, folds=n > 0) for n, name in enumerate(columns))
    return (Sheet.of(title, names, found[:MOST_ROWS], caption),)


class Answer(Value, frozen=True):
    """What one analysis says of one profile."""

    question: str
    """The name of the analysis: ``anisotropy``."""
    title: str
    """The question in words."""
    summary: str
    """The answer in a sentence or two."""
    findings: tuple[Finding, ...] = ()
    """The gravest first, then the largest effects, or what people ask for first."""
    tables: tuple[Sheet, ...] = ()
    unanswered: tuple[str, ...] = ()
    """What could not be answered, each with the reason."""
    answered: bool = True
    """Whether the profile has what the answer needs; else the summary says what is missing."""


EXPLAINING = ("slow-link", "missing-path")
"""Findings about hardware that explain what other findings say of the paths over it."""

UNDECIDED = "undecided-path"
"""The finding that a path may be slow."""

CRASHED = "crashed-path"
"""The finding that what uses a path crashed: it is about the machine, and not its numbers."""

SHARED = "shared-bottleneck"
"""The finding that transfers have less bandwidth together than alone, which costs who needs all."""

LOADED = "loaded-machine"
"""The finding that other programs used the machine while it was measured."""


def at_least(findings: Iterable[Finding], severity: Severity) -> tuple[Finding, ...]:
    """The findings of this severity and above."""
    return tuple(finding for finding in findings if is_at_least(finding.severity, severity))


def practical(findings: Iterable[Finding]) -> list[Finding]:
    """Those that change what a person does: warnings, errors, and effects from `MATTERS` on."""
    return [
        each
        for each in findings
        if each.severity != "info" or each.effect is None or abs(each.effect) >= MATTERS
    ]


def ranked(findings: list[Finding] | tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The gravest first, of these what explains other findings, then by the size of the effect."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (
                -SEVERITY_ORDER.index(f.severity),
                f.id not in EXPLAINING,
                -abs(f.effect or 0.0),
                f.id,
            ),
        )
    )
