"""The search for the best settings of one path at one size, by racing. Pure: it measures nothing.

Each process of the search is one round (`Search.round`), and the rounds are the replicates.

**Race.** A round measures all contenders in a shuffled order, so that drift affects them alike. A
configuration that two processes measured is dropped when its interval lies wholly above (slower
than) the interval of the best one. The default configuration is never dropped. A round after the
first measures a part of the grid at most (`MOST_OF_GRID`), so that small grids take few visits too.

**Climb.** Then the round measures new configurations around an origin, one parameter at a time. An
ordered parameter is unimodal but for noise: the walk goes from neighbour to neighbour, and ends
after `PATIENCE` values that are no better, or at one that is much slower. The values of a choice
are all tried. A subset starts with its fastest member and grows by the member that helps most.

Parameters interact: the best number of threads of one choice may be a poor one of another. So the
first climb has several origins: the default configuration, and the same with each other value of
each choice. All parameters are tried around an origin before the search moves. Noise hides
which configuration is the best: so the climb goes on from the best `ORIGINS` contenders, until
they are all origins that were explored.

The value of a winner that was chosen as the best is biased. So the caller measures the winner and
the default again, in further processes, and reports these measurements alone (`ratio`).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from waywiser.stats import CONFIDENCE, Interval, median, student_quantile
from waywiser.words import Value

PATIENCE = 2
"""Values in a row that are no better, after which a walk ends."""

FAR = math.log(1.2)
"""A walk ends at once at a value that is clearly slower, by so much."""

MOST_CONTENDERS = 5
"""The most configurations in the first round after which there is a race, the default not counted.
Each further round has one less..."""

LEAST_CONTENDERS = 2
"""... down to so many, unless they are dropped."""

MOST_OF_GRID = 0.2
"""The most of the full grid that a round after the first measures, but `LEAST_CONTENDERS`."""

ORIGINS = 2
"""The best contenders from which the climb goes on."""

CONFIRMED = 2
"""Processes that measure a neighbour of the best configuration, if there are enough rounds."""

EQUAL = 0.005
"""Times that differ by less are equal if the winner is chosen: fewer settings win."""

USUAL_DEVIATION = 0.01
"""The deviation between processes that is expected before any is known..."""

USUAL_FREEDOM = 4
"""... and the degrees of freedom that this expectation is worth."""

Configuration = tuple[str, ...]
"""One value for each axis of a search, in their order."""


class SearchAxis(NamedTuple):
    """A parameter that is searched."""

    name: str
    kind: Literal["choice", "ordered", "subset"]
    values: tuple[str, ...]
    """The default first. Those of an ordered parameter are whole numbers. Of a subset, those after
    the default are its members, which a value joins by plus signs."""

    @property
    def ascending(self) -> tuple[str, ...]:
        """The values of an ordered parameter in order."""
        return tuple(sorted(self.values, key=int))

    @property
    def all_values(self) -> tuple[str, ...]:
        """Every value that the parameter can have; of a subset, all members are the default."""
        if self.kind != "subset":
            return self.values
        members = self.values[1:]
        sizes = range(1, len(members))
        joined = ("+".join(m) for n in sizes for m in itertools.combinations(members, n))
        return (self.values[0], *joined)


def most_visits(size: int, *, climb: bool) -> int:
    """The most visits of a round after the first, for a grid of so many configurations."""
    return max(LEAST_CONTENDERS + climb, int(MOST_OF_GRID * size))


def configurations(axes: Sequence[SearchAxis]) -> Iterator[Configuration]:
    """The full grid, the default configuration first."""
    return itertools.product(*(axis.all_values for axis in axes))


class Timing(NamedTuple):
    """What one process measured of a configuration."""

    seconds: float
    deviation: float = 0.0
    """Standard error of the time by the samples of the process alone, as a fraction of it."""


Round = Generator[Configuration, Timing | None, None]
"""Yields configurations to be measured, and receives what was measured; None for a failure."""


class _Standing(NamedTuple):
    """Logarithm of a configuration's time, with half the width of its interval."""

    log: float
    half: float
    error: float


class Search:
    """The search of one path at one size.

    ``start`` is where the climb begins in place of the default, as the winner of a neighbouring
    size.
    ``possible`` says whether the machine supports a configuration.
    """

    def __init__(
        self,
        axes: Sequence[SearchAxis],
        *,
        start: Configuration | None = None,
        possible: Callable[[Configuration], bool] = lambda configuration: True,
        seed: str = "",
    ) -> None:
        self.axes = tuple(axes)
        self.default: Configuration = tuple(axis.values[0] for axis in axes)
        self._possible = possible
        self._seed = seed
        self._times: dict[Configuration, dict[int, Timing]] = {}
        self._failed: set[Configuration] = set()
        self._raced = 0
        """Rounds of the race that have begun."""
        self._size = math.prod(len(axis.all_values) for axis in axes)
        self._left = self._size
        """Visits that the round may still make."""
        self._standings: dict[Configuration, _Standing] | None = None
        self._start = start if start is not None and possible(start) else self.default

    @property
    def measured(self) -> int:
        """The number of configurations that were measured, failed ones included."""
        return len(self._times.keys() | self._failed)

    @property
    def failed(self) -> bool:
        """Whether the default configuration cannot be measured: then there is no search."""
        return self.default in self._failed

    @property
    def winner(self) -> Configuration:
        """The configuration whose time is least with one standard error added, so that a lucky one
        that few processes measured does not win; of several that are equal, the one with most
        defaults. The default if nothing was measured."""
        known = self._known()
        times = {configuration: each.log + each.error for configuration, each in known.items()}
        least = min(times.values(), default=0.0)
        equal = [c for c, time in times.items() if time <= least + EQUAL]
        return min(equal, key=lambda c: (self._settings(c), times[c]), default=self.default)

    def _settings(self, configuration: Configuration) -> int:
        """How many of its values are not the default."""
        pairs = zip(configuration, self.default, strict=True)
        return sum(value != usual for value, usual in pairs)

    @property
    def is_decided(self) -> bool:
        """Whether a further round can change nothing: all configurations but one are dropped."""
        return self.failed or (len(self._contenders()) == 1 and len(self._times[self._best]) > 1)

    def round(self, process: int, *, climb: bool = True) -> Round:
        """One process of the search: the race, and then the climb."""
        shuffler = random.Random(f"{self._seed}:{process}")
        first = () if self._start in self._times else (self._start,)
        most = max(MOST_CONTENDERS - self._raced, LEAST_CONTENDERS)
        if self._times:
            self._raced += 1
            self._left = most_visits(self._size, climb=climb)
        best, rest = self._contenders()[:1], self._contenders()[1:most]
        racing = list(dict.fromkeys((*best, self.default, *first, *rest)))[: self._left - climb]
        shuffler.shuffle(racing)
        for configuration in racing:
            yield from self._measure(configuration, process)
        if climb and not self.failed and self._times:
            yield from self._climb(process)

    def _measure(self, configuration: Configuration, process: int) -> Round:
        if configuration in self._failed or not self._left:
            return
        self._left -= 1
        timing = yield configuration
        self._standings = None
        if timing is None or not timing.seconds > 0:
            self._failed.add(configuration)
            self._times.pop(configuration, None)
        else:
            self._times.setdefault(configuration, {})[process] = timing

    def _confirm(self, configuration: Configuration, process: int) -> Round:
        """Measures what is new, or what one earlier process alone measured: this may have been
        disturbed."""
        by = self._times.get(configuration, {})
        if process not in by and len(by) < CONFIRMED and self._possible(configuration):
            yield from self._measure(configuration, process)

    # What is known.

    def _known(self) -> dict[Configuration, _Standing]:
        """All that was measured. Times are compared with one another after the differences between
        processes are removed."""
        if self._standings is None:
            self._standings = _standings(self._times)
        return self._standings

    @property
    def _best(self) -> Configuration:
        return self._ordered()[0]

    def _ordered(self) -> list[Configuration]:
        """All that were measured, the fastest first."""
        known = self._known()
        return sorted(known, key=lambda c: (known[c].log, c != self.default))

    def _is_slower(
        self, configuration: Configuration, than: Configuration, by: float = 0.0
    ) -> bool:
        """Whether it is clearly slower than another one, and by so much."""
        known = self._known()
        found, other = known[configuration], known[than]
        apart = found.log - other.log
        return apart > found.half + other.half and apart > by

    def _contenders(self) -> list[Configuration]:
        """The best ones. What only one process measured is not dropped: it may have been
        disturbed."""
        ordered = self._ordered()
        return [
            each
            for each in ordered
            if len(self._times[each]) < CONFIRMED or not self._is_slower(each, ordered[0])
        ]

    # The climb.

    def _climb(self, process: int) -> Round:
        explored: set[Configuration] = set()
        while new := [each for each in self._origins() if each not in explored]:
            origin = new[0]
            explored.add(origin)
            for index, axis in enumerate(self.axes):
                if origin not in self._times:
                    break
                if axis.kind == "ordered":
                    yield from self._walk(index, origin, process)
                elif axis.kind == "choice":
                    for value in axis.values:
                        yield from self._confirm(_with(origin, index, value), process)
                else:
                    yield from self._grow(index, origin, process)

    def _origins(self) -> list[Configuration]:
        """Where the climb begins, and where it goes on: the best contenders so far."""
        first: list[Configuration] = []
        if not self._raced:
            first.append(self._start)
            if self._start == self.default:
                first += (
                    _with(self._start, index, value)
                    for index, axis in enumerate(self.axes)
                    if axis.kind == "choice"
                    for value in axis.values
                )
        return [*(c for c in first if c in self._times), *self._contenders()[:ORIGINS]]

    def _walk(self, index: int, origin: Configuration, process: int) -> Round:
        """From a value in both directions; in one direction only if that is better."""
        ascending = self.axes[index].ascending
        best = origin
        for step in (1, -1):
            position, patience = ascending.index(origin[index]) + step, PATIENCE
            while patience and 0 <= position < len(ascending):
                candidate = _with(origin, index, ascending[position])
                yield from self._confirm(candidate, process)
                known = self._known()
                if candidate in known and known[candidate].log < known[best].log:
                    best, patience = candidate, PATIENCE
                elif candidate in known and self._is_slower(candidate, best, FAR):
                    break
                else:
                    patience -= 1
                position += step
            if best != origin:
                return

    def _grow(self, index: int, origin: Configuration, process: int) -> Round:
        """Adds the member that helps most, as long as one helps. The default stands for all."""
        usual, *members = self.axes[index].values
        yield from self._confirm(_with(origin, index, usual), process)
        grown: tuple[str, ...] = ()
        least = math.inf
        while len(grown) + 1 < len(members):
            candidates: dict[tuple[str, ...], Configuration] = {}
            for member in members:
                if member not in grown:
                    subset = tuple(m for m in members if m in grown or m == member)
                    candidates[subset] = _with(origin, index, "+".join(subset))
                    yield from self._confirm(candidates[subset], process)
            known = self._known()
            times = {s: known[c].log for s, c in candidates.items() if c in known}
            if not times or min(times.values()) >= least:
                return
            grown = min(times, key=lambda subset: times[subset])
            least = times[grown]


def _with(configuration: Configuration, index: int, value: str) -> Configuration:
    return (*configuration[:index], value, *configuration[index + 1 :])


def _standings(
    times: Mapping[Configuration, Mapping[int, Timing]],
) -> dict[Configuration, _Standing]:
    """An additive model: the logarithm of a time is that of its configuration, and that of the
    process, which is the same for all configurations. It is fitted by medians (Tukey, "Exploratory
    Data Analysis", 1977), so that a visit that was disturbed changes neither."""
    logs = {c: {p: math.log(t.seconds) for p, t in by.items()} for c, by in times.items()}
    processes = sorted({process for by in logs.values() for process in by})
    of_process = dict.fromkeys(processes, 0.0)
    means: dict[Configuration, float] = {}
    for _ in range(5 if len(processes) > 1 else 1):
        means = {c: median([x - of_process[p] for p, x in by.items()]) for c, by in logs.items()}
        # Only configurations that several processes measured show how these differ.
        for process in processes[1:]:
            shown = [
                by[process] - means[c] for c, by in logs.items() if process in by and len(by) > 1
            ]
            of_process[process] = median(shown) if shown else of_process[process]
    residuals = [x - of_process[p] - means[c] for c, by in logs.items() for p, x in by.items()]
    repeated = [by for by in logs.values() if len(by) > 1]
    freedom = max(sum(len(by) - 1 for by in repeated) - (len(processes) - 1), 0)
    squares = math.fsum(x * x for x in residuals) + USUAL_FREEDOM * USUAL_DEVIATION**2
    variance = squares / (freedom + USUAL_FREEDOM)
    factor = student_quantile(freedom + USUAL_FREEDOM, (1 + CONFIDENCE) / 2)
    found: dict[Configuration, _Standing] = {}
    for configuration, by in times.items():
        within = math.fsum(t.deviation**2 for t in by.values()) / len(by) ** 2
        error = math.sqrt(max(variance / len(by), within))
        found[configuration] = _Standing(means[configuration], factor * error, error)
    return found


LEAST_PROCESSES = 3
"""Fewest processes of which a ratio has an interval: Student's factor of two is 12.7, so that the
interval would say nothing."""


class Ratio(Value, frozen=True):
    """How many times as fast something is, with its 95 % interval."""

    value: float
    interval: Interval | None = None
    """None if fewer than `LEAST_PROCESSES` measured both."""


def ratio(slower: Mapping[int, Timing], faster: Mapping[int, Timing]) -> Ratio | None:
    """The times of ``slower`` over those of ``faster``, by the processes that measured both; None
    if no process did."""
    both = sorted(slower.keys() & faster.keys())
    if not both:
        return None
    logs = [math.log(slower[p].seconds / faster[p].seconds) for p in both]
    mean, count = math.fsum(logs) / len(logs), len(logs)
    if count < LEAST_PROCESSES:
        return Ratio(math.exp(mean))
    between = math.fsum((x - mean) ** 2 for x in logs) / (count - 1) / count
    deviations = (slower[p].deviation ** 2 + faster[p].deviation ** 2 for p in both)
    error = math.sqrt(max(between, math.fsum(deviations) / count**2))
    half = student_quantile(count - 1, (1 + CONFIDENCE) / 2) * error
    return Ratio(math.exp(mean), Interval(math.exp(mean - half), math.exp(mean + half)))
