"""The lines with which results of each tool begin in a text."""

from __future__ import annotations

import re

_PATTERNS = {
    "osu": r"[ \t]{0,20}#[ \t]*OSU[ \t]+\S",
    "nccl": r"#[ \t]*nThreads?:?[ \t]+[0-9]+[ \t]+nGpus:?[ \t]+[0-9]+",
    "nccl-head": r"#[ \t]*(?:Collective test starting|(?:nccl|rccl)-tests version)",
    "nvbandwidth": r"nvbandwidth Version:",
    "nvbandwidth-case": r"Running [a-z0-9_]+\.[ \t]*$",
    "transferbench": r"[ \t]{0,20}TransferBench (?:Client )?v[0-9]",
    "perftest": r"[ \t]*#bytes\s|[ \t]*(?:RDMA_\w+|Send) (?:\w+ )*(?:BW|Latency) Test",
    "imb": r"#\s+(?:Intel ?\(R\) MPI Benchmarks|Benchmarking )",
    "stream": r"Function\s+(?:Best Rate )?MB(?:ytes)?/s",
    "cuda-samples": r"\[CUDA Bandwidth Test\]|\[P2P \(Peer-to-Peer\)",
    "rocm-bandwidth-test": r"\s*RocmBandwidthTest Version",
    "google-benchmark": r"Benchmark\s+Time\s+CPU\s+Iterations",
}
"""By what they begin: at the start of a line."""

OSU, NCCL, NVBANDWIDTH, TRANSFERBENCH = (
    re.compile(rf"^{_PATTERNS[name]}", re.MULTILINE | (re.IGNORECASE if name == "osu" else 0))
    for name in ("osu", "nccl", "nvbandwidth", "transferbench")
)

ANY = re.compile("^(?:" + "|".join(f"(?P<t{n}>{each})" for n, each in enumerate(_PATTERNS.values()))
                 + ")")  # fmt: skip
_NAMES = tuple(_PATTERNS)


def tool_of(line: str) -> str:
    """The tool whose results the line begins; empty for any other line."""
    found = ANY.match(line)
    if found is None or found.lastgroup is None:
        return ""
    return _NAMES[int(found.lastgroup[1:])].partition("-")[0]
