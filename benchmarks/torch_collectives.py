"""Times of PyTorch's collectives, for benchmarks/nccl.py: a process for each GPU, a loop of
asynchronous calls between two events, the slowest GPU's median.

    python benchmarks/torch_collectives.py GPUS SAMPLES BYTES...
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

CALLS = 10


def send(rank: int, whole: Any, other: Any) -> Any:
    if rank > 1:
        return None
    operation = (dist.isend, whole, 1) if rank == 0 else (dist.irecv, other, 0)
    return dist.batch_isend_irecv([dist.P2POp(*operation)])[0]


def sample(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    dist.barrier()
    begin.record()
    works = [call() for _ in range(CALLS)]
    for work in works:
        if work is not None:
            work.wait()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / CALLS


def measure(rank: int, gpus: int, samples: int, sizes: list[int]) -> None:
    torch.cuda.set_device(rank)
    meeting = "tcp://127.0.0.1:29517"
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=gpus)
    for size in sizes:
        whole = torch.ones(size // 4, dtype=torch.int32, device="cuda")
        other = torch.empty_like(whole)
        part = whole[: size // 4 // gpus]
        calls: dict[str, Callable[[], Any]] = {
            "allreduce": partial(dist.all_reduce, whole, async_op=True),
            "allgather": partial(dist.all_gather_into_tensor, other, part, async_op=True),
            "alltoall": partial(dist.all_to_all_single, other, whole, async_op=True),
            "send": partial(send, rank, whole, other),
        }
        for what, call in calls.items():
            for _ in range(3):
                sample(call)
            times = torch.tensor([sample(call) for _ in range(samples)], device="cuda")
            dist.all_reduce(times, op=dist.ReduceOp.MAX)
            if rank == 0:
                print(what, size, statistics.median(times.tolist()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus, samples, *sizes = map(int, sys.argv[1:])
    mp.spawn(measure, (gpus, samples, sizes), gpus)
