"""Orders that a scripted worker acts on, and the processes that acted."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from waywiser.machine.machine import Gpu, Machine, NumaNode
from waywiser.words import Memory, Place, Transfer, Workload
from waywiser.words import Path as WayPath
from waywiser.words.records import Order, Process, Rule

SCRIPTED_WORKER = Path(__file__).with_name("scripted_worker.py")

PATIENCE_SECONDS = 60.0
"""Longer than anything takes that does not hang, on however busy a machine."""

PATH = WayPath(Memory("pageable", Place("numa", 0)), Memory("pageable", Place("numa", 0)), "cpu")


def a_machine(gpus: int = 0) -> Machine:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    return Machine(
        hostname="scripted",
        architecture="x86_64",
        cpu_model="",
        packages=(),
        numa=(NumaNode(0, cpus, 1 << 30, 0),),
        caches=(),
        gpus=tuple(Gpu(i, f"GPU-{i}", "scripted", f"0000:0{i}:00.0") for i in range(gpus)),
    )


def an_order(
    *scripts: dict[str, str],
    block: int = 0,
    process: Process | None = None,
    timeout_seconds: float = PATIENCE_SECONDS,
    path: WayPath = PATH,
) -> Order:
    """One transfer per script, of 1, 2, ... bytes; one well-behaved transfer for no script."""
    transfers = [Transfer(path, i, script) for i, script in enumerate(scripts or ({},), start=1)]
    return Order(
        workload=Workload(tuple(transfers)),
        block=block,
        process=process or Process(),
        rule=Rule(),
        seed=1,
        buffer_bytes=1,
        expected_seconds=0.1,
        timeout_seconds=timeout_seconds,
    )


def a_command(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(SCRIPTED_WORKER), *arguments)


def is_alive(pid: int) -> bool:
    """Whether any of its threads is: the first may have ended while others still hold the files."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return False
    return state != "Z" or threads > 1


def processes_in(pids: Path) -> list[int]:
    return [int(file.name.rpartition("-")[2]) for file in pids.iterdir()]


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
