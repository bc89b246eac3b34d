"""The check of what ranks of MPI need: shared memory and processes."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation


def rank_limits(situation: Situation) -> Iterator[Finding]:
    """The limits that two ranks of MPI would meet on the live machine."""
    for limit in situation.rank_limits:
        yield Finding(
            f"ranks-{limit.kind}",
            "info",
            f"surveys with --ranks do not work: {limit.what}",
            evidence=(limit.evidence,),
            remedy=limit.remedy,
        )
