"""A machine in the native library's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waywiser.machine import native
from waywiser.machine.machine import Machine

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
    )
    return made
