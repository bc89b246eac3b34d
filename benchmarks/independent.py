"""Whether Waywiser's numbers are right: the same copies timed by PyTorch's events, in one call.

    python benchmarks/independent.py [--json FILE] [--bytes 1GiB]

Takes turns: PyTorch, a survey of just these paths, PyTorch again, so that a machine that drifts
shows as a difference between the two PyTorch columns and not as one between the tools. Needs a GPU
and PyTorch; with two GPUs the peer copies are compared as well. The exit status is 1 when a ratio
of the rates lies outside 1 % (and the two PyTorch runs agree within it), else 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from surveyed import survey

from waywiser.words import format_bytes, parse_bytes

try:
    from cupy.cuda import runtime
except ImportError:
    runtime = None

WARM_UPS, SAMPLES = 3, 15

COPIES = 5
"""Between two events. Without a gate the first waits for the host: the more, the less it counts."""
TOLERANCE = 0.01

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"
PEER = "device@gpu:0 -> device@gpu:1 by copy-engine"


def timed(copy: Callable[[], object], device: int) -> float:
    """Seconds of one copy: the median between two events on the device's stream."""
    times = []
    with torch.cuda.device(device):
        for _ in range(WARM_UPS + SAMPLES):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(COPIES):
                copy()
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) * 1e-3 / COPIES)
    return statistics.median(times[WARM_UPS:])


def peer_copy(device: torch.Tensor) -> Callable[[], object]:
    """Copies the tensor to the next GPU. PyTorch's own copy also waits for the other GPU's stream,
    before and after: where CuPy is, its call of the CUDA runtime is taken, once PyTorch's has
    opened the way between the two."""
    far = torch.empty_like(device, device="cuda:1")
    far.copy_(device)
    torch.cuda.synchronize()
    if runtime is None:
        return lambda: far.copy_(device, non_blocking=True)
    stream = torch.cuda.current_stream(device.device).cuda_stream
    return lambda: runtime.memcpyPeerAsync(
        far.data_ptr(), 1, device.data_ptr(), 0, device.nbytes, stream
    )


def torch_rates(size: int) -> dict[str, float]:
    """Bytes per second of each path by PyTorch's copies."""
    host = torch.randint(0, 255, (size,), dtype=torch.uint8).pin_memory()
    device = torch.empty(size, dtype=torch.uint8, device="cuda:0")
    other = torch.empty_like(device)
    seconds = {
        H2D: timed(lambda: device.copy_(host, non_blocking=True), 0),
        D2H: timed(lambda: host.copy_(device, non_blocking=True), 0),
        LOCAL: timed(lambda: other.copy_(device), 0),
    }
    if torch.cuda.device_count() > 1:
        seconds[PEER] = timed(peer_copy(device), 0)
    return {path: size / took for path, took in seconds.items()}


def waywiser_rates(size: int) -> dict[str, tuple[float, float]]:
    """Bytes per second, and the relative half-width of its interval, from a survey."""
    paths = [H2D, D2H, LOCAL, PEER] if torch.cuda.device_count() > 1 else [H2D, D2H, LOCAL]
    found = survey(paths, ("--sizes", str(size)))
    return {
        path: (size / found[path].median, found[path].relative or float("nan")) for path in paths
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--bytes", type=parse_bytes, default=1 << 30)
    wanted = parser.parse_args()
    before = torch_rates(wanted.bytes)
    torch.cuda.empty_cache()
    measured = waywiser_rates(wanted.bytes)
    after = torch_rates(wanted.bytes)
    print(f"{format_bytes(wanted.bytes)} on {torch.cuda.get_device_name(0)}, "
          f"PyTorch {torch.__version__}; GB/s")  # fmt: skip
    print(f"{'waywiser':>10} {'±':>6} {'torch':>8} {'again':>8} {'ratio':>7}  path")
    outside, rows = 0, []
    for path in before:
        rate, within = measured[path]
        ratio = rate / statistics.mean((before[path], after[path]))
        steady = abs(before[path] / after[path] - 1) <= TOLERANCE
        outside += steady and abs(ratio - 1) > TOLERANCE
        row = {"path": path, "bytes": wanted.bytes, "waywiser": rate, "relative": within}
        if path == PEER and runtime is not None:
            row["copied_by"] = "cudaMemcpyPeerAsync, called by CuPy"
        rows.append(row | {"torch": before[path], "torch_again": after[path], "ratio": ratio})
        print(f"{rate / 1e9:10.2f} {within:6.2%} {before[path] / 1e9:8.2f} "
              f"{after[path] / 1e9:8.2f} {ratio:7.4f}  {path}")  # fmt: skip
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
