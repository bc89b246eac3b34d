"""A platform of SimGrid (XML 4.1).

Each place is a host. A route has a link of its own with the time of one copy, which is not shared,
and one shared link for each resource with a capacity. Shares of SimGrid are max-min fair, as those
of the model, but weighted with latencies: so all routes have the same latency, and a bandwidth with
which a copy takes its time. A link has no order: a route whose copies run one after another has the
name of the queue as a property of its own link, for the program that starts the copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from xml.sax.saxutils import quoteattr

from waywiser.model.capacity import CapacityModel
from waywiser.model.export.exported_routes import ROUTE_BYTES, ExportedRoute, exported_routes
from waywiser.version import __version__
from waywiser.words import format_bytes

OPTIONS = {
    "network/model": "CM02",
    "network/TCP-gamma": "0",
    "network/crosstraffic": "0",
}
"""The default model of SimGrid takes 3 % of the bandwidth and 13 times the latency."""

_NONE: Mapping[str, str] = {}

LOSSES = (
    "It loses: copies by other executors, settings and kinds of memory; copies within one memory;",
    "times of other sizes, since all routes have one latency, and a route has one bandwidth;",
    "that copies of one queue run one after another: SimGrid runs them together, unless the",
    "program starts those of routes with the same property 'queue' in turn, 'queue_gap' seconds",
    "after each end;",
    "intervals, and limits that are not known.",
)


def simgrid_xml(model: CapacityModel, bytes: int = ROUTE_BYTES) -> str:
    """The platform file, exact for copies of ``bytes``. Raises `ModelError` for a model without
    GPUs."""
    return "".join(f"{line}\n" for line in _lines(model, bytes))


def _lines(model: CapacityModel, bytes: int) -> Iterator[str]:
    routes = exported_routes(model, bytes)
    latency = _common_latency(routes, bytes)
    name = model.machine.hostname or "machine"
    yield "<?xml version='1.0'?>"
    yield '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    yield f"<!-- {_comment(f'Copies of {name}, made by waywiser {__version__}.')}"
    yield f"     Times are exact for copies of {format_bytes(bytes)}."
    if model.machine.simulated:
        yield f"     {_comment(f'The machine is simulated {model.machine.simulated}.')}"
    yield from (f"     {line}" for line in LOSSES)
    yield "-->"
    yield '<platform version="4.1">'
    yield "  <config>"
    yield from (f'    <prop id="{key}" value="{value}"/>' for key, value in OPTIONS.items())
    yield "  </config>"
    yield f'  <zone id={quoteattr(name)} routing="Full">'
    places = dict.fromkeys(place for each in routes for place in (each.source, each.destination))
    yield from (f'    <host id="{place}" speed="1Gf"/>' for place in places)
    shared = {_shared(*use): 1 / use[1] for each in routes for use in each.demand.loads.items()}
    for link, rate in shared.items():
        yield _link(link, rate, 0.0, "SHARED")
    for each in routes:
        seconds = each.demand.latency + bytes / each.demand.rate
        demand = each.demand
        queue = {"queue": demand.queue, "queue_gap": repr(demand.gap)} if demand.queue else {}
        yield _link(_own(each), bytes / (seconds - latency), latency, "FATPIPE", queue)
    for each in routes:
        links = [_own(each), *(_shared(*use) for use in each.demand.loads.items())]
        inside = "".join(f"<link_ctn id={quoteattr(link)}/>" for link in links)
        ends = f'src="{each.source}" dst="{each.destination}"'
        yield f'    <route {ends} symmetrical="NO">{inside}</route>'
    yield "  </zone>"
    yield "</platform>"


def _common_latency(routes: Sequence[ExportedRoute], bytes: int) -> float:
    """The latency of the fastest routes, their median: of slower ones it is a smaller part."""
    rates = [each.demand.rate for each in routes]
    fastest = [each for each in routes if each.demand.rate > 0.8 * max(rates)]
    return median(each.demand.latency for each in fastest)


def _link(
    name: str, rate: float, latency: float, policy: str, properties: Mapping[str, str] = _NONE
) -> str:
    inside = "".join(
        f"<prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in properties.items()
    )
    return (
        f'    <link id={quoteattr(name)} bandwidth="{rate!r}Bps" latency="{latency!r}s" '
        f'sharing_policy="{policy}"{f">{inside}</link>" if inside else "/>"}'
    )


def _own(route: ExportedRoute) -> str:
    return f"{route.source} -> {route.destination}"


def _shared(resource: str, load: float) -> str:
    """A resource that methods use with different capacities is one link for each."""
    return f"{resource} at {1 / load / 1e9:.6g} GB/s"


def _comment(text: str) -> str:
    """Text that may be in a comment of XML."""
    return text.replace("--", "- -")
