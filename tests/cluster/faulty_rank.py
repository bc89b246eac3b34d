"""A rank that is not well on one node.

    python faulty_rank.py NODE FAULT PYTHON -m waywiser.measure.ranks.rank_worker BRIDGE SHA256

``crash``, ``hang`` and ``stop`` are in the middle of the first measurement, ``start`` is a stop
before MPI starts. The rank is as all others on other nodes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from waywiser.measure.probe.worker import NativeMeasurer
from waywiser.measure.ranks import rank_worker

FAULTS: dict[str, Callable[[], object]] = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(600),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "start": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


def main() -> int:
    node, fault, *command = sys.argv[1:]
    if socket.gethostname() == node:
        if fault == "start":
            joined = rank_worker.joined

            def stopped(*arguments: Any) -> Any:
                FAULTS[fault]()
                return joined(*arguments)

            rank_worker.joined = stopped
        else:

            def measure(self: NativeMeasurer, order: Any, estimate: Any) -> Any:
                FAULTS[fault]()

            NativeMeasurer.measure = measure  # type: ignore[method-assign]
    return rank_worker.main(command[command.index("-m") + 2 :])


if __name__ == "__main__":
    sys.exit(main())
