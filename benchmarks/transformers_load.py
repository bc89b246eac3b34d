"""Measures how long a checkpoint takes into a model of transformers on a GPU: `from_pretrained`
against the lines of docs/how-to/load-a-model.md.

    python benchmarks/transformers_load.py [--processes 5] [--layers 22] [--folder FOLDER]
                                            [--within SECONDS] [--json FILE]

The model is a Llama with random weights in bfloat16, 2.2 GB with 22 layers, in shards of 1 GB that
the page cache holds. Each process loads it by both methods in turn, three times, in random order,
after a small model has been loaded by each. A time ends when the GPU has all weights. The ratio is
the median of the times over that of `from_pretrained`, in the same process; the figure is the
median over the processes, the interval the smallest and the largest one. Needs torch, transformers
5 and a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BASE, OURS = "from_pretrained", "load_files and from_pretrained"
ROUNDS = 3


def write_model(folder: Path, layers: int) -> None:
    import torch
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers,
        num_attention_heads=32, num_key_value_heads=4, vocab_size=32000, dtype="bfloat16",
    )  # fmt: skip
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder, max_shard_size="1GB")


def methods(folder: str) -> dict[str, Callable[[], Any]]:
    import transformers

    from waywiser.transfer.torch import load_files

    device = "cuda:0"

    def usual() -> Any:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, device_map=device)

    def ours() -> Any:
        config = transformers.AutoConfig.from_pretrained(folder)
        model_class = getattr(transformers, config.architectures[0])
        return model_class.from_pretrained(
            None, config=config, state_dict=load_files(folder, device), device_map=device
        )

    return {BASE: usual, OURS: ours}


def replicate(folder: str) -> dict[str, Any]:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    for method in methods(f"{folder}/small").values():
        method()
    found: dict[str, list[float]] = {BASE: [], OURS: []}
    calls = methods(f"{folder}/large")
    nbytes = 0
    for _ in range(ROUNDS):
        for name in random.sample(list(calls), len(calls)):
            torch.cuda.empty_cache()
            start = time.perf_counter()
            model = calls[name]()
            torch.cuda.synchronize()
            found[name].append(time.perf_counter() - start)
            nbytes = sum(each.nbytes for each in model.parameters())
            del model
    software = f"PyTorch {torch.__version__}, transformers {transformers.__version__}"
    machine = f"{torch.cuda.get_device_name()}, {software}"
    return {"machine": machine, "bytes": nbytes, "seconds": found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--folder", help="where the model is written; default: temporary files")
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--replicate", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replicate:
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        json.dump(replicate(options.replicate), answers)
        return 0
    begun = time.monotonic()
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write_model(Path(folder, "small"), 1)
        write_model(Path(folder, "large"), options.layers)
        begun_here = time.monotonic()
        for number in range(options.processes):
            gone = time.monotonic() - begun_here
            if number and time.monotonic() - begun + gone / number > options.within:
                break
            done = subprocess.run(
                [sys.executable, __file__, "--replicate", folder],
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            runs.append(json.loads(done.stdout))
            if options.json:
                options.json.write_text(json.dumps(runs) + "\n")
    show(runs)
    return 0


def show(runs: list[dict[str, Any]]) -> None:
    print(f"{runs[0]['machine']}, {runs[0]['bytes'] / 1e9:.2f} GB, n = {len(runs)} processes\n")
    print("| method | seconds | GB/s | ratio | interval |")
    print("|---|---|---|---|---|")
    each = [{k: statistics.median(v) for k, v in run["seconds"].items()} for run in runs]
    for name in (BASE, OURS):
        ratios = sorted(run[name] / run[BASE] for run in each)
        seconds = statistics.median(run[name] for run in each)
        interval = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
        print(
            f"| {name} | {seconds:.3f} | {runs[0]['bytes'] / seconds / 1e9:.1f} "
            f"| {statistics.median(ratios):.3f} | {interval} |"
        )


if __name__ == "__main__":
    sys.exit(main())
