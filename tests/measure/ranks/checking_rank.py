"""A rank of a test: it checks messages over MPI, says what it found, and waits for its end."""

from __future__ import annotations

import json
import os
import sys
import time

from waywiser.measure.ranks.rank import connect_back, end_with, say_joined
from waywiser_fake import _native, _testing

LARGEST_BYTES = 262144


def main() -> None:
    connection = connect_back()
    end_with(connection)
    bridge = _native.Bridge(sys.argv[1])
    messenger = bridge.join()
    say_joined(connection, bridge, messenger)
    found = {
        "wrong": _testing.check_messenger(messenger, LARGEST_BYTES),
        "multicast": os.environ.get("NCCL_NVLS_ENABLE"),
        "temporary": os.environ["TMPDIR"],
        "stage": bridge.stage,
    }
    messenger.barrier()
    connection.sendall(json.dumps(found).encode() + b"\n")
    time.sleep(600)


if __name__ == "__main__":
    main()
