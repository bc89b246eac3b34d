"""Runs sets of transfers on a platform of SimGrid: ``python simgrid_spans.py PLATFORM < SETS``.

SETS is JSON: a list of sets, each a list of (source, destination, bytes). Prints the span of each
in seconds, as JSON. It imports nothing but SimGrid, so that any Python that has it can run it.
"""

from __future__ import annotations

import json
import sys

import simgrid


def main() -> None:
    sets = json.load(sys.stdin)
    engine = simgrid.Engine(["simgrid_spans", "--log=root.thresh:error"])
    engine.load_platform(sys.argv[1])
    spans = []

    def run() -> None:
        for transfers in sets:
            started = simgrid.Engine.clock
            copies = [
                simgrid.Comm.sendto_async(
                    engine.host_by_name(source), engine.host_by_name(destination), size
                )
                for source, destination, size in transfers
            ]
            simgrid.Comm.wait_all(copies)
            spans.append(simgrid.Engine.clock - started)

    name = next(source for transfers in sets for source, _, _ in transfers)
    simgrid.Actor.create("sets", engine.host_by_name(name), run)
    engine.run()
    print(json.dumps(spans))


if __name__ == "__main__":
    main()
