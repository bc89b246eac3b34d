"""The questions, in the order in which a report answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from waywiser.analysis.answer import Answer
from waywiser.analysis.subject import Subject

Analysis = Callable[[Subject], Answer]


def analyses() -> dict[str, Analysis]:
    """By name. They are imported when asked for."""
    from waywiser.analysis import (
        affinity,
        anisotropy,
        contention,
        crossovers,
        efficiency,
        identical,
        irregularities,
        trust,
    )

    return {
        "efficiency": efficiency.answer,
        "affinity": affinity.answer,
        "anisotropy": anisotropy.answer,
        "identical": identical.answer,
        "contention": contention.answer,
        "crossovers": crossovers.answer,
        "irregularities": irregularities.answer,
        "trust": trust.answer,
    }


def answers(subject: Subject) -> Iterator[Answer]:
    """Every analysis of one profile, in order."""
    for analysis in analyses().values():
        yield analysis(subject)
