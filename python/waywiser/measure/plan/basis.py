"""What a plan is made from."""

from __future__ import annotations

from copy import copy

import msgspec

from waywiser.curves import parse_sizes
from waywiser.machine import Catalogue, Gpu, Machine, PlacedRank
from waywiser.measure.plan.preset import Request, find_preset


class Basis:
    """A machine, what is requested of it, and what the registry can measure there, or could if it
    had a GPU. Raises `WaywiserError` for an unknown preset and for sizes that are none."""

    def __init__(self, machine: Machine, request: Request) -> None:
        self.machine = machine
        self.request = request
        self.preset = find_preset(request.preset)
        self.sizes = parse_sizes(request.sizes or self.preset.sizes)
        self.catalogue = Catalogue(with_hypothetical_gpu(machine))

    def among(self, ranks: tuple[PlacedRank, ...]) -> Basis:
        """The same with these ranks alone."""
        basis = copy(self)
        basis.machine = msgspec.structs.replace(self.machine, ranks=ranks)
        return basis


def with_hypothetical_gpu(machine: Machine) -> Machine:
    """The machine itself if it has a GPU, otherwise one with a GPU that it has not."""
    if machine.gpus:
        return machine
    return msgspec.structs.replace(machine, gpus=(Gpu(0, uuid="", name="hypothetical", pci=""),))
