"""Host memory that a tool put on the node that is local to each GPU, by the topology."""

from __future__ import annotations

from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries
from waywiser.machine import Machine
from waywiser.words import Memory, Operation, Path, Place, Transfer, whole_number

ANYWHERE = Place("numa", 0)
"""The written place until a topology is known."""

NODE = "its host memory is local to each GPU: on the node that a topology shows, else named numa:0"
"""The note of nvbandwidth's series with host memory whose node nothing states."""

ALLOCATED = "host-alloc:{}"
"""What operations call host memory of a node that the runtime allocated."""


MOST_GPUS = 1024

NEAR = "near"
"""The variant of host memory that is on the node of the GPU which it names, in a file that does
not name the node."""


def placed_local(found: ForeignFile, machine: Machine) -> ForeignFile:
    """The same with host memory where a GPU is local: that whose variant names the GPU; of
    nvbandwidth, whose files name no node, that of each transfer and of each latency.

    A GPU without a local node leaves it as it is.
    """
    local = {gpu.index: Place("numa", gpu.numa) for gpu in machine.gpus if gpu.numa >= 0}
    placed = _placed if found.format == "nvbandwidth" else _placed_near
    return replace(
        found,
        measured=tuple(placed(each, local) for each in found.measured),
        halves=tuple(replace(each, series=placed(each.series, local)) for each in found.halves),
    )


def on_node(series: ForeignSeries, node: int, note: str) -> ForeignSeries:
    """A series of nvbandwidth with its host memory on a node that its command states."""
    local = dict.fromkeys(range(MOST_GPUS), Place("numa", node))
    placed = _placed(series, local)
    return replace(placed, notes=(note, *(each for each in placed.notes if each != NODE)))


def _placed_near(measured: ForeignSeries, local: dict[int, Place]) -> ForeignSeries:
    transfers = []
    for each in measured.workload.transfers:
        source, to = (_near(end, local) for end in each.path.ends)
        transfers.append(replace(each, path=Path(source, to, each.path.executor)))
    return replace(measured, workload=replace(measured.workload, transfers=tuple(transfers)))


def _near(memory: Memory, local: dict[int, Place]) -> Memory:
    gpu = whole_number(memory.variant.get(NEAR, "").removeprefix("gpu:"))
    if gpu is None or gpu not in local:
        return memory
    others = {key: value for key, value in memory.variant.items() if key != NEAR}
    return Memory(memory.kind, local[gpu], others)


def _placed(measured: ForeignSeries, local: dict[int, Place]) -> ForeignSeries:
    if NODE not in measured.notes:
        return measured
    workload = measured.workload
    if workload.operation is not None:
        operation = _operation(workload.operation, local)
        return replace(measured, workload=replace(workload, operation=operation))
    transfers = tuple(_transfer(transfer, local) for transfer in workload.transfers)
    return replace(measured, workload=replace(workload, transfers=transfers))


def _operation(operation: Operation, local: dict[int, Place]) -> Operation:
    node = local.get(operation.place.index)
    if node is None or operation.parameters.get("memory") != ALLOCATED.format(ANYWHERE.index):
        return operation
    memory = ALLOCATED.format(node.index)
    return replace(operation, parameters={**operation.parameters, "memory": memory})


def _transfer(transfer: Transfer, local: dict[int, Place]) -> Transfer:
    source, to = transfer.path.source, transfer.path.destination
    path = Path(_memory(source, to, local), _memory(to, source, local), transfer.path.executor)
    return replace(transfer, path=path)


def _memory(memory: Memory, other: Memory, local: dict[int, Place]) -> Memory:
    if memory.place != ANYWHERE or other.place.kind != "gpu":
        return memory
    return replace(memory, place=local.get(other.place.index, ANYWHERE))
