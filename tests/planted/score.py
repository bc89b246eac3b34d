"""Whether analyses find what was planted in synthetic machines, and nothing else.

Each question is asked about everything that it can be asked about: one hypothesis each, that there
is nothing to find. If that is true of the model, it should be kept; if something was planted, it
should be rejected. What follows from a truth for another question (a link that is slow in one
direction also differs from its equivalent links) is planted for that question too.

The promise: of what was planted at least 95 % is found, of what is null at most 1 % is rejected.
It is broken beyond chance where an exact binomial test, one-sided at 1 %, says so: what would be
seen in less than 1 of 100 repetitions if the promise were just kept. Hypotheses of one machine
share its blocks' noise, so the binomial intervals (Clopper and Pearson, *Biometrika* 26, 1934) are
somewhat narrower than they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from planted.planted_machine import Planted
from waywiser.curves.subject import Subject

FOUND, REJECTED = 0.95, 0.01
"""Least share of what was planted, greatest share of what is null."""
BEYOND_CHANCE = 0.01


@dataclass(frozen=True)
class Hypothesis:
    """That there is nothing to find here."""

    question: str
    about: str
    effect: float
    """Planted; 0 where there is none."""
    rejected: bool
    truth: str = ""
    """What was planted."""


Check = Callable[[Planted, Subject], Iterator[Hypothesis]]


@dataclass
class Share:
    """So many of so many."""

    count: int = 0
    of: int = 0

    def add(self, yes: bool) -> None:
        self.count += yes
        self.of += 1

    @property
    def value(self) -> float:
        return self.count / self.of if self.of else float("nan")

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Exact binomial."""
        from scipy.stats import beta

        tail = (1 - confidence) / 2
        low = beta.ppf(tail, self.count, self.of - self.count + 1) if self.count else 0.0
        rest = self.of - self.count
        high = beta.ppf(1 - tail, self.count + 1, rest) if rest else 1.0
        return float(low), float(high)

    def chance_of_so_few(self, share: float) -> float:
        """Probability of this many or fewer where the true share is this."""
        from scipy.stats import binom

        return float(binom.cdf(self.count, self.of, share))

    def chance_of_so_many(self, share: float) -> float:
        """Probability of this many or more where the true share is this."""
        from scipy.stats import binom

        return float(binom.sf(self.count - 1, self.of, share))


@dataclass
class Score:
    """The score of one question, or of all."""

    found: Share
    rejected: Share

    @property
    def broken(self) -> str:
        """Which promise is broken beyond chance; empty for none."""
        said = []
        if self.found.of and self.found.chance_of_so_few(FOUND) < BEYOND_CHANCE:
            said.append(f"only {self.found.count} of {self.found.of} planted were found")
        if self.rejected.of and self.rejected.chance_of_so_many(REJECTED) < BEYOND_CHANCE:
            said.append(f"{self.rejected.count} of {self.rejected.of} nulls were rejected")
        return "; ".join(said)


def scored(hypotheses: Iterable[Hypothesis]) -> dict[str, Score]:
    """Scores by question."""
    scores: dict[str, Score] = {}
    for each in hypotheses:
        score = scores.setdefault(each.question, Score(Share(), Share()))
        (score.found if each.effect else score.rejected).add(each.rejected)
    return scores


def together(scores: Iterable[Score]) -> Score:
    """All questions as one."""
    total = Score(Share(), Share())
    for score in scores:
        for mine, other in ((total.found, score.found), (total.rejected, score.rejected)):
            mine.count += other.count
            mine.of += other.of
    return total
