"""What nccl-tests prints, and files that list fewer devices than ranks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import Malformed
from waywiser.exchange.imports.nccl import COLLECTIVES, RING, ROOTED, UNSEEN
from waywiser.exchange.imports.nccl import read as read_json
from waywiser.exchange.imports.nccl_text import read

FILE = Path(__file__).parent / "data" / "nccl.txt"


BUS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}
"""Bus bandwidth over algorithm bandwidth, as doc/PERFORMANCE.md of nccl-tests has it."""


def as_text(
    collective: str, ranks: int, rows: list[tuple[int, float]], named: bool, root: bool = True
) -> str:
    lines = [f"# Collective test starting: {collective}_perf"] if named else []
    lines += [f"# nThread 1 nGpus {ranks} minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 "
              "iters: 20 agg iters: 1 validation: 1 graph: 0", "#", "# Using devices"]  # fmt: skip
    lines += [f"#  Rank {n:>2} Group  0 Pid     81 on      node3 device {n:>2} "
              f"[0000:{n + 16:02x}:00] Test GPU" for n in range(ranks)]  # fmt: skip
    head = "#       size         count      type   redop" + ("    root" if root else "")
    lines += ["#", head + 2 * "     time   algbw   busbw #wrong"]
    factor = BUS[collective](ranks)
    at = "0" if collective in ROOTED else "-1"
    sums = "sum" if collective in ("all_reduce", "reduce", "reduce_scatter") else "none"
    for size, microseconds in rows:
        rate = size / microseconds / 1e3
        result = f"  {microseconds:.2f}  {rate:.2f}  {rate * factor:.2f}      0"
        lines.append(f"{size:>12} {size // 4:>12} float {sums} {at if root else ''}" + 2 * result)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("collective", [*COLLECTIVES, RING])
def test_rows_are_the_sizes_of_the_collective(collective: str, seed: int) -> None:
    rng = random.Random(f"{collective}{seed}")
    ranks = rng.choice([2, 3, 4, 8])
    sizes = sorted(rng.sample([2**n for n in range(12, 30)], 3))
    rows = [(size, round(rng.uniform(20, 900), 2)) for size in sizes]
    (found,) = read(as_text(collective, ranks, rows, named=True), "x")
    assert [each.workload.size for each in found.measured[::2]] == sizes
    for each in found.measured:
        transfers = each.workload.transfers
        assert len(transfers) == (ranks if collective == RING else 1)
        assert transfers[0].bus_factor == pytest.approx(BUS[collective](ranks))
        assert {place.index for place in each.workload.places} == set(range(ranks))
    seconds = [each.samples.span[0] * 1e6 for each in found.measured[::2]]
    assert seconds == pytest.approx([time for _, time in rows])


@pytest.mark.parametrize("root", [True, False])
def test_a_collective_that_nothing_names_is_the_only_one_with_such_columns(root: bool) -> None:
    (found,) = read(as_text("sendrecv", 4, [(2**20, 20.0)], named=False, root=root), "x")
    assert {t.parameters["collective"] for each in found.measured
            for t in each.workload.transfers} == {"sendrecv"}  # fmt: skip
    (found,) = read(as_text("alltoall", 4, [(2**20, 20.0)], named=False), "x")
    assert not found.measured
    assert "does not name its collective" in found.unsupported_paths[0].reason


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("collective", ["all_reduce", "reduce", "reduce_scatter", "broadcast"])
def test_columns_never_name_another_collective(collective: str, ranks: int, root: bool) -> None:
    text = as_text(collective, ranks, [(2**20, 20.0)], named=False, root=root)
    (found,) = read(text, "x")
    names = {each.workload.transfers[0].collective for each in found.measured}
    if root or not (ranks == 2 or collective == "broadcast"):
        assert names == {COLLECTIVES[collective]}
    elif collective != "broadcast":  # without a root it looks as a sendrecv does
        assert names <= {COLLECTIVES[collective]}


@pytest.mark.parametrize("name", ["all_gather.log", "run1-allgather.txt", "all-gather_8.out"])
def test_the_name_of_the_file_names_it(name: str) -> None:
    (found,) = read(as_text("all_gather", 4, [(2**20, 20.0)], named=False), f"/x/{name}")
    assert len(found.measured) == 2


def test_a_command_above_names_it() -> None:
    text = "$ mpirun ./build/alltoall_perf -b 8\n" + as_text("alltoall", 2, [(64, 9.0)], False)
    assert len(read(text, "x")[0].measured) == 2


def test_the_file() -> None:
    (found,) = detect.read(FILE)
    assert (found.version, found.hostname, len(found.gpus)) == ("NCCL 2.28.3+cuda13.0", "node3", 4)
    assert [each.failure is None for each in found.measured] == [True] * 4 + [False, True]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("   20.00   52.43", "   20.00", "x:16: the row has 12 columns and the head has 13"),
        ("20.00", "2o.00", "x:16: a cell of the row is no number"),
    ],
)
def test_damage_has_its_line(old: str, new: str, what: str) -> None:
    text = FILE.read_text()
    damaged = "\n".join(text.replace(old, new).splitlines()[:16])
    with pytest.raises(Malformed, match=what):
        read(damaged, "x")


def of_devices(listed: list[dict[str, Any]], **config: int) -> Any:
    row = {"size": 2**20, "type": "float", "redop": "none", "root": "-1",
           "out_of_place": {"time": 20.0, "nwrong": 0.0}}  # fmt: skip
    return {"nccl_version": 22800, "args": ["./sendrecv_perf"], "results": [row],
            "config": {"devices": listed} | config}  # fmt: skip


def device(rank: int, pid: int, host: str = "node3") -> dict[str, Any]:
    return {"rank": rank, "pid": pid, "hostname": host, "device": rank, "device_hex": "0000:01:00",
            "device_info": "Test GPU"}  # fmt: skip


@pytest.mark.parametrize(
    ("threads", "gpus", "processes"),
    [(t, g, p) for t in (1, 2, 4) for g in (1, 2, 4) for p in (1, 2, 3) if 2 <= t * g * p <= 36],
)
def test_ranks_without_a_device_in_the_file_are_counted(
    threads: int, gpus: int, processes: int
) -> None:
    each = threads * gpus
    listed = [device(n * each, 100 + n) for n in range(processes)]
    found = read_json(of_devices(listed, nthreads=threads, ngpus=gpus), "x")
    (measured,) = found.measured
    assert len(measured.workload.transfers) == each * processes
    notes = [note for note in measured.notes if "names the GPUs of" in note]
    assert bool(notes) == (each > 1)


def test_a_list_of_all_ranks_is_their_number() -> None:
    listed = [device(n, 100) for n in range(4)]
    found = read_json(of_devices(listed, nthreads=1, ngpus=4), "x")
    assert len(found.measured[0].workload.transfers) == 4
    assert "all ranks are of one node" in found.measured[0].notes[0]


def test_of_several_processes_the_slowest_counts() -> None:
    value = of_devices([device(0, 1), device(1, 2)], nthreads=1, ngpus=1)
    per_iteration = {"times_us": [1.0, 2.0], "per_process_max_times_us": [[1.0, 5.0], [3.0, 4.0]]}
    value["results"][0]["out_of_place_per_iter"] = per_iteration
    (measured,) = read_json(value, "x").measured
    assert measured.samples.span == pytest.approx((3e-6, 5e-6))


@pytest.mark.parametrize(
    "changed", [{"type": "int8"}, {"type": "bfloat16"}, {"graph": 4}, {"aggregated_iterations": 8},
                {"blocking_collectives": "true"}, {"unalign": 1}]
)  # fmt: skip
def test_another_variant_is_another_series(changed: dict[str, Any]) -> None:
    plain = of_devices([device(0, 1), device(1, 2)], nthreads=1, ngpus=1)
    other = json.loads(json.dumps(plain))
    target = other["results"][0] if "type" in changed else other["config"]
    target.update(changed)
    one, two = (read_json(value, "x").measured[0] for value in (plain, other))
    assert one.workload.identity != two.workload.identity


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_the_text_lists_every_rank_however_many_processes_have_them(processes: int) -> None:
    text = as_text("sendrecv", 4, [(2**20, 20.0)], named=True)
    for rank in range(4):
        pid = 100 + rank * processes // 4
        head = f"#  Rank {rank:>2} Group  0 Pid    "
        text = text.replace(f"{head} 81", f"{head}{pid}")
    (found,) = read(text, "x")
    assert [len(each.workload.transfers) for each in found.measured] == [4, 4]
    assert "all ranks are of one node" in found.measured[0].notes[0]


def devices(rng: random.Random, processes: int, each: int) -> list[list[str]]:
    """The list of each process, as it is before the tool cuts it."""
    return [
        [
            f"#  Rank {n * each + k:>2} Group  0 Pid {900 + n:>6} on      node{n // 2} "
            f"device {k:>2} [0000:{k + 16:02x}:00] Test GPU of {rng.randint(40, 80)} GB\n"
            for k in range(each)
        ]
        for n in range(processes)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_a_list_that_the_tool_cut_has_the_ranks_of_all_processes(seed: int) -> None:
    rng = random.Random(seed)
    processes, each = rng.choice([(1, 16), (2, 8), (4, 16), (3, 4), (2, 32), (8, 8)])
    marked = rng.random() < 0.5
    listed = ""
    for lines in devices(rng, processes, each):
        whole = "".join(lines)
        cut = rng.randint(len(lines[0]), len(whole) - 1)
        listed += whole[: cut - 4] + "...\n" if marked else whole[:cut]
    text = as_text("sendrecv", each, [(2**20, 20.0)], named=True)
    kept = [line for line in text.splitlines() if not line.startswith("#  Rank")]
    at = kept.index("# Using devices") + 1
    text = "\n".join(kept[:at]) + "\n" + listed + "\n".join(kept[at:]) + "\n"
    (found,) = read(text, "x")
    ranks = processes * each
    assert [len(series.workload.transfers) for series in found.measured] == [ranks, ranks]
    assert any("of its" in note for note in found.measured[0].notes)
    assert all(not gpu.name or gpu.name.endswith("GB") for gpu in found.gpus)


def test_without_a_list_the_number_of_ranks_is_unknown() -> None:
    text = as_text("sendrecv", 4, [(2**20, 20.0)], named=True)
    text = "".join(line for line in text.splitlines(True) if not line.startswith("#  Rank"))
    (found,) = read(text, "x")
    assert [each.reason for each in found.unsupported_paths] == [
        "it lists no GPU, so the number of ranks is unknown"
    ]


def test_ranks_of_several_groups_are_not_one_collective() -> None:
    text = as_text("sendrecv", 4, [(2**20, 20.0)], named=True)
    text = text.replace("Rank  3 Group  0", "Rank  3 Group  1")
    (found,) = read(text, "x")
    assert "in 2 groups" in found.unsupported_paths[0].reason
    value = of_devices([device(0, 1) | {"group": 0}, device(1, 2) | {"group": 1}])
    assert "in 2 groups" in read_json(value, "x").unsupported_paths[0].reason


def test_what_rccl_tests_prints() -> None:
    text = as_text("sendrecv", 4, [(2**20, 20.0)], named=False)
    text = text.replace("nThread 1 nGpus 4 minBytes 8", "nThread: 1 nGpus: 4 minBytes: 8")
    text = text.replace(" Group  0", "").replace("warmup iters", "warmupIters")
    (found,) = read(text, "sendrecv.txt")
    assert [len(each.workload.transfers) for each in found.measured] == [4, 4]
    assert found.environment["warmup_iters"] == 5


def test_the_time_of_the_calls_is_not_that_of_the_transfers() -> None:
    text = as_text("sendrecv", 4, [(2**20, 20.0)], named=True).replace("     time", "  cputime")
    with pytest.raises(Malformed, match="of the CPU's calls"):
        read(text, "x")


def test_blocking_calls_are_another_series() -> None:
    text = as_text("sendrecv", 4, [(2**20, 20.0)], named=True)
    line = "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n#\n# Using"
    (plain,), (blocking,) = read(text, "x"), read(text.replace("#\n# Using", line), "x")
    one, two = plain.measured[0].workload, blocking.measured[0].workload
    assert one.identity != two.identity


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_row_or_run_loses_no_other(seed: int) -> None:
    rng = random.Random(seed)
    rows = [(2**n, float(n)) for n in range(20, 24)]
    runs = [as_text("sendrecv", 4, rows, named=True) for _ in range(3)]
    bad = rng.randrange(3)
    lines = runs[bad].splitlines()
    if rng.random() < 0.5:
        runs[bad] = "\n".join(lines[:-4]) + "\n"  # no row at all
        expected, reason = 16, "it is truncated"
    else:
        row = rng.randrange(len(lines) - 4, len(lines))
        lines[row] = lines[row][: rng.randint(45, 60)]
        runs[bad] = "\n".join(lines) + "\n"
        expected, reason = 22, "the row has"
    found = read("".join(runs), "x")
    assert sum(len(each.measured) for each in found) == expected
    (damaged,) = [each for file in found for each in file.unsupported_paths]
    assert reason in damaged.reason
    assert "line " in damaged.path


COMMANDS = ("{} -b 8 -e 8M -f 2 {}", "srun -n 1 --mpi=pmix {} {} -g 2", "+ mpirun -np 1 {} {}",
            "root@node3:~# ./build/{} -c 1 {} -n 20", "# ./{} {}")  # fmt: skip
OPTIONS = ("-a {}", "-a{}", "--average {}", "--average={}", "-a 1 -a {}")


@pytest.mark.parametrize("value", "0123")
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("command", COMMANDS)
def test_another_statistic_over_processes_is_another_series(
    command: str, option: str, value: str
) -> None:
    text = as_text("all_gather", 2, [(2**20, 20.0)], named=True)
    line = command.format("all_gather_perf", option.format(value))
    name = {"0": "rank0", "1": None, "2": "min", "3": "max"}[value]
    for shown in (line, line.replace(" -", " \\\n  -")):
        (found,) = read(f"{shown}\n{text}", "x")
        for each in found.measured:
            assert each.workload.transfers[0].parameters.get("of-ranks") == name
    value_of = of_devices([device(0, 1), device(1, 2)], nthreads=1, ngpus=1)
    value_of["args"] = ["./all_gather_perf", *option.format(value).split()]
    (summed,) = read_json(value_of, "x").measured
    assert summed.workload.transfers[0].parameters.get("of-ranks") == name


def test_single_iterations_of_several_processes_are_of_the_longest_whatever_the_option() -> None:
    value = of_devices([device(0, 1), device(1, 2)], nthreads=1, ngpus=1)
    value["args"] = ["./sendrecv_perf", "-a", "2"]
    times = {"times_us": [1.0], "per_process_max_times_us": [[1.0], [3.0]]}
    value["results"][0]["out_of_place_per_iter"] = times
    (found,) = read_json(value, "x").measured
    assert found.workload.transfers[0].parameters["of-ranks"] == "longest"
    times["per_process_max_times_us"] = [[1.0]]
    (found,) = read_json(value, "x").measured
    assert "of-ranks" not in found.workload.transfers[0].parameters


@pytest.mark.parametrize("command", ["", "all_gather_perf -g 2\n"])
@pytest.mark.parametrize("several", [True, False])
def test_a_text_without_its_command_does_not_show_the_statistic(
    command: str, several: bool
) -> None:
    text = as_text("all_gather", 2, [(2**20, 20.0)], named=True)
    text = text.replace("Pid     81", "Pid     82", 1) if several else text
    (found,) = read(command + text, "x")
    assert (UNSEEN in found.measured[0].notes) == (several and not command)


FOUR = [(2**n, 25 + 2**n / 3e5) for n in (12, 18, 24, 30)]


def four_rows(old: str = "", new: str = "", end: str = "") -> tuple[list[int], str]:
    """(sizes that are imported, what is not, with the reasons) of a text with a change."""
    text = as_text("all_reduce", 4, FOUR, named=True)
    assert old in text
    (found,) = read(text.replace(old, new, 1) + end, "x")
    sizes = sorted({each.workload.bytes for each in found.measured if each.failure is None})
    return sizes, "\n".join(f"{each.path}: {each.reason}" for each in found.unsupported_paths)


SECOND = f"{2**18:>12}"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("  25.87  ", "  2.587  ", "are not of the same 262,144 bytes"),
        ("  10.13  ", "  101.3  ", "are not of the same 262,144 bytes"),
        ("  25.87  ", "  nan  ", "not finite"),
        ("  25.87  ", "  25,87  ", "no number"),
        (f"{SECOND} ", f"{SECOND} n7:12 [0] NCCL INFO x\n", "columns"),
        (
            f"{2**18:>12}        65536 float",
            f"{2**18:>12}        65536 [",
            "a size, a count and a type",
        ),
    ],
)
def test_a_row_that_cannot_be_right_is_listed(old: str, new: str, reason: str) -> None:
    sizes, said = four_rows(old, new)
    assert sizes == [2**12, 2**24, 2**30]
    assert reason in said


def test_wrong_values_and_errors_of_a_run_are_said() -> None:
    sizes, said = four_rows(
        end="# Out of bounds values : 7 FAILED\nn3: Test NCCL failure all.cu:9 'x'\n"
    )
    assert len(sizes) == 4
    assert "the end of the run: the tool failed: n3: Test NCCL failure" in said
    text = as_text("all_reduce", 4, FOUR, named=True) + "# Out of bounds values : 7 FAILED\n"
    (found,) = read(text, "x")
    assert all("the tool found 7 wrong values in this run" in each.notes for each in found.measured)
    (good,) = read(text.replace("7 FAILED", "0 OK"), "x")
    assert not any("wrong" in note for each in good.measured for note in each.notes)
