"""Texts of benchmarks made from known values: tools, launchers, settings, prefixes, noise, cuts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

SIZES = (1024, 65536, 1048576, 16777216)

ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {}, {}, {},
    {"UCX_TLS": "rc,cuda_copy"},
    {"UCX_TLS": "tcp"},
    {"NCCL_ALGO": "Ring"},
    {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"},
    {"HSA_ENABLE_SDMA": "0"},
    {"OMPI_MCA_btl": "self,vader"},
)  # fmt: skip
LAUNCHERS = {"mpirun": "mpirun", "mpiexec": "mpirun", "jsrun": "jsrun", "srun": "srun",
             "aprun": "aprun", "flux": "flux"}  # fmt: skip
INCIDENTAL = ("UCX_LOG_LEVEL=info", "NCCL_DEBUG=WARN", "OUTDIR=/tmp/run7", "JOB_NAME=night")
WRAPPERS = ("", "", "", "numactl -N 0", "numactl -l", "taskset -c 0-15", "nice -n 5")

NOISE = (
    "Warning: Permanently added 'w-1.svc' (ED25519) to the list of known hosts.",
    "all_gather_perf  all_reduce_perf  alltoall_perf  broadcast_perf",
    "scatter_perf     sendrecv_perf    timer.o        osu_bw",
    "$ ls build",
    "$ cd $HOME/osu_runs",
    "=== osu and nccl-tests, second part ===",
    "real\t0m12.345s",
    "Tests to run: osu_latency osu_bw all_reduce_perf",
    "node7:81:99 [2] NCCL INFO Channel 00/0 : 2[2] -> 3[3] via P2P/CUMEM",
    "--------------------------------------------------------------------------",
    "WARNING: Linux kernel CMA support was requested via the btl_vader_single_copy_mechanism",
    "Loading the environment of the project",
    "Wed Oct 14 12:01:05 UTC 2026",
    "$ squeue --me",
    "see osu_bw.txt and all_gather.log for the results of last week",
)
"""Lines that are no command of a benchmark and no result."""


class Truth(NamedTuple):
    """One row of a table as it was measured."""

    what: str
    """The test, or the collective."""
    ends: tuple[str, str]
    """Kinds of memory."""
    ranks: int
    size: int
    in_place: bool
    seconds: float
    settings: str
    """Equal texts for runs that are repetitions."""


class MadeText(NamedTuple):
    text: str
    truths: list[Truth]
    is_complete: bool
    """Whether nothing was cut off."""


class Run(NamedTuple):
    lines: list[str]
    truths: list[Truth]


def launched(rng: random.Random, ranks: int, program: str) -> tuple[str, str]:
    """(a command of so many ranks, the settings in it)."""
    environment = rng.choice(ENVIRONMENTS)
    wrapper = rng.choice(WRAPPERS)
    words = [f"{name}={value}" for name, value in environment.items()]
    settings = [*sorted(words), wrapper]
    incidental = rng.choice((*INCIDENTAL, "", ""))
    ahead = " ".join([*words, incidental]).strip()
    inner = f"{wrapper} {program}".strip()
    form = rng.randrange(12)
    dashes = " ".join(f"-x {each}" for each in words)
    hosts = rng.choice(["", "", "a,b", "c,d"])
    if form == 0:
        where = f"-H {hosts} " if hosts else ""
        command = f"mpirun -np {ranks} {where}{dashes} {inner}"
        settings.append(f"hosts {hosts}" if hosts else "")
    elif form == 1:
        command = f"{ahead} mpiexec -n {ranks} {inner}"
    elif form == 2:
        verbose = rng.choice(["--label ", "-J night ", ""])
        command = f"{ahead} srun -n{ranks} {verbose}{inner}"
    elif form == 3:
        each = next(n for n in (4, 3, 2, 1) if ranks % n == 0)
        command = f"{ahead} srun -N {ranks // each} --ntasks-per-node={each} {inner}"
        settings.append(f"srun nodes {ranks // each} of {each}")
    elif form == 4:
        each = next(n for n in (3, 2, 1) if ranks % n == 0)
        command = f"{ahead} jsrun -n {ranks // each} -a {each} -o out.txt {inner}"
        settings.append(f"jsrun sets {ranks // each} of {each}")
    elif form == 5:
        command = f"{ahead} aprun -n {ranks} {inner}"
    elif form == 6:
        command = f"{ahead} flux run -n {ranks} {inner}"
    elif form == 7:
        command = f"nice -n 10 mpirun -np {ranks} {dashes} {inner}"
        settings.append("nice 10")
    elif form == 8:
        command = f"{ahead} mpirun -np {ranks} --report-bindings {inner} 2>&1 | tee log.txt"
    elif form == 9 and ranks > 2:
        command = f"{ahead} mpirun -np {ranks - 2} {inner} : -np 2 {inner}"
    elif form == 10:
        command = f"docker run --rm --gpus all bench:1 mpirun -np {ranks} {dashes} {inner}"
        settings.append("docker bench:1")
    else:
        command = f"{ahead} time mpirun --np {ranks} {inner} > out.txt"
    launcher = next(name for name in LAUNCHERS if f"{name} " in command)
    settings.append(LAUNCHERS[launcher])
    return " ".join(command.split()), "|".join(filter(None, settings))


def prompted(rng: random.Random, command: str) -> str:
    """The command behind a prompt, as a terminal or a trace shows it."""
    return rng.choice(["$ {}", "+ {}", "user@node7:~/omb$ {}", "[user@node7 omb]$ {}"]).format(
        command
    )


def osu_messages(rng: random.Random) -> Run:
    test, title, unit = rng.choice([
        ("latency", "Latency", "Avg Latency(us)"),
        ("bw", "Bandwidth", "Bandwidth (MB/s)"),
        ("bibw", "Bi-Directional Bandwidth", "Bandwidth (MB/s)"),
    ])  # fmt: skip
    program, ends = f"./osu_{test}", ("pageable", "pageable")
    mpi = "MPI"
    if rng.random() < 0.6:
        pair = rng.choice(["D D", "H D", "D H"])
        kinds = {"D": "device", "H": "pageable"}
        ends = (kinds[pair[0]], kinds[pair[2]])
        mpi = rng.choice(["MPI-CUDA", "MPI-ROCM"])
        accelerator = {"MPI-CUDA": "-d cuda ", "MPI-ROCM": "-d rocm "}[mpi]
        program += f" -i 100 {rng.choice(['', accelerator])}{pair}"
    command, settings = launched(rng, 2, program)
    lines = [prompted(rng, command), f"# OSU {mpi} {title} Test v7.{rng.randrange(2, 6)}"]
    lines += [f"# Size  {unit}"]
    truths = []
    for size in SIZES:
        value = round(rng.uniform(2, 90_000 if "MB" in unit else 500), 2)
        lines.append(f"{size:<12} {value:>12.2f}")
        ways = 2 if test == "bibw" else 1
        seconds = value * 1e-6 if test == "latency" else ways * size / (value * 1e6)
        truths.append(Truth(test, ends, 2, size, False, seconds, settings))
    return Run(lines, truths)


def osu_collective(rng: random.Random) -> Run:
    word, program, title, parts = rng.choice([
        ("allreduce", "osu_allreduce", "Allreduce", False),
        ("allgather", "osu_allgather", "Allgather", True),
        ("broadcast", "osu_bcast", "Broadcast", False),
    ])  # fmt: skip
    ranks = rng.choice([2, 4, 6, 8, 12])
    command, settings = launched(rng, ranks, f"./{program} -i 100")
    lines = [prompted(rng, command), f"# OSU MPI {title} Latency Test v7.4",
             "# Size       Avg Latency(us)"]  # fmt: skip
    truths = []
    for size in SIZES:
        value = round(rng.uniform(2, 500), 2)
        lines.append(f"{size:<12} {value:>12.2f}")
        whole = size * ranks if parts else size
        memory = ("pageable", "pageable")
        truths.append(Truth(word, memory, ranks, whole, False, value * 1e-6, settings))
    return Run(lines, truths)


BUS: dict[str, tuple[str, str, str, Callable[[int], float]]] = {
    "all_reduce": ("allreduce", "sum", "-1", lambda n: 2 * (n - 1) / n),
    "all_gather": ("allgather", "none", "-1", lambda n: (n - 1) / n),
    "reduce_scatter": ("reduce-scatter", "sum", "-1", lambda n: (n - 1) / n),
    "alltoall": ("alltoall", "none", "-1", lambda n: (n - 1) / n),
    "broadcast": ("broadcast", "none", "0", lambda n: 1.0),
}


def nccl(rng: random.Random) -> Run:
    name = rng.choice([*BUS])
    word, operator, root, factor = BUS[name]
    ranks = rng.choice([2, 4, 8])
    command, settings = launched(rng, ranks, f"./build/{name}_perf -b 1K -e 16M -g 1")
    lines = [prompted(rng, command)]
    if rng.random() < 0.4:
        lines += ["# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=22803",
                  f"# Collective test starting: {name}_perf"]  # fmt: skip
    lines += ["# nThread 1 nGpus 1 minBytes 1024 maxBytes 16777216 step: 2(factor) warmup iters: 5 "
              "iters: 20 agg iters: 1 validation: 1 graph: 0", "#", "# Using devices"]  # fmt: skip
    lines += [f"#  Rank {n:>2} Group  0 Pid {400 + n:>6} on      node7 device {n:>2} "
              f"[0000:{n + 16:02x}:00] Test GPU" for n in range(ranks)]  # fmt: skip
    stamped = rng.random() < 0.2
    one = "     time   algbw   busbw  #wrong"
    stamp = "            timestamp" if stamped else ""
    lines += ["#", f"#       size         count      type   redop    root{one}{one}{stamp}"]
    truths = []
    for size in SIZES:
        cells = ""
        for in_place in (False, True):
            time = round(rng.uniform(20, 900), 2)
            rate = size / time / 1e3
            cells += f"  {time:8.2f} {rate:7.2f} {rate * factor(ranks):7.2f}       0"
            memory = ("device", "device")
            truths.append(Truth(word, memory, ranks, size, in_place, time * 1e-6, settings))
        end = "  2026-10-14 12:01:05" if stamped else ""
        lines.append(f"{size:>12} {size // 4:>13}     float  {operator:>6} {root:>7}{cells}{end}")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 22.1 ", "#"]
    return Run(lines, truths)


def nvbandwidth(rng: random.Random) -> Run:
    environment = rng.choice(ENVIRONMENTS)
    wrapper = rng.choice(("", "numactl -N 1", "taskset -c 0-7"))
    ahead = " ".join(f"{name}={value}" for name, value in environment.items())
    command = " ".join(f"{ahead} {wrapper} ./nvbandwidth -t host_to_device_memcpy_ce".split())
    lines = [prompted(rng, command), "nvbandwidth Version: v0.8", "Built from Git version: v0.8",
             "", "CUDA Runtime Version: 12080", "Driver Version: 570.124.06", "", "node7",
             "Device 0: NVIDIA H200 (00000000:1b:00)", "Device 1: NVIDIA H200 (00000000:1c:00)",
             ""]  # fmt: skip
    truths = []
    settings = f"{ahead}|{wrapper}"
    for case, ends in (("host_to_device_memcpy_ce", ("pinned", "device")),
                       ("device_to_host_memcpy_ce", ("device", "pinned"))):  # fmt: skip
        rates = [round(rng.uniform(10, 60), 2) for _ in range(2)]
        lines += [f"Running {case}.", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
                  "           0         1", f" 0 {rates[0]:>9.2f} {rates[1]:>9.2f}", "",
                  f"SUM {case} {sum(rates):.2f}", ""]  # fmt: skip
        for gpu, rate in enumerate(rates):
            size = 512 * 2**20
            truths.append(Truth(f"gpu {gpu}", ends, 2, size, False, size / (rate * 1e9), settings))
    return Run(lines, truths)


MAKERS = (osu_messages, osu_collective, nccl, nvbandwidth)


def stamped(rng: random.Random) -> Iterator[str]:
    """Times, one for each line."""
    second = rng.randrange(10_000)
    while True:
        second += rng.randrange(3)
        yield f"2026-10-14 {second // 3600 + 8:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


PREFIXES: tuple[Callable[[str, int], str], ...] = (
    lambda time, n: "[1,0]<stdout>:",
    lambda time, n: "0: ",
    lambda time, n: "[3] ",
    lambda time, n: f"{time.replace(' ', 'T')}Z ",
    lambda time, n: f"[{time},{n % 1000:03d}] [INFO] ",
    lambda time, n: f"{time},{n % 1000:03d} - bench - INFO - ",
    lambda time, n: f"{time.replace(' ', 'T')}.{n:07d}Z stdout F ",
    lambda time, n: f"Oct 14 {time[11:]} node7 bench.sh[4711]: ",
    lambda time, n: "bench-1  | ",
    lambda time, n: "worker-0-x7k2p launcher ",
    lambda time, n: "[pod/mpi-x7k2p/launcher] ",
    lambda time, n: "(main pid=3808, ip=10.0.0.4) ",
    lambda time, n: f"[{n * 13}.{n:06d}] ",
    lambda time, n: "> ",
    lambda time, n: "    ",
    lambda time, n: f"build\tRun tests\t{time.replace(' ', 'T')}Z ",
    lambda time, n: f"{n:>6}\t",
)


def made(rng: random.Random) -> MadeText:
    """A text with one to four runs."""
    lines: list[str] = rng.sample(NOISE, rng.randrange(4))
    truths: list[Truth] = []
    maker = rng.choice(MAKERS)
    for _ in range(rng.randint(1, 4)):
        run = (maker if rng.random() < 0.7 else rng.choice(MAKERS))(rng)
        between = rng.sample(NOISE, rng.randrange(3))
        lines += [run.lines[0], *between, *run.lines[1:], *rng.sample(NOISE, rng.randrange(3)), ""]
        truths += run.truths
    is_complete = rng.random() < 0.8
    if not is_complete:
        first = rng.randrange(len(lines)) if rng.random() < 0.5 else 0
        lines = lines[first : rng.randrange(first, len(lines)) + 1]
    if rng.random() < 0.5:
        times, prefix = stamped(rng), rng.choice(PREFIXES)
        lines = [
            f"{prefix(time, n)}{line}"
            for n, (line, time) in enumerate(zip(lines, times, strict=False))
        ]
    return MadeText("\n".join(lines) + "\n", truths, is_complete)
