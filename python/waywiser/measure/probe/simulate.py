"""A worker that answers from a simulated machine.

    python -m waywiser.measure.probe.simulate FILE --read-fd N --write-fd M [--parent PID]

FILE is a `waywiser.model.simulation.Simulation` as JSON. A workload that the model cannot answer is
not supported, with the reason.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from waywiser.measure.probe.protocol import (
    Hello,
    Locate,
    Located,
    MeasuredVisit,
    Observe,
    Observed,
    Ready,
)
from waywiser.measure.probe.serve import Estimate, OrderFailed, located, parser, serve
from waywiser.model.errors import ModelError
from waywiser.model.simulation import SimulatedMachine, Simulation
from waywiser.words import Order, Transfer, WaywiserError


def command(file: Path) -> tuple[str, ...]:
    """The worker command of `waywiser.measure.probe.options.ProbeOptions` for a simulation."""
    return (sys.executable, "-m", "waywiser.measure.probe.simulate", str(file.absolute()))


class SimulatedMeasurer:
    """Answers orders from a simulated machine."""

    def __init__(self, machine: SimulatedMachine, hello: Hello) -> None:
        self._machine = machine
        self._process = hello.process

    def prepare(self, order: Order, host_timed: Sequence[Transfer] = ()) -> None:
        """Raises `OrderFailed` for a workload that is not in the model."""
        try:
            self._machine.times(order.workload)
        except WaywiserError as error:
            raise OrderFailed("not-supported", error.what) from error

    def locate(self, request: Locate) -> Located:
        """What a worker of the recording found about the memory."""
        try:
            found = self._machine.locality(str(request.memory), self._process.block)
        except ModelError as error:
            raise OrderFailed("not-supported", error.what) from error
        return located(request, found)

    def observe(self, request: Observe) -> Observed:
        """Nothing: the machine of the recording has what was seen."""
        raise OrderFailed("not-supported", "a simulated machine has no multiprocessors")

    def measure(self, order: Order, estimate: Estimate) -> MeasuredVisit:
        """Times with noise; set-up takes what it took in the recording."""
        try:
            visit = self._machine.visit(order.workload, self._process)
        except WaywiserError as error:
            raise OrderFailed("not-supported", error.what) from error
        samples = visit.samples
        estimate(len(samples), statistics.median(samples.span), float("nan"), float("nan"))
        setup_seconds = max(visit.elapsed_seconds - visit.sampling_seconds, 0.0)
        return MeasuredVisit.of_visit(visit, samples, setup_seconds)

    def underway(self) -> str:
        """Returns an empty text: a simulation waits for nothing."""
        return ""


def read_simulation(file: Path) -> Simulation:
    """Raises `WaywiserError` for a file that holds none."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Simulation)
    except (OSError, msgspec.MsgspecError) as error:
        raise WaywiserError(
            f"it is no simulation ({error})", where=str(file), remedy="run waywiser simulate"
        ) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``python -m waywiser.measure.probe.simulate``."""
    words = parser("answers a supervisor from a simulated machine")
    words.add_argument("file", type=Path, metavar="FILE")
    given = words.parse_args(arguments)

    def make(hello: Hello) -> tuple[SimulatedMeasurer, Ready]:
        machine = SimulatedMachine(read_simulation(given.file))
        return SimulatedMeasurer(machine, hello), Ready(os.getpid(), "simulation")

    serve(given, make)


if __name__ == "__main__":
    main()
