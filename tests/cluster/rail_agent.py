"""An agent with workers of rails, and nothing else:

python rail_agent.py HOST:PORT TOKEN NAME RAILS
"""

from __future__ import annotations

import sys

from waywiser.cluster.connection.joining import Joining
from waywiser.cluster.node.agent import Agent, run_as_process
from waywiser.cluster.node.rail_handlers import rail_handlers
from waywiser.cluster.node.rail_workers import RailWorkers
from waywiser.measure.ranks.nccl_group import NcclGroup
from waywiser.measure.scope import working_machine
from waywiser.words.cluster import ClusterNode, Rail


def main() -> None:
    where, token, name, rails = sys.argv[1:]
    node = ClusterNode(name, rails=tuple(Rail(n, gpu=n) for n in range(int(rails))))
    workers = RailWorkers(working_machine, node.rails, NcclGroup)
    agent = Agent(Joining(where, token, node), rail_handlers(workers), on_end=workers.close)
    run_as_process(agent, 60.0)


if __name__ == "__main__":
    main()
