"""The decision of one kind of copy over sizes: all methods, their times, and which one is used."""

from __future__ import annotations

from typing import Literal

import msgspec

from waywiser.analysis.policy.table import MethodCosts, Relation
from waywiser.stats import Interval
from waywiser.stats.method_choice import TOLERANCE
from waywiser.words import Value, format_settings

Why = Literal["only", "faster", "simpler", "shorter"]
"""Why a method is used at a size: it is the only one; it is faster than every simpler one by more
than the noise; no faster one is so by more than the noise; it saves changes of method."""


class CopyKind(Value, frozen=True):
    """The class of a copy: the kinds of memory of both sides and, between GPUs, their relation."""

    source: str
    destination: str
    relation: Relation = ""
    peers_idle: bool = False
    """Whether methods that use the links of other GPUs are among its methods."""
    host_contiguous: bool = False
    """Whether they are lists that are contiguous in host memory and scattered on a GPU."""

    @property
    def of_class(self) -> CopyKind:
        """The kind of all copies in the same class of a policy."""
        return msgspec.structs.replace(self, host_contiguous=False)

    def __str__(self) -> str:
        text = f"{self.source} -> {self.destination}"
        words = _RELATIONS[self.relation]
        idle = "other GPUs idle" if self.peers_idle else ""
        side = HOST_CONTIGUOUS if self.host_contiguous else ""
        return ", ".join(filter(None, (text, words, idle, side)))


HOST_CONTIGUOUS = "contiguous in host memory"
"""What is said of lists whose pieces lie one after another there, and are scattered on a GPU."""


_RELATIONS = {
    "": "",
    "same": "within a GPU",
    "peers": "between GPUs with peer access",
    "no-peers": "between GPUs without peer access",
}


class Method(Value, frozen=True):
    """An executor with the settings that differ from its defaults, as the library knows them."""

    executor: str
    settings: dict[str, str]

    def __str__(self) -> str:
        return f"{self.executor}{format_settings(self.settings)}"

    def __hash__(self) -> int:
        return hash((self.executor, *sorted(self.settings.items())))


class MethodTime(Value, frozen=True):
    """The time of a method at one size, from call to completion."""

    seconds: float
    low: float
    high: float
    """The 95 % interval, the noise between processes included."""
    costs: MethodCosts
    interpolated: bool = False
    """Not measured at this size, but between its neighbours."""
    series: str = ""
    """The text of the measured series; of an interpolated time that of its curve."""
    pieces: int = 1
    processes: int = 1
    """The number of processes in which it was measured."""
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """All settings of the method, those with default values too. Those alone that differ if
    another version measured it, whose defaults this version does not know."""

    @property
    def interval(self) -> Interval:
        return Interval(self.low, self.high)

    @property
    def relative_width(self) -> float:
        """Half of the interval, as a share of the time."""
        return (self.high - self.low) / 2 / self.seconds


class SizeDecision(Value, frozen=True):
    """One size of a table."""

    bytes: int
    """Bytes of the copy, or of each piece."""
    from_bytes: int
    """The smallest size that the decision is for."""
    chosen: int
    """The position of the method."""
    times: tuple[MethodTime | None, ...]
    """The time of each method, in their order; None if it is not known at this size."""
    why: Why

    @property
    def time(self) -> MethodTime:
        """That of the chosen method."""
        found = self.times[self.chosen]
        assert found is not None
        return found

    @property
    def ranked(self) -> list[int]:
        """The positions of all methods that are known here, the fastest first."""
        known = [(each.seconds, n) for n, each in enumerate(self.times) if each is not None]
        return [n for _, n in sorted(known)]

    @property
    def next(self) -> int | None:
        """The fastest of the other methods; None if there is none."""
        return next((n for n in self.ranked if n != self.chosen), None)

    @property
    def hidden(self) -> int | None:
        """The fastest method if noise alone hides whether it is better than the chosen one: it
        takes less time by more than `TOLERANCE`, and an interval is wider than that."""
        first = self.ranked[0]
        fastest = self.times[first]
        if first == self.chosen or fastest is None:
            return None
        loss = self.time.seconds / fastest.seconds - 1
        width = max(self.time.relative_width, fastest.relative_width)
        return first if TOLERANCE < loss < width else None

    def margin(self, method: int) -> float | None:
        """How much longer a method takes than the chosen one, as a share."""
        time = self.times[method]
        return time.seconds / self.time.seconds - 1 if time is not None else None


class DecisionTable(Value, frozen=True):
    """The decision for one kind of copy, one number of threads and one range of counts."""

    kind: CopyKind
    threads: int
    """The number of CPUs from which it holds."""
    count: int
    """1 for one copy; else the smallest number of pieces that the table is for."""
    methods: tuple[Method, ...]
    """The simplest first: that which takes least from others."""
    plain: int | None
    """The position of the plain copy: the reference of its class with default settings."""
    decisions: tuple[SizeDecision, ...]
    """Ascending in size."""
    paths: tuple[str, ...] = ()
    """The places that were pooled: ``numa:0 -> gpu:0``."""
    notes: tuple[str, ...] = ()
    """What a reader has to know: paths that differ, say."""
    not_measured: tuple[str, ...] = ()
    """Executors with which the transfer library could make the copy too."""
    undecided: str = ""
    """Why its times decide nothing: other programs used the machine, and CPUs copy by some
    method. Empty if they decide."""
    hidden: str = ""
    """At which sizes noise hides whether another method is better. Empty if there are none."""
    remedy: str = ""
    """What to do so that the times decide."""
    fewer_cpus: tuple[DecisionTable, ...] = ()
    """The tables of the methods that fewer CPUs can do, ascending in their number."""

    def times_at(self, size: int) -> tuple[MethodTime | None, ...] | None:
        """The times of all methods at any size between the smallest and the largest one; None for
        another size."""
        exact = next((each for each in self.decisions if each.bytes == size), None)
        if exact is not None:
            return exact.times
        below = [each for each in self.decisions if each.bytes < size]
        above = [each for each in self.decisions if each.bytes > size]
        if not below or not above:
            return None
        low, high = below[-1], above[0]
        share = (size - low.bytes) / (high.bytes - low.bytes)
        pairs = zip(low.times, high.times, strict=True)
        return tuple(_between(a, b, share) if a and b else None for a, b in pairs)

    def at(self, size: int) -> SizeDecision | None:
        """The decision for a size; None below the first one."""
        found = [each for each in self.decisions if each.from_bytes <= size]
        return found[-1] if found else None


def _between(one: MethodTime, other: MethodTime, share: float) -> MethodTime:
    def at(name: str) -> float:
        low, high = getattr(one, name), getattr(other, name)
        return float(low + share * (high - low))

    return msgspec.structs.replace(
        other, seconds=at("seconds"), low=at("low"), high=at("high"), interpolated=True
    )
