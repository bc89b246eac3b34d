"""Output of tools that is known and not read: what it is, and what to do instead.

A tool is known by a line that it prints itself: its title, or the head of its columns. A text that
only mentions a tool is none of its output.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SEARCHED = 2**20
"""Characters from the start of a text in which a tool is looked for."""

MESSAGES = "import results of the OSU micro-benchmarks or of nccl-tests"
NVBANDWIDTH = "run nvbandwidth, which replaces it"
NVIDIA_COPIES = "import results of nvbandwidth, or run waywiser survey"
HOST_COPIES = "measure host memory by waywiser survey --only h2h"
DISKS = "measure the disk by waywiser survey --only 'by direct-io'"
GPU_FILES = "measure the disk and the GPU by waywiser survey --only file"
TOPOLOGY = "it has no results: give waywiser topology --capture, or lstopo's XML, to --topology"
NO_RESULT = "it has no bandwidth: run waywiser survey on the machine"


class KnownTool(NamedTuple):
    """A tool whose output is not read."""

    name: str
    remedy: str
    shown: str
    """What a line of its output begins with, as a regular expression."""
    what: str = ""
    """What the text is, if that is not the output of the tool as a whole."""

    def is_shown_in(self, text: str) -> bool:
        return re.search(rf"^(?:{self.shown})", text, re.MULTILINE) is not None

    @property
    def said(self) -> str:
        return self.what or f"is the output of {self.name}, which is not read"


def known_tool(text: str) -> KnownTool | None:
    """The first tool that a text shows; None if it shows none."""
    head = text[:SEARCHED]
    return next((tool for tool in KNOWN if tool.is_shown_in(head)), None)


KNOWN = (
    KnownTool(
        "bandwidthTest",
        NVBANDWIDTH,
        r"\[CUDA Bandwidth Test\]|bandwidthTest-[DH]2[DH][\w-]*, Bandwidth = ",
    ),
    KnownTool(
        "p2pBandwidthLatencyTest",
        NVBANDWIDTH,
        r"\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]"
        r"|(?:Uni|Bi)directional P2P=(?:En|Dis)abled (?:Bandwidth|Latency) ",
    ),
    KnownTool("simpleP2P", NVBANDWIDTH, r"cudaMemcpyPeer / cudaMemcpy between GPU\d+ and GPU\d+:"),
    KnownTool(
        "nvbandwidth",
        "import the whole output: nvbandwidth > FILE, without grep",
        r"SUM [a-z][a-z0-9_]{3,60} +[0-9.]+\s*$",
        "has sums of nvbandwidth over GPUs, and not the figures of each",
    ),
    KnownTool("nvloom", NVBANDWIDTH.replace(", which replaces it", ""), r"nvloom_cli \d\S*\s*$"),
    KnownTool(
        "rocm_bandwidth_test",
        "run TransferBench p2p, and import its output",
        r"[ \t]*RocmBandwidthTest Version:|[ \t]*B[di]*directional copy peak bandwidth GB/s\s*$"
        r"|[ \t]*Unidirectional copy peak bandwidth GB/s\s*\n\s*D/D\s",
    ),
    KnownTool(
        "rccl-tests",
        "run it with -Z csv -x FILE, or import the text that it prints",
        r'\[\s*\{"numCycle"\s*:',
        "is JSON of rccl-tests, which is not read",
    ),
    KnownTool(
        "nccl-tests",
        "keep the lines from '# nThread' on: they have the number of ranks",
        r"#\s+size\s+count\s+type\s+redop\s"
        r"|[ \t]*\d+\s+\d+\s+(?:u?int\d*|u?char|half|b?float\d*|double|fp8\w*|f8\w*)\s+"
        r"(?:sum|prod|max|min|avg|mulsum|none|all)\s+(?:-?\d+\s+)?\d+\.\d+\s+\d+\.\d+\s+\d+\.\d+\s",
        "has rows of nccl-tests without the lines above them",
    ),
    KnownTool(
        "perftest (ib_write_bw and others)",
        MESSAGES,
        r"[ \t]*(?:RDMA_\w+|Send|Atomic\w*|Raw\w*|.{0,80}RDMA.{0,80})"
        r" (?:BW|Latency|Bidirectional BW)[\w ]* Test\s*$"
        r'|[ \t]*#bytes\s+#iterations\s+(?:BW|t_)|[ \t]*"?test_info"?\s*:\s*\{',
    ),
    KnownTool(
        "qperf", MESSAGES, r"(?:tcp|udp|sctp|rds|rc|uc|ud|xrc)_\w+:\s*\n\s+(?:bw|latency)\s+="
    ),
    KnownTool(
        "the Intel MPI Benchmarks",
        "import results of the OSU micro-benchmarks",
        r"[ \t]*#\s*Intel\s?\(R\) MPI Benchmarks|[ \t]*#bytes\s+#repetitions\s+t",
    ),
    KnownTool("mpiBench", MESSAGES, r"START mpiBench v|\w+\s+Bytes:\s+\d+\s+Iters:\s+\d+\s"),
    KnownTool("NetPIPE", MESSAGES, r"[ \t]*(?:\d+:[ \t]+)?\d+ bytes\s+\d+ times -->"),
    KnownTool("b_eff", MESSAGES, r"b_eff\s*=\s*[0-9.]+ MByte/s"),
    KnownTool(
        "the HPC Challenge benchmark",
        MESSAGES,
        r"This is the DARPA/DOE HPC Challenge Benchmark|Begin of Summary section\.",
    ),
    KnownTool(
        "ucx_perftest",
        MESSAGES,
        r"\|[ \t]*Stage\s*\|[ \t]*# iterations\s*\||\|[ \t]*# iterations\s*\|[ \t]*(?:typical|\d)"
        r"|\|[ \t]*Test:\s+[\w ]+\|[ \t]*$|Final:\s+\d+(?:\s+[0-9.]+){5,}",
    ),
    KnownTool("ucc_perftest", MESSAGES, r"[ \t]*Count\s+Size\s+Time, us"),
    KnownTool(
        "the NVSHMEM performance tests",
        MESSAGES,
        r"&&&& PERF \w*shmem\w*___|\|[ \t]*(?:nv)?shmem_\w+\s*\|"
        r"|#?[ \t]*(?:nv)?shmem_\w+_(?:bw|latency)\s*$",
    ),
    KnownTool(
        "nixlbench",
        NVIDIA_COPIES,
        r"[ \t]*Block Size \(B\)\s+Batch Size\s+|[ \t]*NIXLBench Configuration",
    ),
    KnownTool(
        "gdrcopy's tests",
        NVIDIA_COPIES,
        r"(?:writing|reading) test, size=\d+ offset=\d+|gdr_copy_(?:to|from)_mapping\s",
    ),
    KnownTool("gdsio", GPU_FILES, r"IoType: (?:RAND)?(?:READ|WRITE) XferType: "),
    KnownTool(
        "SHOC",
        NVIDIA_COPIES,
        r"test\s+atts\s+units\s+median\s+mean\s|bspeed_(?:download|readback):",
    ),
    KnownTool(
        "mixbench",
        NO_RESULT,
        r"mixbench[\w-]* \(v?\d|Experiment ID, Single Precision ops|[ \t]*Flops/byte, ex\.time,",
    ),
    KnownTool("clpeak", NVIDIA_COPIES, r"[ \t]*Global memory bandwidth \(GBPS\)"),
    KnownTool(
        "gpu-burn",
        NO_RESULT,
        r"[ \t]*Burning for \d+ seconds|(?:.*\s)?proc'd: \d+ \(\d+ Gflop/s\)",
    ),
    KnownTool(
        "fio",
        DISKS,
        r"\S+: \(g=\d+\): rw=|[ \t]*(?:read|write)\s*: IOPS=|Run status group \d+ \(all jobs\):"
        r'|[ \t]*(?:\{\s*)?"fio version"\s*:|(?:[\w.]+;){2}\S*fio-|\d;fio-\d',
    ),
    KnownTool("dd", DISKS, r"\d+ bytes (?:\([^)]*\) )?(?:copied|transferred)[ ,]"),
    KnownTool("hdparm", DISKS, r"[ \t]*Timing (?:cached|buffered disk|O_DIRECT[\w ]*) reads:"),
    KnownTool("IOR", DISKS, r"IOR-\d[\w.+-]*: MPI Coordinated|access\s+bw\(MiB/s\)\s"),
    KnownTool("iozone", DISKS, r"[ \t]*Iozone: Performance Test of File I/O"),
    KnownTool("elbencho", DISKS, r"OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE"),
    KnownTool(
        "iperf",
        MESSAGES,
        r'\[\s*ID\]\s+Interval\s+Transfer\s+(?:Bandwidth|Bitrate)|[ \t]*"version"\s*:\s*"iperf \d',
    ),
    KnownTool(
        "netperf",
        MESSAGES,
        r"(?:MIGRATED )?(?:TCP|UDP|OMNI|SCTP)\w* [\w/ ]*(?:TEST|Test) (?:from|to) ",
    ),
    KnownTool("sockperf", MESSAGES, r"sockperf: (?:==|Summary|\[|Test)"),
    KnownTool(
        "BabelStream",
        NVIDIA_COPIES,
        r"BabelStream\s*\nVersion:|Function\s+[MG]i?Bytes/sec\s+Min \(sec\)"
        r"|function,num_times,n_elements,",
    ),
    KnownTool(
        "STREAM",
        HOST_COPIES,
        r"STREAM version \$Revision|Function\s+(?:Best )?Rate \(?MB/s\)?\s+Avg time",
    ),
    KnownTool(
        "likwid-bench",
        HOST_COPIES,
        r"LIKWID MICRO BENCHMARK|Allocate: Process running on (?:hw|core)|MByte/s:\s+[0-9.]+",
    ),
    KnownTool(
        "the Intel Memory Latency Checker", HOST_COPIES, r"Intel\(R\) Memory Latency Checker - v\d"
    ),
    KnownTool("lmbench", HOST_COPIES, r'[ \t]*L M B E N C H\s|"stride=\d+\s*$|\[lmbench\d'),
    KnownTool("sysbench", HOST_COPIES, r"sysbench \d+\.\d+\S* \(using "),
    KnownTool("mbw", HOST_COPIES, r"(?:AVG|\d+)\s+Method: (?:MEMCPY|DUMB|MCBLOCK)\s"),
    KnownTool("RAMspeed", HOST_COPIES, r"RAMspeed[\w/ ]* v\d"),
    KnownTool(
        "DCGM's diagnostics",
        NO_RESULT,
        r'[ \t]*(?:\{\s*)?"DCGM (?:GPU )?Diagnostic"\s*:|Successfully ran diagnostic for group'
        r"|\|[ \t]*Diagnostic\s*\|[ \t]*Result\s*",
    ),
    KnownTool(
        "nvidia-smi topo", TOPOLOGY, r"[ \t]+GPU0\s.*\bCPU Affinity\b", "is a matrix of links"
    ),
    KnownTool("nvidia-smi", TOPOLOGY, r"\|[ \t]*NVIDIA-SMI\s+\d|=+\s*NVSMI LOG\s*=+"),
    KnownTool("rocm-smi", TOPOLOGY, r"=+\s*ROCm System Management Interface\s*=+"),
    KnownTool("deviceQuery", TOPOLOGY, r"[ \t]*CUDA Device Query \("),
    KnownTool("lstopo", TOPOLOGY, r"Machine \(\d+[KMGT]i?B(?: total)?\)|<!DOCTYPE topology\b"),
)
"""The first that a text shows counts."""
