"""The questions, in the order in which a report answers them."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Answer, Subject


def answers(subject: Subject) -> Iterator[Answer]:
    """The answer to every question about one profile, in order."""
    # imported when they are asked for: some need scipy
    from waywiser.analysis.questions import (
        affinity,
        anisotropy,
        contention,
        crossovers,
        efficiency,
        identical,
        irregularities,
        trust,
    )

    questions = (
        efficiency,
        affinity,
        anisotropy,
        identical,
        contention,
        crossovers,
        irregularities,
        trust,
    )
    decidable = subject.decidable
    for question in questions:
        yield question.answer(subject if question is trust else decidable)
