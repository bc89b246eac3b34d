"""Saves and loads a state of a GPU by torch.distributed.checkpoint. Takes the name of a folder."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
from torch.distributed import checkpoint

from waywiser.transfer.dcp import SafetensorsReader, SafetensorsWriter, SnapshotStager

MIB = 2**20


def state_of(seed: int) -> dict[str, torch.Tensor]:
    """Large and small tensors on the GPU, one on the host, and one that is no plain row."""
    torch.manual_seed(seed)
    return {
        "large": torch.randn(64 * MIB, device="cuda"),
        "odd": torch.randn(3 * MIB + 1, device="cuda").to(torch.bfloat16),
        **{f"small.{number}": torch.randn(number, device="cuda") for number in range(300)},
        "transposed": torch.randn(512, 300, device="cuda").t(),
        "host": torch.randn(1000),
    }


def check(folder: Path, pinned: bool) -> None:
    stager = SnapshotStager(pinned=pinned)
    for seed in range(3):
        state = state_of(seed)
        expected = {name: each.clone() for name, each in state.items()}
        response = checkpoint.async_save(
            state, storage_writer=SafetensorsWriter(folder), async_stager=stager
        )
        stager.synchronize_staging()
        for each in state.values():
            each.fill_(7)  # queued at once
        response.upload_completion.result()
        found = {name: torch.zeros_like(each) for name, each in state.items()}
        found["large"] = torch.zeros(64 * MIB)  # to the host
        checkpoint.load(found, storage_reader=SafetensorsReader(folder))
        for name, each in expected.items():
            assert torch.equal(found[name].cpu(), each.cpu()), (pinned, seed, name)
    stager.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for is_pinned in (True, False):
        check(Path(sys.argv[1]), is_pinned)
