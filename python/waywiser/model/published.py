"""The rule of a published paper, so that its tables can be repeated and compared with other fits.

Bienz, Olson, Gropp & Lockhart, *Modeling Data Movement Performance on Heterogeneous Architectures*
(HPEC 2021), tables I to III, fit the postal model alpha + bytes * beta (Bar-Noy & Kipnis, SPAA
1992) to each kind of memory, locality and protocol:

- the time of a size is the minimum over all pairs and all jobs;
- a protocol has the sizes between two given thresholds, and an unweighted least-squares line;
- the injection rate R_N of the max-rate model (Gropp, Olson & Samfass, EuroMPI 2016) is one slope
  through 0: of what the time of n processes, n above a given number, exceeds alpha by, over all
  bytes of the node, where each process sends a message of the last protocol.

The rule gives no intervals and does not test its form. `waywiser.model.rate` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import linear_regression

from waywiser.machine import DECLARED
from waywiser.model.messages import LOCALITIES, Locality, MessageTimes
from waywiser.words import Value, WaywiserError, format_bytes, parse_bytes

PROTOCOLS = {1: ("",), 2: ("eager", "rendezvous"), 3: ("short", "eager", "rendezvous")}
"""Names of protocols by how many there are."""
MOST_PROTOCOLS = max(PROTOCOLS)
WHOLE = 4
"""Bytes that a message may lack to an equal share of all bytes: it has whole numbers."""
SATURATING = 5
"""Processes of a node from which on they are taken to fill its injection limit."""

LEAST_ERROR = 0.1
"""Deviation of a measured time from its line from which on the line is not to be trusted."""
MACHINES = {"Summit": "on-socket=256,16KiB; on-node=256,16KiB; off-node=256,16KiB"}
"""The switches by which the tables of the paper are repeated; those of Lassen are not known."""

Switches = Mapping[tuple[str, Locality], tuple[int, ...]]
"""The first size of each protocol but the first, by kind of memory and locality."""


class SwitchesError(WaywiserError):
    """A text of switches that is none."""


class PublishedLine(Value, frozen=True):
    """The postal model of one protocol."""

    source: str
    """The kind of memory: ``pinned``, ``device``."""
    destination: str
    locality: Locality
    protocol: str
    """``short``, ``eager`` or ``rendezvous``; empty if there is one."""
    low: int
    """Bytes: the first size that it was fitted to."""
    high: int
    latency: float
    """Alpha: seconds."""
    inverse_rate: float
    """Beta: seconds per byte."""

    def seconds(self, bytes: float) -> float:
        return self.latency + self.inverse_rate * bytes


class PublishedModel(Value, frozen=True):
    """All that the rule fits."""

    lines: tuple[PublishedLine, ...]
    injection: dict[str, float]
    """Seconds per byte of one node, by kind of memory; without those that were not measured."""

    def protocols(self, source: str, destination: str, locality: Locality) -> list[PublishedLine]:
        """The lines of one kind of message, by size."""
        expected = (source, destination, locality)
        found = [x for x in self.lines if (x.source, x.destination, x.locality) == expected]
        return sorted(found, key=lambda line: line.low)

    def line(
        self, source: str, destination: str, locality: Locality, bytes: float
    ) -> PublishedLine | None:
        """The line of the protocol that a message of so many bytes has."""
        found = self.protocols(source, destination, locality)
        fitting = [each for each in found if each.low <= bytes] or found[:1]
        return fitting[-1] if fitting else None


def parse_switches(text: str) -> dict[tuple[str, Locality], tuple[int, ...]]:
    """``off-node=256,16KiB; device off-node=8KiB``: thresholds by locality, of host memory if no
    kind of memory is named. Raises `SwitchesError`."""
    found: dict[tuple[str, Locality], tuple[int, ...]] = {}
    for item in filter(None, (piece.strip() for piece in text.split(";"))):
        name, separator, sizes = item.partition("=")
        *kind, place = name.split() or [""]
        locality = next((each for each in LOCALITIES if each == place), None)
        if not separator or locality is None or len(kind) > 1:
            raise SwitchesError(
                f"{item!r} is no list of switches",
                remedy=f"write LOCALITY=SIZE,SIZE; a locality is {', '.join(LOCALITIES)}",
            )
        values = tuple(parse_bytes(size) for size in sizes.split(",") if size.strip())
        if not 1 <= len(values) < MOST_PROTOCOLS or not all(a < b for a, b in pairwise(values)):
            raise SwitchesError(
                f"{item!r} has no 1 to {MOST_PROTOCOLS - 1} ascending sizes",
                remedy="write the first size of each protocol but the first",
            )
        found[kind[0] if kind else _host_memory(), locality] = values
    return found


def _host_memory() -> str:
    """The memory of the host that copies to GPUs start from."""
    return DECLARED.reference_memory("gpu", "numa")


def fit(
    messages: Iterable[MessageTimes], switches: Switches, saturating: int = SATURATING
) -> PublishedModel:
    """The model of all messages and copies by the rule; ``saturating`` is the number of processes
    from which on the injection rate is fitted."""
    messages = tuple(messages)
    least = _least(messages)
    groups = [each for each in messages if each.test == "node-pong"]
    lines = []
    for (source, destination, locality), times in sorted(least.items()):
        starts = (0, *switches.get((source, locality), ())) if source == destination else (0,)
        names = PROTOCOLS[len(starts)]
        for n, name in enumerate(names):
            end = starts[n + 1] if n + 1 < len(starts) else float("inf")
            sizes = sorted(size for size in times if starts[n] <= size < end)
            if len(sizes) < 2:
                continue
            rate, latency = linear_regression(sizes, [times[size] for size in sizes])
            lines.append(
                PublishedLine(
                    source, destination, locality, name, sizes[0], sizes[-1], latency, rate
                )
            )
    model = PublishedModel(tuple(lines), {})
    kinds = sorted({each.source for each in groups})
    rates = {kind: _injection(model, kind, groups, switches, saturating) for kind in kinds}
    return PublishedModel(
        model.lines, {kind: rate for kind, rate in rates.items() if rate is not None}
    )


def _least(messages: Iterable[MessageTimes]) -> dict[tuple[str, str, Locality], dict[int, float]]:
    """The minimum of each size over all pairs and jobs."""
    found: dict[tuple[str, str, Locality], dict[int, float]] = {}
    for each in messages:
        if each.count == 1 and each.test in ("", "ping-pong"):
            known = found.setdefault((each.source, each.destination, each.locality), {})
            known[each.bytes] = min(each.least, known.get(each.bytes, each.least))
    return found


def warnings_of(
    model: PublishedModel, messages: Iterable[MessageTimes], switches: Switches
) -> list[str]:
    """What of the model is not to be trusted, and why; messages without switches first."""
    off = {line: _off(line, times) for line, times in _lines_and_times(model, messages)}
    one = [
        each
        for each, errors in off.items()
        if each.source == each.destination
        and (each.source, each.locality) not in switches
        and (not switches or max(map(abs, errors.values())) >= LEAST_ERROR)
    ]
    return [
        *_without_switches(model, one, offers=not switches),
        *filter(None, map(_far, off, off.values())),
    ]


def _lines_and_times(
    model: PublishedModel, messages: Iterable[MessageTimes]
) -> list[tuple[PublishedLine, dict[int, float]]]:
    times = _least(messages)
    return [(each, times[each.source, each.destination, each.locality]) for each in model.lines]


def _off(line: PublishedLine, times: Mapping[int, float]) -> dict[int, float]:
    """How far a line is from the times of its sizes, relative to these."""
    return {n: line.seconds(n) / t - 1 for n, t in times.items() if line.low <= n <= line.high}


def _without_switches(
    model: PublishedModel, one: Sequence[PublishedLine], *, offers: bool
) -> Iterator[str]:
    if not one:
        return
    curves = ", ".join(f"{each.source} {each.locality}" for each in one)
    offer = "; ".join(f'of {name}: --switches "{text}"' for name, text in MACHINES.items())
    yield (
        f"no switches are given for {curves}: one line is fitted to each whole curve, so where "
        "the library changes its protocol, alpha and beta are those of no protocol; give the "
        "first size of each" + (f"; those {offer} (one line for GPU memory)" if offers else "")
    )
    kinds = {each.source for each in one if each.locality == "off-node"} & set(model.injection)
    if kinds:
        yield f"R_N of {', '.join(sorted(kinds))} memory rests on such a line"


def _far(line: PublishedLine, off: Mapping[int, float]) -> str:
    """How many sizes a line is far from; empty if from none."""
    most = max(off, key=lambda n: abs(off[n]))
    wrong = sum(abs(each) >= LEAST_ERROR for each in off.values())
    if not wrong:
        return ""
    name = " ".join(filter(None, (line.locality, line.protocol)))
    ends = " to ".join(dict.fromkeys((line.source, line.destination)))
    return (
        f"{ends} {name}: the line is {LEAST_ERROR:.0%} or more off {wrong} of {len(off)} sizes, at "
        f"most {off[most]:+.0%} at {format_bytes(most)}"
    )


def _injection(
    model: PublishedModel,
    kind: str,
    groups: Iterable[MessageTimes],
    switches: Switches,
    saturating: int,
) -> float | None:
    """Seconds per byte of a node; None without a measurement of enough processes."""
    of_host = switches.get((_host_memory(), "off-node"), ())
    last = switches.get((kind, "off-node"), of_host)
    product = square = 0.0
    for each in groups:
        total = each.bytes * each.count
        line = model.line(kind, kind, "off-node", total)
        if each.source != kind or each.count < saturating or line is None:
            continue
        if each.bytes <= (last[-1] if last else 0) - WHOLE:
            continue
        product += total * (each.least - line.latency)
        square += total * total
    return product / square if square else None
