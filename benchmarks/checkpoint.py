"""Measures what an asynchronous checkpoint of torch.distributed costs a training.

    python benchmarks/checkpoint.py [--ranks N] [--device cuda|cpu] [--mib 1024] [--rounds 3]
                                    [--within 60] [--folder FOLDER] [--json FILE]

Each rank is a process with a GPU of its own. They train a stack of linear layers, sharded by
`fully_shard`, with Adam; `--mib` is the state of a rank in MiB. Each method saves the state with
`async_save` while the training goes on:

- `FileSystemWriter`: as PyTorch's documentation has it; the writer stages the state itself.
- `DefaultStager`: PyTorch's stager with pinned memory in a thread (--device cpu: without), and its
  writer with eight threads. The step waits for `staging_completion` before Adam. Each save has a
  stager of its own: that of PyTorch 2.11 stages sharded tensors once.
- `SnapshotStager`: that of waywiser, and the same writer of PyTorch.
- `waywiser`: its stager and its writer. The GPU waits before Adam (`synchronize_staging`).

The first save of each method is checked: it is loaded again, and each tensor must be what it was
when `async_save` was called. It also shows the host memory, which is allocated then. The saves of
the following rounds are in random order, and are timed:

- pause: the step in which the save starts, over the median of the steps before;
- lost: all steps until the save ends, over as many such medians;
- to disk: from the call of `async_save` until all ranks have synced their files.

Times are those of the slowest rank. Host memory is that of all ranks: by how much their memory
grew (RSS), and by how much the available memory of the host fell, which has pinned memory too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

LAYERS = 12
STEPS_ALONE = 6
BYTES_OF_A_PARAMETER = 12
"""The parameter and the two moments of Adam, in float32."""
TIMES = ("pause", "lost", "to disk")
MEMORY = ("RSS", "host")


# --- a rank ----------------------------------------------------------------------------------


class Method(NamedTuple):
    """How a state is saved. ``wait`` comes before the step of Adam, while a save runs."""

    save: Callable[[dict[str, Any], Path], Any]
    wait: Callable[[Any], None]
    reader: Callable[[Path], Any]


class Training:
    """A sharded model, and its steps."""

    def __init__(self, device: str, nbytes: int, ranks: int) -> None:
        import torch
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device, (ranks,))
        width = int((nbytes * ranks / BYTES_OF_A_PARAMETER / LAYERS) ** 0.5) // 8 * 8
        torch.manual_seed(7)
        layers = [torch.nn.Linear(width, width, device=device) for _ in range(LAYERS)]
        for layer in layers:
            fully_shard(layer, mesh=mesh)
        self.model = fully_shard(torch.nn.Sequential(*layers), mesh=mesh)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=device != "cpu")
        self.batch = torch.randn(8192 if device != "cpu" else 8, width, device=device)
        self.device = device
        self.step(lambda: None)

    def step(self, before_adam: Callable[[], None]) -> float:
        """Seconds of a step, which ends when the GPU has ended it."""
        begin = time.perf_counter()
        self.adam.zero_grad()
        self.model(self.batch).square().mean().backward()
        before_adam()
        self.adam.step()
        self.synchronize()
        return time.perf_counter() - begin

    def synchronize(self) -> None:
        import torch

        if self.device != "cpu":
            torch.cuda.synchronize()

    def state(self) -> dict[str, Any]:
        from torch.distributed.checkpoint import state_dict as states

        return {
            "model": states.get_model_state_dict(self.model),
            "optimizer": states.get_optimizer_state_dict(self.model, self.adam),
        }


class Watch:
    """Samples the memory of this process and of the host until it ends."""

    def __init__(self) -> None:
        self._begin = self._now()
        self._most = dict.fromkeys(MEMORY, 0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    @staticmethod
    def _now() -> dict[str, int]:
        def of(file: str, field: str) -> int:
            lines = Path(file).read_text().splitlines()
            line = next(each for each in lines if each.startswith(field))
            return int(line.split()[1]) * 1024

        return {
            "RSS": of("/proc/self/status", "VmRSS:"),
            "host": -of("/proc/meminfo", "MemAvailable:"),
        }

    def _sample(self) -> None:
        while not self._ended.wait(0.02):
            now = self._now()
            for name in MEMORY:
                self._most[name] = max(self._most[name], now[name] - self._begin[name])

    def end(self) -> dict[str, int]:
        self._ended.set()
        self._thread.join()
        return self._most


def methods(device: str, group: Any) -> dict[str, Method]:
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    from waywiser.transfer.dcp import SafetensorsReader, SafetensorsWriter, SnapshotStager

    def save(state: dict[str, Any], to: Any, stager: Any = None) -> Any:
        return checkpoint.async_save(
            state, storage_writer=to, async_stager=stager, process_group=group
        )

    on_gpu = device != "cpu"
    options = StagingOptions(on_gpu, False, on_gpu, on_gpu)
    snapshots, both = SnapshotStager(), SnapshotStager()
    writer = checkpoint.FileSystemWriter

    def staged(response: Any) -> None:
        if hasattr(response, "staging_completion"):
            response.staging_completion.result()

    return {
        "FileSystemWriter": Method(
            lambda state, path: save(state, writer(path)),
            lambda _: None,
            checkpoint.FileSystemReader,
        ),
        "DefaultStager": Method(
            lambda state, path: save(state, writer(path, thread_count=8), DefaultStager(options)),
            staged,
            checkpoint.FileSystemReader,
        ),
        "SnapshotStager": Method(
            lambda state, path: save(state, writer(path, thread_count=8), snapshots),
            lambda _: snapshots.synchronize_staging(),
            checkpoint.FileSystemReader,
        ),
        "waywiser": Method(
            lambda state, path: save(state, SafetensorsWriter(path), both),
            lambda _: both.synchronize_staging(),
            SafetensorsReader,
        ),
    }


class Rank:
    """Saves with one method after the other, in step with the other ranks."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        import torch
        from torch import distributed

        self.on_gpu = arguments.device != "cpu"
        if self.on_gpu:
            torch.cuda.set_device(0)
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if self.on_gpu else "gloo",
            init_method=f"file://{arguments.folder / 'ranks'}",
            rank=arguments.rank,
            world_size=arguments.ranks,
        )
        self.folder = arguments.folder
        self.rank = arguments.rank
        self.distributed = distributed
        # Collectives of the thread that saves must not meet those of the training.
        self.saving = distributed.new_group(backend="gloo")
        self.control = distributed.new_group(backend="gloo")
        self.training = Training(arguments.device, arguments.mib * 2**20, arguments.ranks)
        self.methods = methods(arguments.device, self.saving)

    def all(self, value: Any) -> list[Any]:
        """The values of all ranks."""
        found = [None] * self.distributed.get_world_size()
        self.distributed.all_gather_object(found, value, group=self.control)
        return found

    def save(
        self, name: str, before: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> tuple[dict[str, float], Path]:
        """Seconds of one save, and where it is. ``before`` sees the state that is saved."""
        method, training = self.methods[name], self.training
        path = self.folder / f"{name}-checkpoint"
        alone = statistics.median(training.step(lambda: None) for _ in range(STEPS_ALONE))
        state = training.state()
        before(state)
        training.synchronize()
        self.all(None)
        begin = time.perf_counter()
        response = method.save(state, path)
        called = time.perf_counter() - begin
        upload = getattr(response, "upload_completion", response)
        ended: list[float] = []
        upload.add_done_callback(lambda _: ended.append(time.perf_counter() - begin))
        steps = [called + training.step(lambda: method.wait(response))]
        while not all(self.all(bool(ended))):
            steps.append(training.step(lambda: method.wait(response)))
        upload.result()
        own = (steps[0] - alone, sum(steps) - alone * len(steps), ended[0])
        return dict(zip(TIMES, map(max, zip(*self.all(own), strict=True)), strict=True)), path

    def check(self, name: str) -> dict[str, Any]:
        """Saves and loads; raises for a tensor that is not as it was. Returns the memory."""
        from torch.distributed import checkpoint

        expected: Any = None
        watch: Any = None

        def keep(state: dict[str, Any]) -> None:
            nonlocal expected, watch
            expected, watch = copied(state, lambda each: each.clone()), Watch()

        _, path = self.save(name, keep)
        most = self.all(watch.end())
        found = copied(expected, lambda each: each.new_zeros(each.shape))
        reader = self.methods[name].reader(path)
        checkpoint.load(found, storage_reader=reader, process_group=self.saving)
        compared = compare(expected, found, name)
        nbytes = sum(each.stat().st_size for each in path.iterdir())
        self.remove(path)
        return {
            "equal tensors": sum(self.all(compared)),
            "bytes on disk": nbytes,
            "memory": {
                "RSS": sum(each["RSS"] for each in most),
                "host": max(each["host"] for each in most),
            },
        }

    def remove(self, path: Path) -> None:
        self.all(None)
        if self.rank == 0:
            shutil.rmtree(path)
        self.all(None)


def copied(state: Any, of_tensor: Callable[[Any], Any]) -> Any:
    """A state with other local tensors."""
    import torch
    from torch.distributed.tensor import DTensor

    if isinstance(state, dict):
        return {name: copied(each, of_tensor) for name, each in state.items()}
    if isinstance(state, DTensor):
        local = of_tensor(state.to_local())
        return DTensor.from_local(
            local, state.device_mesh, state.placements, shape=state.shape, stride=state.stride()
        )
    if isinstance(state, torch.Tensor):
        return of_tensor(state)
    if isinstance(state, list | tuple):
        return type(state)(copied(each, of_tensor) for each in state)
    return state


def compare(expected: Any, found: Any, where: str) -> int:
    """The number of tensors, all of which are equal."""
    import torch

    if isinstance(expected, dict):
        assert expected.keys() == found.keys(), where
        return sum(compare(expected[name], found[name], f"{where}.{name}") for name in expected)
    if not isinstance(expected, torch.Tensor):
        return 0
    own, other = (getattr(each, "to_local", lambda each=each: each)() for each in (expected, found))
    assert torch.equal(own, other), f"{where} differs"
    return 1


def work(arguments: argparse.Namespace) -> None:
    """One rank; the first prints what was found, after each round."""
    import torch

    warnings.simplefilter("ignore")
    begin = time.monotonic()
    rank = Rank(arguments)
    nbytes = sum(each.nbytes for each in local_tensors(rank.training.state()))
    result: dict[str, Any] = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if rank.on_gpu else "cpu",
        "ranks": arguments.ranks,
        "bytes of a rank": nbytes,
        "methods": {name: {**rank.check(name), "saves": []} for name in rank.methods},
    }
    order = random.Random(arguments.seed)
    for _ in range(arguments.rounds):
        if rank.all(time.monotonic() - begin)[0] > arguments.within:
            break
        for name in order.sample(list(rank.methods), len(rank.methods)):
            times, path = rank.save(name)
            rank.remove(path)
            result["methods"][name]["saves"].append(times)
        if rank.rank == 0:
            print(json.dumps(result), flush=True)
    if rank.rank == 0:
        print(json.dumps(result), flush=True)
    rank.all(None)
    rank.distributed.destroy_process_group()


def local_tensors(state: Any) -> list[Any]:
    found: list[Any] = []
    copied(state, lambda each: found.append(each) or each)
    return found


# --- all ranks -------------------------------------------------------------------------------


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Starts the ranks, and waits for them."""
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="checkpoint-") as folder:
        ranks = []
        for rank in range(arguments.ranks):
            command = [
                sys.executable, __file__, "--rank", str(rank), "--ranks", str(arguments.ranks),
                "--device", arguments.device, "--mib", str(arguments.mib), "--folder", folder,
                "--rounds", str(arguments.rounds), "--within", str(arguments.within),
                "--seed", str(arguments.seed),
            ]  # fmt: skip
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
            environment = {
                "GLOO_SOCKET_IFNAME": "lo",
                "CUDA_VISIBLE_DEVICES": visible[rank] if visible[0] else str(rank),
                "LOCAL_RANK": "0",  # of the GPUs that it sees
                "LOCAL_WORLD_SIZE": str(arguments.ranks),
                **({"OMP_NUM_THREADS": "1"} if arguments.device == "cpu" else {}),
            }
            ranks.append(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, text=True, env=os.environ | environment
                )
            )
        try:
            while any(each.poll() is None for each in ranks):
                if any(each.poll() for each in ranks):
                    sys.exit("checkpoint.py: a rank failed")
                time.sleep(0.05)
        finally:
            for each in ranks:
                each.kill()
        lines = ranks[0].communicate()[0].splitlines()
        if any(each.returncode for each in ranks):
            sys.exit("checkpoint.py: a rank failed")
        found: dict[str, Any] = json.loads(lines[-1])
        return found


def table(found: dict[str, Any]) -> str:
    lines = [
        f"{found['ranks']} ranks on {found['device']}, {found['bytes of a rank'] / 2**30:.2f} GiB "
        f"each, torch {found['torch']}",
        "",
        "| method | pause of a step, ms | lost, ms | to disk, s | memory: RSS, host, GiB | saves |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in found["methods"].items():
        cells = []
        for time_of, scale in zip(TIMES, (1e3, 1e3, 1), strict=True):
            values = [save[time_of] * scale for save in each["saves"]]
            cells.append(
                f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
                if values
                else "no time was left"
            )
        memory = ", ".join(f"{each['memory'][name] / 2**30:.2f}" for name in MEMORY)
        lines.append(f"| {name} | {' | '.join(cells)} | {memory} | {len(each['saves'])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, help="by default one for each GPU, at most two")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--mib", type=int, default=1024, help="the state of a rank, in MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--within", type=float, default=60, help="seconds after which no round starts"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, help="also write all measurements there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        work(arguments)
        return
    if arguments.ranks is None:
        import torch

        gpus = torch.cuda.device_count() if arguments.device == "cuda" else 2
        arguments.ranks = min(gpus, 2)
        if gpus == 0:
            sys.exit("checkpoint.py: torch finds no GPU; --device cpu measures without one")
    found = measured(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
