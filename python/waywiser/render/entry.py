"""One machine of a report: its profile read once, with every question answered."""

from __future__ import annotations

import os
from collections.abc import Sequence

from waywiser.analysis.policy.build import decision_tables
from waywiser.analysis.policy.candidates import MESSAGES
from waywiser.analysis.policy.decision_table import DecisionTable
from waywiser.analysis.questions.across import names_of
from waywiser.analysis.questions.all_answers import answers
from waywiser.curves import (
    Answer,
    Curve,
    Finding,
    Subject,
    below_findings,
    by_family,
    normal_paths,
    read_subject,
)
from waywiser.curves import without_copies as copies_among
from waywiser.machine.native import NativeError
from waywiser.model.machine_model import MachineModel, kept_model
from waywiser.profile import Profile
from waywiser.profile.planned import planned
from waywiser.render.links import Links
from waywiser.words import Value


class Entry(Value, frozen=True):
    """A profile as a report knows it."""

    name: str
    """The machine's name; with that of the file, or the time, if several profiles have the same
    one."""
    subject: Subject
    answers: tuple[Answer, ...]
    curves: tuple[Curve, ...]
    """Those measured, by family."""
    preset: str
    """The preset of its survey; empty if the profile does not say."""
    links: Links
    decisions: tuple[DecisionTable, ...] = ()
    """Which method to use for each kind of copy."""
    undecided: str = ""
    """Why it is unknown which method to use; empty if it is known."""
    model: MachineModel | None = None
    """The model that is kept of the profile; None if there is none."""
    below_normal: tuple[Finding, ...] = ()
    """Headline paths below the range of other machines."""

    @property
    def key(self) -> str:
        """What begins the anchors of this machine if there are several: ``a-``."""
        return self.links.key


def without_copies(
    files: Sequence[str | os.PathLike[str]],
) -> tuple[list[str], list[tuple[str, str]]]:
    """(the files that are surveys of their own, (copy, original)): the same file given twice is a
    copy too. Raises `ProfileError` for a bad file."""
    names = [os.fspath(file) for file in files]
    surveys: dict[tuple[str, str], list[str]] = {}
    for name in names:
        with Profile.open(name) as profile:
            surveys.setdefault((profile.machine.hostname, profile.created), []).append(name)
    dropped: list[tuple[str, str]] = []
    for same in surveys.values():
        if len(same) > 1:
            dropped += copies_among([read_subject(name) for name in same])[1]
    for copy, _ in dropped:
        names.remove(copy)
    return names, dropped


def read(files: Sequence[str | os.PathLike[str]]) -> tuple[Entry, ...]:
    """Each profile, read and analysed. Raises `ProfileError` for a bad file."""
    found = []
    for file in files:
        with Profile.open(file) as profile:
            found.append((Subject.of(profile), profile.plan_json, kept_model(profile)))
    names = names_of([subject for subject, _, _ in found], [os.fspath(file) for file in files])
    several = len(found) > 1
    return tuple(
        entry(subject, plan, name, f"{_letter(n)}-" if several else "", model)
        for n, ((subject, plan, model), name) in enumerate(zip(found, names, strict=True))
    )


def entry(
    subject: Subject,
    plan: str = "{}",
    name: str = "",
    key: str = "",
    model: MachineModel | None = None,
) -> Entry:
    """``key`` begins its anchors."""
    request = planned(plan).request
    shown = tuple(by_family(subject.curves))
    decisions, undecided = _decisions(subject)
    return Entry(
        name=name or subject.name,
        subject=subject,
        answers=tuple(answers(subject)),
        curves=shown,
        preset=request.preset if request else "",
        links=Links(key, frozenset(curve.text for curve in shown)),
        decisions=decisions,
        undecided=undecided,
        model=model,
        below_normal=tuple(below_findings(subject.machine, normal_paths(subject.machine, shown))),
    )


def _decisions(subject: Subject) -> tuple[tuple[DecisionTable, ...], str]:
    """The decisions, and why there are none: only the native library knows what methods take. Those
    of imported results are between the methods of the tool, without its messages between ranks,
    which are no copies; those of surveyed ranks between the methods of messages.
    """
    try:
        tables = decision_tables([subject], of_tools=True)
        return tuple(each for each in tables if MESSAGES not in each.notes), ""
    except NativeError as error:
        return (), str(error)


def _letter(number: int) -> str:
    """``a`` to ``z``, then ``a1``."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
