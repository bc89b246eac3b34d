"""One of several ranks that save a sharded state and load it with other shards, on the host.

    python dcp_ranks.py FOLDER RANK RANKS

Prints the files of the folder of the checkpoint.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed import checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from waywiser.transfer.dcp import SafetensorsReader, SafetensorsWriter, SnapshotStager

SHAPES = {"matrix": (7, 300, 5), "large": (1031, 700), "row": (13,)}


def sharded(placement: Any, mesh: Any, scale: float) -> dict[str, Any]:
    """Tensors that each rank has a part of, and one that all have."""
    made = {}
    for name, shape in SHAPES.items():
        values = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape) * scale
        where = Replicate() if len(shape) == 1 else placement
        made[name] = distribute_tensor(values, mesh, [where])
    return made


def main(folder: Path, rank: int, ranks: int) -> None:
    warnings.simplefilter("ignore")
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'ranks'}", rank=rank, world_size=ranks
    )
    mesh = init_device_mesh("cpu", (ranks,))
    path = folder / "checkpoint"
    stager = SnapshotStager()
    for scale in (1.0, 3.0):
        saved = sharded(Shard(0), mesh, scale)
        response = checkpoint.async_save(
            saved, storage_writer=SafetensorsWriter(path), async_stager=stager
        )
        stager.synchronize_staging()
        for each in saved.values():
            each.to_local().zero_()
        response.upload_completion.result()
        for placement in (Shard(0), Shard(1), Replicate()):
            expected = sharded(placement, mesh, scale)
            found = sharded(placement, mesh, 0.0)
            checkpoint.load(found, storage_reader=SafetensorsReader(path))
            for name, each in expected.items():
                assert torch.equal(found[name].to_local(), each.to_local()), (name, placement)
    stager.close()
    if rank == 0:
        print(*sorted(each.name for each in path.iterdir()))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
