"""The limit of a relay copy over several links, decided from measurements of the same links.

A relay copy moves bytes between host memory and one GPU over the links of several GPUs. It cannot
be faster than any measurement of `LIMITS` on the same links. The first four are a chain: each uses
one resource more than the one before. So the limit is the first resource with which the bandwidth
has fallen to the lowest bound of all: what comes later in the chain takes nothing more.

Bounds are compared round by round, because all measurements of a round are made within a fraction
of a second. A bound is equal to the lowest one if the 95 % interval of the median of its ratios to
it (order statistics) ends below 1 + `MARGIN`, and above it if the interval begins there. Otherwise
the rounds do not decide which one holds, and both are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from waywiser.stats.order import Interval, median, median_interval

MARGIN = 0.05
"""Bounds within 5 % are equal."""
REACHED = 0.85
"""A relay copy that moves less of its lowest bound is held by something that was not measured."""

LINK, HOST_MEMORY, INTERCONNECT, COPY_ENGINE, NVLINK = LIMITS = (
    "link",
    "host memory",
    "socket interconnect",
    "copy engine",
    "NVLink",
)
NOT_MEASURED = "none of those measured"

SHOWN_BY = {
    LINK: "each link alone, summed",
    HOST_MEMORY: "the links at once, each with host memory of its own socket",
    INTERCONNECT: "the links at once, with the host memory of the relay copy",
    COPY_ENGINE: "the same, while the relays also copy over NVLink",
    NVLINK: "all relays at once over NVLink, and the GPU's own link alone",
}
"""The measurement behind each bound, in words."""


@dataclass(frozen=True)
class LinkLimit:
    """The limit of a relay copy over some links."""

    links: int
    rate: float
    """Median bandwidth of the relay copy, in bytes per second."""
    limits: tuple[str, ...]
    """The limit that holds it; several if the rounds do not separate them; `NOT_MEASURED` if it
    stays far below all bounds."""
    bounds: dict[str, float]
    """Median bandwidth of each measurement."""
    lowest: str
    """The limit whose bound is the lowest."""
    reached: float
    """The relay copy's part of the lowest bound: median of the rounds."""
    interval: Interval | None
    """The 95 % interval of ``reached``; None with fewer than six rounds."""

    @property
    def above_bound(self) -> bool:
        """Whether it exceeds a bound, so that the bound does not measure what the copy uses."""
        return (self.interval.low if self.interval else self.reached) > 1 + MARGIN


def find_limit(
    links: int, relay: Sequence[float], bounds: Mapping[str, Sequence[float]]
) -> LinkLimit:
    """Decides what holds a relay copy. All are bandwidths by round, in the same order of rounds.
    ``bounds`` has those of `LIMITS` that were measured. Raises ValueError for other names, and for
    numbers of rounds that differ."""
    unknown = set(bounds) - set(LIMITS)
    if unknown or not bounds:
        raise ValueError(f"no bounds, or unknown ones: {sorted(unknown)}")
    if not relay or any(len(rates) != len(relay) for rates in bounds.values()):
        raise ValueError("every measurement needs one bandwidth for each round")
    medians = {name: median(bounds[name]) for name in LIMITS if name in bounds}
    lowest = min(medians, key=lambda name: medians[name])
    shares = _ratios(relay, bounds[lowest])
    found = LinkLimit(
        links=links,
        rate=median(relay),
        limits=(NOT_MEASURED,),
        bounds=medians,
        lowest=lowest,
        reached=median(shares),
        interval=median_interval(shares),
    )
    if found.reached < REACHED:
        return found
    return LinkLimit(**{**vars(found), "limits": _first_equal(bounds, lowest)})


def _first_equal(bounds: Mapping[str, Sequence[float]], lowest: str) -> tuple[str, ...]:
    """The first limit that is equal to the lowest one, and those before it that may be."""
    found: list[str] = []
    for name in LIMITS:
        if name not in bounds:
            continue
        ratios = _ratios(bounds[name], bounds[lowest])
        span = median_interval(ratios) or Interval(min(ratios), max(ratios))
        if name == lowest or span.high <= 1 + MARGIN:
            return (*found, name)
        if span.low <= 1 + MARGIN:
            found.append(name)
    raise AssertionError("the lowest bound is one of them")


def _ratios(rates: Sequence[float], base: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(rates, base, strict=True)]


def limit_table(direction: str, found: Sequence[LinkLimit]) -> list[str]:
    """Lines of a Markdown table: the relay copy of each number of links, its bounds, its limit."""
    shown = [name for name in LIMITS if any(name in each.bounds for each in found)]
    lines = [
        f"| {direction}, links | relay, GB/s | {' | '.join(shown)} | of the lowest | limit |",
        f"|---|---|{'---|' * len(shown)}---|---|",
    ]
    for each in found:
        bounds = [f"{each.bounds[n] / 1e9:.1f}" if n in each.bounds else "" for n in shown]
        span = f" ({each.interval.low:.2f} to {each.interval.high:.2f})" if each.interval else ""
        limit = " or ".join(each.limits)
        if each.above_bound:
            limit += ", but the copy exceeds the bound"
        lines.append(
            f"| {each.links} | {each.rate / 1e9:.1f} | {' | '.join(bounds)} | "
            f"{each.reached:.2f}{span} | {limit} |"
        )
    return lines
