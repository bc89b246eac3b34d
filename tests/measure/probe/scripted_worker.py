"""A worker that misbehaves on command: the command is in the parameters of the order's first
transfer (``do`` and ``when``), or for its start in ``--startup``."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

from waywiser.measure.probe.protocol import (
    Failed,
    Located,
    MeasuredVisit,
    Progressed,
    Ready,
    encode,
)
from waywiser.measure.probe.serve import OrderFailed, parser, serve
from waywiser.measure.probe.share import share_of
from waywiser.words import WaywiserError
from waywiser.words.records import BlockLatencies, BufferRecord, Failure, Samples

HANG_SECONDS = 600
"""Longer than any test waits for its end."""

arguments = parser("misbehaves")
arguments.add_argument("--before", default="", help="what it does before it reads anything")
arguments.add_argument("--startup", default="")
arguments.add_argument("--startup-of", type=int, help="the block whose worker does that alone")
arguments.add_argument("--gather", type=int, default=1, help="workers that start side by side")
arguments.add_argument("--locating", default="", help="what it does when it is asked to locate")
arguments.add_argument("--pids", type=Path, help="a folder that gets a file per worker")
arguments.add_argument("--backend", default="scripted")
said = arguments.parse_args()


def put(data: bytes) -> None:
    os.write(said.write_fd, data)


def put_huge_line() -> None:
    try:
        for _ in range(1000):
            put(b"x" * (1 << 20))
    except OSError:
        time.sleep(HANG_SECONDS)


def crash() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


def close_answers() -> None:
    os.close(said.write_fd)
    time.sleep(HANG_SECONDS)


def put_half_a_line() -> None:
    put(b'{"v":1,"type":"resu')
    os._exit(3)


def fail(kind: str, *, fatal: bool) -> None:
    raise OrderFailed(kind, f"scripted {kind}", fatal=fatal)


def stop(message: str) -> None:
    raise WaywiserError(message, remedy="scripted remedy")


def give_up(order: int) -> None:
    """As a worker does that finds out between two orders that it cannot go on."""
    put(encode(Failed(order, Failure("sticky", "scripted loss of the device"), fatal=True)))


def give_up_and_exit() -> None:
    give_up(0)
    os._exit(0)


def give_up_later() -> None:
    """Between two orders: when the test has made the file ``go-on``; then makes ``given-up``."""

    def later() -> None:
        wait_to_go_on()
        give_up(0)
        (said.pids.parent / "given-up").touch()

    threading.Thread(target=later, daemon=True).start()


def complain() -> None:
    put(encode(Failed(99, Failure("gpu", "scripted complaint"))))


def close_output() -> None:
    os.close(1)
    os.close(2)


def babble() -> None:
    """Prints for ever; reads nothing."""
    while True:
        print("driver: busy", flush=True)


def make_noise() -> None:
    print("driver: \x1b[1mready\x1b[0m\n" * 100_000, flush=True)


def leave_child() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(HANG_SECONDS)
    (said.pids / f"child-{child}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def wait_to_go_on() -> None:
    """Until the test has made the file."""
    while not (said.pids.parent / "go-on").exists():
        time.sleep(0.01)


def exit_first() -> None:
    """Ends the first worker that comes here."""
    first = said.pids.parent / "exited"
    if not first.exists():
        first.touch()
        os._exit(7)


def exit_with_gpus() -> None:
    """Ends if contexts are to be made, as a driver may that fails at that."""
    if said.hello.gpus:
        os._exit(7)


def gather() -> None:
    """Until so many workers have started."""
    while len(list(said.pids.glob("worker-*"))) < said.gather:
        time.sleep(0.01)


def note(what: str, block: int) -> None:
    """Keeps when it was, by a clock that all processes share."""
    if said.pids:
        with (said.pids.parent / "events").open("a") as events:
            events.write(f"{time.monotonic()} {os.getpid()} {what} {block}\n")


DEEDS = {
    "": lambda: None,
    "exit-first": exit_first,
    "exit-with-gpus": exit_with_gpus,
    "gather": gather,
    "segv": crash,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(HANG_SECONDS),
    "freeze": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "sleep": lambda: time.sleep(0.5),
    "wait": wait_to_go_on,
    "garbage": lambda: put(b"libgpu: warning 7\n"),
    "huge": put_huge_line,
    "version": lambda: put(b'{"v":2,"type":"prepared","id":1}\n'),
    "late-version": lambda: put(b'{"type":"prepared","id":1,"v":1}\n'),
    "turn": lambda: put(encode(Ready(os.getpid(), "scripted"))),
    "stale": lambda: put(encode(Progressed(99, 1, 1.0))),
    "exit": lambda: os._exit(0),
    "exit-7": lambda: (print("cannot go on", file=sys.stderr, flush=True), os._exit(7)),
    "half": put_half_a_line,
    "close": close_answers,
    "noise": make_noise,
    "silence": close_output,
    "babble": babble,
    "stop": lambda: stop("scripted stop"),
    "give-up": lambda: give_up(0),
    "give-up-and-exit": give_up_and_exit,
    "give-up-later": give_up_later,
    "complain": complain,
    "raise": lambda: 1 / 0,
    "child": leave_child,
    "not-supported": lambda: fail("not-supported", fatal=False),
    "out-of-memory": lambda: fail("out-of-memory", fatal=True),
    "sticky": lambda: fail("sticky", fatal=True),
    "limit": lambda: fail("limit", fatal=True),
}


class Scripted:
    def __init__(self, hello):
        self.hello = hello
        self.host_timed = ()

    def underway(self):
        return ""

    def act(self, order, when):
        share = share_of(order.workload, self.hello.rank, self.hello.size)
        for transfer in share.transfers:
            script = transfer.parameters
            if script.get("when", "measure") == when:
                DEEDS[script.get("do", "")]()

    def locate(self, requested):
        DEEDS[said.locating]()
        block = BlockLatencies("verified", ((6e-6,),), ((1e-7,) * len(requested.cpus),))
        return Located(requested.id, (0,), requested.cpus, (0.1,), (block,), 0.2)

    def prepare(self, order, host_timed=()):
        note("order", order.block)
        self.host_timed = host_timed
        self.act(order, "prepare")

    def measure(self, order, estimate):
        found = self.measured(order, estimate)
        note("done", order.block)
        return found

    def measured(self, order, estimate):
        share = share_of(order.workload, self.hello.rank, self.hello.size)
        first = share.transfers[0]
        self.act(order, "measure")
        estimate(6, 1.5e-6, 1e-6, 2e-6)
        self.act(order, "late")
        n = int(first.parameters.get("n", "3"))
        seconds = float(first.parameters.get("seconds", "1e-6"))
        blocked = share.transfers if first.parameters.get("blocks") == "yes" else ()
        return MeasuredVisit(
            mode="host" if first in self.host_timed else "device",
            stop=first.parameters.get("stop", "converged"),
            samples=Samples(
                span=(seconds,) * n,
                host=(seconds * 2,) * n,
                skew=(0.0,) * n,
                repetitions=(4,) * n,
                flags=(self.hello.rank + 1,) * n,
                transfers=(tuple(float(t.bytes) for t in share.transfers),) * n,
            ),
            buffers=tuple(BufferRecord(str(t.path.source), "verified") for t in share.transfers),
            gate="scripted",
            notes=(f"cpus {sorted(os.sched_getaffinity(0))}",),
            buffer_bytes=share.bytes,
            host_timed=blocked,
        )


def make(hello):
    if said.pids:
        (said.pids / f"worker-{os.getpid()}").touch()
    said.hello = hello
    note("start", hello.process.block)
    if said.startup_of in (None, hello.process.block):
        DEEDS[said.startup]()
    note("ready", hello.process.block)
    uuids = tuple(gpu.uuid for gpu in hello.machine.gpus)
    return Scripted(hello), Ready(os.getpid(), said.backend, gpus=uuids)


DEEDS[said.before]()
serve(said, make)
