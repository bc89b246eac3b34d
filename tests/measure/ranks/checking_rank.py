"""A rank of a test: it checks messages over MPI, says what it found, and waits for its end."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from waywiser.measure.ranks.rank import connect_back, end_with, say_joined
from waywiser.measure.supervise.deadline import NEVER
from waywiser_fake import _native, _testing

LARGEST_BYTES = 262144


def stage_while_blocked(bridge: Any, messenger: Any) -> str:
    """What a second thread of rank 0 sees while the first waits for a message, which rank 1 sends
    when that thread has seen it."""
    seen = Path(os.environ["TMPDIR"], "seen")

    def look() -> None:
        while not (stage := bridge.stage):
            time.sleep(0.001)
        seen.with_suffix(".part").write_text(stage)
        seen.with_suffix(".part").rename(seen)

    if messenger.rank == 0:
        looking = threading.Thread(target=look)
        looking.start()
        messenger.receive(bytearray(1), 1)
        looking.join()
    elif messenger.rank == 1:
        while not seen.exists():
            time.sleep(0.001)
        messenger.send(b"x", 0)
    messenger.barrier()
    return seen.read_text()


def main() -> None:
    channel = connect_back()
    end_with(channel)
    bridge = _native.Bridge(sys.argv[1])
    messenger = bridge.join()
    say_joined(channel, bridge, messenger)
    found = {
        "wrong": _testing.check_messenger(messenger, LARGEST_BYTES),
        "multicast": os.environ.get("NCCL_NVLS_ENABLE"),
        "temporary": os.environ["TMPDIR"],
        "stage": bridge.stage,
        "blocked": stage_while_blocked(bridge, messenger),
    }
    messenger.barrier()
    channel.send(json.dumps(found).encode() + b"\n", NEVER)
    time.sleep(600)


if __name__ == "__main__":
    main()
