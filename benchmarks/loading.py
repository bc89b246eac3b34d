"""Compares loaders on a model of your own, or of many processes that load their GPUs at once.

    python benchmarks/loading.py MODEL [--device cuda|cpu] [--rounds 7] [--within SECONDS]
                                 [--json FILE]
    python benchmarks/loading.py --generate GIB [--folder FOLDER] ...

MODEL is a safetensors file, an index or a folder, as `load_files` takes it; `--generate` makes a
model of random numbers, and removes it. `own_model.py` says what is measured. Without PyTorch the
loaders are those of numpy.

    python benchmarks/loading.py [--gpus N] [--gib 2] [--rounds 7] [--only PATTERN]
                                 [--within SECONDS] [--folder FOLDER] [--json FILE]

Without a model it measures processes that each load their own GPU: bytes of all, from start to
last end. There is one process for each GPU, as a launcher starts them: each sees one GPU, and
LOCAL_WORLD_SIZE is set. A group is a source: pageable memory, a file in memory (/dev/shm), and a
file on a disk that the page cache holds (in `--folder`, by default the one for temporary files).
Each process has memory and a file of its own. The methods of a group take turns in random order. A
round starts in all processes at one moment of the monotonic clock. A library that is not installed
is listed with its name. Needs torch.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waywiser.stats.order import median, median_interval

GIB = 1 << 30
OURS = "waywiser"
MEMORY, TMPFS, CACHED = "pageable memory", "file in /dev/shm", "file on disk, cached"
COPIES = (f"{OURS} copy", "torch copy_", "cudaMemcpy")
PACKAGES = {
    f"{OURS} load_files": None,
    "fastsafetensors": "fastsafetensors",
    "InstantTensor": "instanttensor",
    "safetensors load_file": "safetensors",
}
"""Loaders of files by name, and the package that each needs."""
GROUPS = {MEMORY: COPIES, TMPFS: tuple(PACKAGES), CACHED: tuple(PACKAGES)}
AHEAD = 0.02
"""Seconds from the message to the processes until they start."""
SLOW = 3.0
"""A method whose first round takes longer is measured once."""


# --- a process -------------------------------------------------------------------------------


class NotAvailable(Exception):
    """A method cannot be measured here."""


class TorchMethods:
    """The methods of a process, whose GPU is the first that it sees."""

    def __init__(self) -> None:
        self.host: Any = None
        self.device: Any = None

    def prepare(self, group: str, nbytes: int, file: str | None) -> None:
        """Makes the source of a group."""
        import torch

        from transfer import write_safetensors

        torch.cuda.init()
        self.host = self.device = None
        torch.cuda.empty_cache()
        if group == MEMORY:
            self.host = torch.ones(nbytes, dtype=torch.uint8)
            self.device = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        elif file is not None:
            write_safetensors(Path(file), nbytes)

    def find(self, name: str, file: str | None) -> Callable[[], object]:
        """The method; raises NotAvailable with the reason."""
        from transfer import loaders

        if name in COPIES:
            return self._copy(name)
        package = PACKAGES[name]
        if package is not None and importlib.util.find_spec(package) is None:
            raise NotAvailable(f"not installed: python -m pip install {package}")
        found = dict(loaders(Path(file or "")))[name]
        if isinstance(found, str):
            raise NotAvailable(found)
        return found

    def _copy(self, name: str) -> Callable[[], object]:
        import ctypes

        import waywiser.transfer as ww
        from transfer import cuda_runtime, waited

        device, host = self.device, self.host
        if name == "torch copy_":
            return waited(lambda: device.copy_(host))
        if name == f"{OURS} copy":
            return waited(lambda: ww.copy(device, host))
        runtime = cuda_runtime()
        if runtime is None:
            raise NotAvailable("libcudart was not found")
        ends = ctypes.c_void_p(device.data_ptr()), ctypes.c_void_p(host.data_ptr())
        return waited(lambda: runtime.cudaMemcpy(*ends, ctypes.c_size_t(host.nbytes), 4))

    def clean(self) -> None:
        import torch

        torch.cuda.empty_cache()


def work(methods: Any) -> None:
    """Answers one line with one line, until the input ends. What libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if "prepare" in request:
                methods.prepare(request["prepare"], request["bytes"], request["file"])
            elif "find" in request:
                found[request["find"]] = methods.find(request["find"], request["file"])
            else:
                answer = timed(found[request["run"]], request["at"])
                methods.clean()
        except NotAvailable as why:
            answer = {"missing": str(why)}
        except Exception as error:
            answer = {"missing": f"failed: {type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


def timed(method: Callable[[], object], at: float) -> dict[str, float]:
    """When a method started, at ``at`` or later, and ended."""
    while (left := at - time.monotonic()) > 0:
        time.sleep(left / 2 if left > 1e-4 else 0)
    start = time.monotonic()
    kept = method()
    end = time.monotonic()
    del kept
    return {"start": start, "end": end}


# --- all processes ---------------------------------------------------------------------------


class Processes:
    """The processes, each with the number of its GPU and its file."""

    def __init__(self, command: Sequence[str], gpus: int) -> None:
        self.files: list[Path] = []
        self.running = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment_of(gpu, gpus),
            )
            for gpu in range(gpus)
        ]

    def ask(self, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """One question to each, and their answers. Raises RuntimeError if a process ended."""
        for process, question in zip(self.running, questions, strict=True):
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                break
        answers = []
        for gpu, process in enumerate(self.running):
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the process of GPU {gpu} ended with {process.wait()}")
            answers.append(json.loads(line))
        return answers

    def close(self) -> None:
        for process in self.running:
            try:
                process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


@contextmanager
def started(command: Sequence[str], gpus: int) -> Iterator[Processes]:
    processes = Processes(command, gpus)
    try:
        yield processes
    finally:
        for file in processes.files:  # first: whoever stops this program waits for little more
            file.unlink(missing_ok=True)
        processes.close()


def environment_of(gpu: int, gpus: int) -> dict[str, str]:
    """That of one rank of several on this host. OpenMP's threads, which torch copies with, would
    spin on all CPUs for some milliseconds after each copy."""
    visible = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    return {
        **os.environ,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": visible[gpu] if visible else str(gpu),
        "LOCAL_RANK": str(gpu),
        "LOCAL_WORLD_SIZE": str(gpus),
        "OMP_WAIT_POLICY": "passive",
        "WAYWISER_POLICY": "off",
    }


def measure_group(
    processes: Processes, group: str, nbytes: int, folder: str, rounds: int, ends_at: float
) -> dict[str, Any]:
    """The bandwidths of each method by round, or why it has none."""
    count = len(processes.running)
    files: list[str | None] = [None] * count
    if group != MEMORY:
        where = Path("/dev/shm" if group == TMPFS else folder)
        own = [where / f"waywiser-loading-{os.getpid()}-{n}.safetensors" for n in range(count)]
        processes.files += own
        files = [str(file) for file in own]

    def ask_all(**question: Any) -> tuple[list[dict[str, Any]], str]:
        """Asks the processes, each with its file. Also returns why one of them cannot, or ""."""
        answers = processes.ask([{**question, "file": file} for file in files])
        return answers, next((each["missing"] for each in answers if "missing" in each), "")

    names = GROUPS[group]
    found: dict[str, dict[str, Any]] = {name: {"rates": []} for name in names}
    _, why = ask_all(prepare=group, bytes=nbytes)
    for name in names:
        if why or (missing := ask_all(find=name)[1]):
            found[name] = {"missing": why or missing}
    begun = time.monotonic()
    for number in range(rounds + 1):
        now = time.monotonic()
        if number > 0 and now + (now - begun) / number > ends_at:
            break
        for name in random.sample(names, len(names)):
            each = found[name]
            if "missing" in each or each.get("slow"):
                continue
            answers, missing = ask_all(run=name, at=time.monotonic() + AHEAD)
            if missing:
                found[name] = {"missing": missing}
                continue
            spent = max(a["end"] for a in answers) - min(a["start"] for a in answers)
            each["slow"] = spent > SLOW
            if number > 0 or each["slow"]:  # the first round allocates and opens
                each["rates"].append(count * nbytes / spent)
    for file in filter(None, files):
        Path(file).unlink(missing_ok=True)
    return found


def show(group: str, found: dict[str, Any], gpus: int, nbytes: int) -> None:
    ours = next(
        (median(each["rates"]) for name, each in found.items()
         if name.startswith(OURS) and each.get("rates")),
        None,
    )  # fmt: skip
    print(f"| {group}, {gpus} x {nbytes / GIB:.3g} GiB at once | GB/s of all | 95 % interval | "
          f"rounds | {OURS} is faster by |\n|---|---|---|---|---|")  # fmt: skip
    for name, each in found.items():
        if not each.get("rates"):
            print(f"| {name} | {each.get('missing', 'no time was left')} | | | |")
            continue
        rate, span = median(each["rates"]), median_interval(each["rates"])
        interval = f"{span.low / 1e9:.1f} to {span.high / 1e9:.1f}" if span else ""
        times = f"{ours / rate:.2f} times" if ours and not name.startswith(OURS) else ""
        print(f"| {name} | {rate / 1e9:.1f} | {interval} | {len(each['rates'])} | {times} |")
    print()


def measure(wanted: argparse.Namespace, command: Sequence[str], nbytes: int) -> int:
    result: dict[str, Any] = {"gpus": wanted.gpus, "bytes": nbytes, "groups": {}}
    groups = [group for group in GROUPS if re.search(wanted.only, group)]
    began = time.monotonic()
    with started(command, wanted.gpus) as processes:
        for number, group in enumerate(groups):
            left = wanted.within - (time.monotonic() - began)
            ends_at = time.monotonic() + left / (len(groups) - number)
            found = measure_group(processes, group, nbytes, wanted.folder, wanted.rounds, ends_at)
            show(group, found, wanted.gpus, nbytes)
            result["groups"][group] = found
            if wanted.json:
                wanted.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def gpu_count() -> int:
    import torch

    return int(torch.cuda.device_count())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", help="compare the loaders on this model")
    parser.add_argument("--generate", type=float, metavar="GIB", help="on one of random numbers")
    parser.add_argument("--device", choices=["cuda", "cpu"], help="to which a model is loaded")
    parser.add_argument("--gpus", type=int, default=0, help="processes; by default one per GPU")
    parser.add_argument("--gib", type=int, default=2, help="bytes that each process loads")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="groups whose name matches the expression")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="of files on a disk")
    parser.add_argument(
        "--within", type=float, default=1e9, metavar="SECONDS",
        help="start no further round that would end later",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="also write all measurements there")
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.model is not None or wanted.generate is not None:
        from own_model import run

        return run(wanted)
    if importlib.util.find_spec("torch") is None:
        print("loading.py: torch is not installed: python -m pip install torch", file=sys.stderr)
        return 2
    if wanted.process:
        work(TorchMethods())
        return 0
    seen = gpu_count()
    wanted.gpus = wanted.gpus or seen
    if not 1 <= wanted.gpus <= seen:
        print(f"loading.py: torch finds {seen} GPUs, not {wanted.gpus}", file=sys.stderr)
        return 2
    return measure(wanted, [sys.executable, __file__, "--process"], wanted.gib * GIB)


if __name__ == "__main__":
    sys.exit(main())
