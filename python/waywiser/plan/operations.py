"""Which operations a survey performs: every one at every place of its kind, with its settings."""

from __future__ import annotations

from waywiser.plan.catalogue import Catalogue, OperationKind
from waywiser.plan.curves import Curve
from waywiser.plan.preset import Preset
from waywiser.plan.vary import MOST_COMBINATIONS, combinations
from waywiser.records import Refusal
from waywiser.topology.machine import Machine
from waywiser.words import Operation, Place

EMPTY_INTERVAL = "empty-interval"
"""The operation of two events on one GPU with nothing between: the floor of every device time."""


def operation_curves(
    machine: Machine, catalogue: Catalogue, preset: Preset
) -> tuple[list[Curve], list[Refusal]]:
    """Every operation at every place of its kind, with its settings; and the refused.

    Where the machine has no place of the kind, the operation is refused once, with the reason.
    """
    curves: list[Curve] = []
    refused: list[Refusal] = []
    places = {
        "numa": [Place("numa", node.index) for node in machine.numa],
        "gpu": [Place("gpu", gpu.index) for gpu in machine.gpus],
    }
    for kind in catalogue.operations:
        here = [place for known in kind.places for place in places.get(known, [])]
        if not here:
            why = machine.gpu_reason or f"this machine has no place {kind.places[0]}"
            refused.append(Refusal(f"{kind.name}@{kind.places[0]}:0", why))
        for place in here:
            for operation in _operations(kind, place, catalogue, preset):
                if reason := catalogue.operation_refusal(operation):
                    refused.append(Refusal(str(operation), reason))
                else:
                    told = kind.name == EMPTY_INTERVAL
                    remote = not told and not preset.operations
                    curves.append(Curve(operation=operation, principal=told, remote=remote))
    return curves, refused


def _operations(
    kind: OperationKind, place: Place, catalogue: Catalogue, preset: Preset
) -> list[Operation]:
    known = catalogue.operation_parameters(Operation(kind.name, place))
    settings = combinations(known, preset.variations)
    return [Operation(kind.name, place, chosen) for chosen in settings[:MOST_COMBINATIONS]]
