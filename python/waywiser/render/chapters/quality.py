"""The quality flags, what is missing, and the machine's health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.curves import ReasonGroup, capital, who_copies_sentences
from waywiser.render.chapters.each import each
from waywiser.render.entry import Entry
from waywiser.render.parts import Block, Fold, Listing, Section, Words
from waywiser.words import by_wording, count, counted, with_sizes
from waywiser.words.member_lines import member_lines, merged

MOST_MEMBERS = 20
"""Members listed for one reason."""


def quality(entries: Sequence[Entry]) -> Section:
    """Each machine's quality flags with their remedies, notes, health."""
    return each(entries, "quality", "Quality of the numbers", lambda entry: [*_quality(entry)])


def missing(entries: Sequence[Entry]) -> Section:
    """What failed on each machine, what was skipped, what is not supported."""
    return each(entries, "missing", "What was not measured", lambda entry: [*_missing(entry)])


def _quality(entry: Entry) -> Iterator[Block]:
    seen = entry.subject.overview
    measured = seen.summary.converged + seen.summary.not_converged
    if measured:
        share = f"{seen.summary.converged / measured:.0%}"
        text = f"{seen.summary.converged} of {count(measured, 'series')} converged ({share})."
        yield Words(text)
    if seen.health is not None and (text := str(seen.health).removeprefix("health: ")):
        yield Words(f"{capital(text)}.")
    for sentence in who_copies_sentences(entry.subject.machine.traits.who_copies):
        yield Words(f"{capital(sentence)}.")
    if not seen.warnings:
        yield Words("No series has a quality flag.")
    for group in seen.warnings:
        remedy = Words(f"Remedy: {group.remedy}.", "note")
        summary = f"{capital(group.reason)}: {count(len(group.members), 'series')}"
        yield Fold(summary, (remedy, _listing(group.members)))
    visits = {group.reason: group.members for group in seen.notes}
    for line, reasons in by_wording(list(visits)):
        members = [member for reason in reasons for member in visits[reason]]
        yield Fold(f"{capital(line)} ({count(len(members), 'visit')})", (_listing(members),))


def _missing(entry: Entry) -> Iterator[Block]:
    seen = entry.subject.overview
    unsupported_paths = merged((group.reason, group.members) for group in seen.unsupported_paths)
    groups = {
        "Failed": seen.failures,
        "Skipped": seen.skipped,
        "Not supported when measured": seen.unsupported,
        "Not supported here": [ReasonGroup(why, tuple(of)) for why, of in unsupported_paths],
        "No bound": seen.unbounded,
        "Links unknown": seen.link_use_unknown,
    }
    found = [(title, group) for title, of_title in groups.items() for group in of_title]
    if not found:
        yield Words("Nothing: all that was planned was measured.")
    for title, group in found:
        listing = _listing([*member_lines(group.members)])
        yield Fold(f"{title}: {group} ({counted(group.members)})", (listing,))


def _listing(members: Sequence[str]) -> Listing:
    shown = tuple(map(with_sizes, members[:MOST_MEMBERS]))
    return Listing(shown, len(members) - len(shown))
