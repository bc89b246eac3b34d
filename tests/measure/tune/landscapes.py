"""Synthetic machines for the search: the time of each configuration is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from waywiser.measure.tune.search import Configuration, Search, SearchAxis, Timing

Seconds = Callable[[Mapping[str, str]], float]

CHUNK = SearchAxis("chunk", "ordered", ("4", "1", "2", "8", "16"))
SLOTS = SearchAxis("slots", "ordered", ("3", "1", "2", "4"))
THREADS = SearchAxis("threads", "ordered", ("4", "1", "2", "8", "16"))
STORES = SearchAxis("stores", "choice", ("ordinary", "streaming"))
AXES = (CHUNK, SLOTS, THREADS, STORES)
"""200 configurations."""


@dataclass
class Landscape:
    """A machine that takes known times, with noise, drift and differences between processes."""

    seconds: Seconds
    noise: float = 0.005
    between: float = 0.01
    drift: float = 0.0
    """Relative, from one visit to the next."""
    seed: int = 1
    fails: Callable[[Mapping[str, str]], bool] = lambda settings: False
    visits: list[tuple[int, Configuration]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._processes: dict[int, float] = {}

    def measure(
        self, axes: tuple[SearchAxis, ...], configuration: Configuration, process: int
    ) -> Timing | None:
        settings = {a.name: value for a, value in zip(axes, configuration, strict=True)}
        self.visits.append((process, configuration))
        if self.fails(settings):
            return None
        factor = self._processes.setdefault(process, self._random.lognormvariate(0, self.between))
        factor *= self._random.lognormvariate(0, self.noise) * (1 + self.drift) ** len(self.visits)
        return Timing(self.seconds(settings) * factor, self.noise / 3)


def play(
    search: Search, landscape: Landscape, rounds: int = 4, climbing: int = 3, most: int = 10_000
) -> None:
    """The rounds of a search on a landscape; a round ends early after ``most`` visits in all."""
    for number in range(rounds):
        steps = search.round(number, climb=number < climbing)
        try:
            configuration = next(steps)
            while len(landscape.visits) < most:
                timing = landscape.measure(search.axes, configuration, number)
                configuration = steps.send(timing)
            steps.close()
        except StopIteration:
            pass


def settings_of(search: Search, configuration: Configuration) -> dict[str, str]:
    return {a.name: value for a, value in zip(search.axes, configuration, strict=True)}
