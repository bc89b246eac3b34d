"""How much of a plan is done, and how long the rest takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import Plan
from waywiser.words import Visit

CORRECTED_SHARE = 0.1
CORRECTED_SECONDS = 2.0
"""After so much of the work and so many seconds the first estimate is compared with the pace."""

CORRECTED_FACTOR = 1.5
"""The estimate is corrected if it was wrong by more than that."""

SETTLING_SECONDS = 5.0
SETTLING_SHARE = 0.1
"""So much of the expected time counts as gone as expected, and at most this share of it: early
visits say little about the rest."""


class Tally:
    """How much of the expected time is done, and how much real time is left.

    ``finished`` are visits of earlier runs: they are done, in no time of this one.
    """

    def __init__(
        self,
        plan: Plan,
        finished: Iterable[Visit] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._expected = {p.identity: p.unmeasured_seconds for p in plan.points}
        self._conditional = {p.identity for p in plan.points if p.conditional}
        certain = (p for p in plan.points if not p.conditional)
        self._total = max(sum(p.processes * self._expected[p.identity] for p in certain), 1e-9)
        self._deadline = plan.deadline_seconds or math.inf
        self._uses_all = plan.request.deadline_seconds > 0
        self._plan = plan
        self._is_compared = self._uses_all
        self._done = 0.0
        self._started = clock()
        self.visits = 0
        self.of_visits = plan.visits
        for visit in finished:
            self.finished(visit)
        self._earlier = self._done

    def finished(self, visit: Visit) -> None:
        self.visits += 1
        self.of_visits = max(self.of_visits, self.visits)
        expected = self._expected.get(identity := visit.workload.identity, 0.0)
        self._done += expected
        if identity in self._conditional:
            self._total += expected

    @property
    def share(self) -> float:
        """The share from 0 to 1: of the work, or of the time if all of it is used."""
        if self._uses_all:
            return min(self.seconds / self._deadline, 1.0)
        return min(self._done / self._total, 1.0)

    @property
    def seconds(self) -> float:
        """Since the start of this run."""
        return self._clock() - self._started

    @property
    def seconds_left(self) -> float:
        """The expected rest, corrected by how the expectation has done so far."""
        expected = self._done - self._earlier
        settling = min(SETTLING_SECONDS, SETTLING_SHARE * self._total)
        pace = (self.seconds + settling) / (expected + settling)
        until = max(self._deadline - self.seconds, 0.0)
        return until if self._uses_all else min(max(self._total - self._done, 0.0) * pace, until)

    def correction(self) -> tuple[float, float] | None:
        """The seconds that a survey was expected to take and those that it takes at its present
        pace, once, if they differ by more than `CORRECTED_FACTOR`; else None."""
        share = self._done / self._total
        if self._is_compared or share < CORRECTED_SHARE or self.seconds < CORRECTED_SECONDS:
            return None
        self._is_compared = True
        expected = outlook(self._plan).seconds * (1 - self._earlier / self._total)
        now = self.seconds + self.seconds_left
        ratio = now / expected if expected > 0 else math.inf
        return None if 1 / CORRECTED_FACTOR < ratio < CORRECTED_FACTOR else (expected, now)
