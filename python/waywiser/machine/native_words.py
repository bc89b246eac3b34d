"""Machines and words as the native library takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.words import Memory, Operation, Transfer


def native_memory(memory: Memory) -> Any:
    """The memory as the native library's type. Raises what `waywiser.machine.native.load`
    raises."""
    return native.load().Memory(memory.kind, str(memory.place), memory.variant)


def native_transfer(transfer: Transfer) -> Any:
    """The transfer as the native library's type."""
    path = transfer.path
    return native.load().Transfer(
        native_memory(path.source),
        native_memory(path.destination),
        path.executor,
        transfer.bytes,
        transfer.parameters,
        transfer.layout.kind if transfer.layout else "contiguous",
        transfer.layout.settings if transfer.layout else {},
    )


def native_operation(operation: Operation) -> Any:
    """The operation as the native library's type."""
    return native.load().Operation(operation.name, str(operation.place), operation.parameters)


if TYPE_CHECKING:
    import waywiser._native as library


def native_machine(machine: Machine) -> library.Machine:
    """The places of ``machine`` and how they see each other, for the native library.

    Raises `waywiser.machine.native.NativeError` if the library does not load.
    """
    module = native.load()
    made: library.Machine = module.Machine(
        numa=[module.NumaNode(index=node.index, cpus=list(node.cpus)) for node in machine.numa],
        gpus=[
            module.GpuPlace(
                index=gpu.index,
                uuid=gpu.uuid,
                numa=gpu.numa,
                peers=list(gpu.peers),
                pageable_access=gpu.pageable_access,
            )
            for gpu in machine.gpus
        ],
        files=[
            module.FilePlace(
                file.name, file.path, file.scratch, file.bytes, file.filesystem, file.direct
            )
            for file in machine.files
        ],
        ranks=[
            module.RankPlace(
                rank.index,
                list(rank.cpus),
                rank.numa,
                rank.gpu,
                unsent=list(rank.unsent),
                messages=rank.messages,
                unexchanged=list(rank.unexchanged),
            )
            for rank in machine.ranks
        ],
    )
    return made
