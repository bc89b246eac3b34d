"""Runs sets of transfers on a platform of SimGrid: ``python simgrid_spans.py PLATFORM < SETS``.

SETS is JSON: a list of sets, each a list of (source, destination, bytes). Prints the span of each
in seconds, as JSON. Copies of routes with the same property ``queue`` start in turn. It imports
nothing but SimGrid, so that any Python that has it can run it.
"""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import simgrid


def queues_of(platform: str) -> dict[str, tuple[str, float]]:
    """Route -> (its queue, seconds from the end of one copy to the start of the next)."""
    found = {}
    for link in ElementTree.parse(platform).iter("link"):
        own = {each.get("id"): each.get("value") for each in link.iter("prop")}
        if own.get("queue"):
            found[link.get("id")] = own["queue"], float(own["queue_gap"])
    return found


def main() -> None:
    sets = json.load(sys.stdin)
    engine = simgrid.Engine(["simgrid_spans", "--log=root.thresh:error"])
    engine.load_platform(sys.argv[1])
    queues = queues_of(sys.argv[1])
    spans = []

    def in_turn(copies: list[tuple[str, str, int, float]]) -> None:
        for number, (source, destination, size, gap) in enumerate(copies):
            if number:
                simgrid.this_actor.sleep_for(gap)
            ends = engine.host_by_name(source), engine.host_by_name(destination)
            simgrid.Comm.sendto_async(*ends, size).wait()

    def run() -> None:
        for transfers in sets:
            started = simgrid.Engine.clock
            chains: dict[object, list[tuple[str, str, int, float]]] = {}
            for number, (source, destination, size) in enumerate(transfers):
                queue, gap = queues.get(f"{source} -> {destination}", (number, 0.0))
                chains.setdefault(queue, []).append((source, destination, size, gap))
            actors = [
                simgrid.Actor.create("copies", engine.host_by_name(chain[0][0]), in_turn, chain)
                for chain in chains.values()
            ]
            for actor in actors:
                actor.join()
            spans.append(simgrid.Engine.clock - started)

    name = next(source for transfers in sets for source, _, _ in transfers)
    simgrid.Actor.create("sets", engine.host_by_name(name), run)
    engine.run()
    print(json.dumps(spans))


if __name__ == "__main__":
    main()
