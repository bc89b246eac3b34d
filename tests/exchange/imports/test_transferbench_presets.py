"""Tables of TransferBench's presets."""

from __future__ import annotations

import random
import re

import pytest

from exchange.imports.transferbench_texts import peer_matrix
from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.transferbench import TITLE, read

HEAD = "TransferBench v1.62.00\nNUM_CPU_SE           =            4 : x\n"
UNITS = "NUM_GPU_SE           =          304 : x\n"
SIZE = 4194304


def reasons(found: ForeignFile) -> str:
    return "\n".join(f"{each.path}: {each.reason}" for each in found.unsupported_paths)


def matrix(seed: int) -> tuple[str, dict[str, float], random.Random]:
    rng = random.Random(seed)
    comma = rng.choice(("", ","))
    table, rates = peer_matrix(rng, rng.randrange(1, 4), rng.randrange(1, 5), comma)
    return f"{HEAD}{UNITS}Bytes Per Direction{comma or ' '}{SIZE}\n{table}", rates, rng


@pytest.mark.parametrize("seed", range(20))
def test_matrices_of_p2p(seed: int) -> None:
    text, rates, _ = matrix(seed)
    assert TITLE.search(text)
    found = read(text, "x")
    assert not found.unsupported_paths, reasons(found)
    one = {each.name.partition(", ")[2]: each for each in found.measured
           if len(each.workload.transfers) == 1}  # fmt: skip
    assert len(one) == sum(" -> " in name for name in rates)
    for name, each in one.items():
        assert each.samples.span == (pytest.approx(SIZE / rates[name] / 1e9),)
        (transfer,) = each.workload.transfers
        source, to = name.split(" -> ")
        for device, place in zip((source, to), transfer.path.places, strict=True):
            assert str(place) == f"{'gpu' if 'GPU' in device else 'numa'}:{int(device[4:])}"
        assert transfer.path.executor == ("sm" if "GPU" in source else "cpu")
    pairs = [each for each in found.measured if len(each.workload.transfers) == 2]
    assert len(pairs) == sum("<->" in name and "back" not in name for name in rates)
    for each in pairs:
        first, second = each.name.partition(", ")[2].split("; ")
        known = {  # the same pair stands in two rows
            (rates[f"{one} <-> {other}"], rates[f"{one} <-> {other} back"])
            for one, other in [first.split(" -> ")]
        } | {
            (rates[f"{one} <-> {other} back"], rates[f"{one} <-> {other}"])
            for one, other in [second.split(" -> ")]
        }
        measured = tuple(round(SIZE / time / 1e9, 2) for time in each.samples.transfers[0])
        assert measured in known
        assert "its bytes are those of one direction, and as many move in the other" in each.notes


@pytest.mark.parametrize("seed", range(20))
def test_a_matrix_cut_off_anywhere_gives_no_other_number(seed: int) -> None:
    text, _, rng = matrix(seed)
    whole: dict[str, list[object]] = {}
    for each in read(text, "x").measured:
        whole.setdefault(str(each.workload), []).append(each.samples)
    start = text.index("directional copy")
    for _ in range(30):
        try:
            found = read(text[: rng.randrange(start, len(text))], "x")
        except Malformed:
            continue
        for each in found.measured:
            assert each.samples in whole[str(each.workload)]


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_row_loses_its_row_alone(seed: int) -> None:
    text, _, rng = matrix(seed)
    lines = text.splitlines()
    rows = [n for n, line in enumerate(lines) if re.match(r" *[CG]PU \d\d +(->|<-|<->)", line)]
    n = rng.choice(rows)
    cells = re.findall(r"[\d.]+\d|N/A", lines[n])[1:]
    lines[n] = lines[n].rsplit(cells[-1], 1)[0]
    found = read("\n".join(lines) + "\n", "x")
    devices = len(cells)
    whole = len(read(text, "x").measured)
    assert whole - len(found.measured) in (devices, devices - 1)
    assert "figures for" in reasons(found) or "damaged" in reasons(found)


def p2p(title: str, rows: str, head: str = HEAD) -> ForeignFile:
    return read(f"{head}Bytes Per Direction 1000000\n{title}\n{rows}", "x")


WAYS = "{}directional copy peak bandwidth GB/s [{} read / x write] (GPU-Executor: {})"
TWO = " SRC\\DST    CPU 00       GPU 00    GPU 01\n"


def test_executor_memory_and_side_are_those_of_title_and_settings() -> None:
    head = HEAD + UNITS + "CPU_MEM_TYPE         =            1 : x\nGPU_MEM_TYPE = 2 : x\n"
    rows = TWO + "  GPU 00  ->     10.00        100.00     20.00\n"
    local = p2p(WAYS.format("Uni", "Local", "DMA"), rows, head)
    assert [str(each.workload) for each in local.measured] == [
        "device[cached=no]@gpu:0 -> pinned[grain=fine]@numa:0 by copy-engine of 1000000",
        "device[cached=no]@gpu:0 -> device[cached=no]@gpu:0 by copy-engine of 1000000",
        "device[cached=no]@gpu:0 -> device[cached=no]@gpu:1 by copy-engine[api=async] of 1000000",
    ]
    remote = p2p(WAYS.format("Uni", "Remote", "GFX"), rows)
    assert [str(each.workload.transfers[0].way) for each in remote.measured] == [
        "device@gpu:0 -> pinned@numa:0 by cpu[threads=4]",
        "device@gpu:0 -> device@gpu:0 by sm[cus=all]",
        "device@gpu:0 -> device@gpu:1 by sm[cus=all]",
    ]
    assert any("defaults are assumed" in note for note in remote.measured[1].notes)


def test_cells_without_a_figure() -> None:
    rows = TWO + "  CPU 00  ->     10.00           N/A      0.00\n  GPU 00  ->   1.00 nan 3.00\n"
    found = p2p(WAYS.format("Uni", "Local", "GFX"), rows)
    assert len(found.measured) == 3
    assert "1 cells: the tool did not run them (N/A)" in reasons(found)
    assert "its figure is 0" in reasons(found) and "nan" in reasons(found)


def test_spread_of_iterations_is_kept() -> None:
    rows = TWO + ("  CPU 00  ->     10.00     20.00     40.00\n  CPU 00 min      9.00     19.00"
                  "     38.00\n  CPU 00 max     11.00     21.00     42.00\n  CPU 00  sd      0.10"
                  "      0.40      0.80\n")  # fmt: skip
    found = p2p(WAYS.format("Uni", "Local", "GFX"), rows)
    assert [each.deviation for each in found.measured] == pytest.approx([0.01, 0.02, 0.02])


def test_a_pair_that_contradicts_its_total() -> None:
    rows = TWO + ("  CPU 00  ->       N/A     20.00     40.00\n  CPU 00 <-        N/A     10.00"
                  "     30.00\n  CPU 00 <->       N/A     30.00     71.00\n")  # fmt: skip
    found = p2p(WAYS.format("Bi", "Local", "GFX"), rows)
    assert len(found.measured) == 1
    assert "40 and 30 GB/s are not the 71 of both" in reasons(found)


def test_old_versions_have_a_total_of_both_ways() -> None:
    text = (
        "TransferBench v1.08\nUSE_HIP_CALL         =            0 : x\nPerforming copies in each "
        "direction of 1000000 bytes\nUsing 8 threads per NUMA node for CPU copies\nUsing 120 CUs "
        "per transfer\nBidirectional copy peak bandwidth GB/s [Local read / Remote write]\n"
        "       D/D     CPU 00     GPU 00\n    CPU 00       N/A     40.00\n    GPU 00     50.00"
        "       N/A\n"
    )
    found = read(text, "x")
    assert [str(each.workload) for each in found.measured] == [
        "pinned@numa:0 -> device@gpu:0 by cpu[threads=8] of 1000000; "
        "device@gpu:0 -> pinned@numa:0 by sm[cus=120] of 1000000"
    ] * 2
    assert [each.samples.span[0] for each in found.measured] == pytest.approx([5e-5, 4e-5])
    rows = ("SRC,DST,Direction,ReadMode,BW(GB/s),Bytes\nCPU 00,GPU 00,unidirectional,Local,20.00,"
            "1000000\nCPU 00,GPU 00,bidirectional,Remote,40.00,1000000\nCPU 00,CPU 00,"
            "bidirectional,Local,0.00,1000000\n")  # fmt: skip
    by_csv = read(rows, "x")
    assert [len(each.workload.transfers) for each in by_csv.measured] == [1, 2]
    assert not by_csv.unsupported_paths


def all_to_all(seed: int, memory: str = "USE_FINE_GRAIN = 1 : x\n") -> tuple[str, list[float]]:
    rng = random.Random(seed)
    count = rng.randrange(2, 9)
    rates = [[round(rng.uniform(20, 60), 3) for _ in range(count)] for _ in range(count)]
    header = "".join(f" GPU {n:02d}    " for n in range(count))
    lines = [f"SRC\\DST {header}    STotal      Actual"]
    known = []
    for n, row in enumerate(rates):
        cells = ["     N/A" if n == m else f"{rate:8.3f}" for m, rate in enumerate(row)]
        sent = [rate for m, rate in enumerate(row) if m != n]
        known += sent
        lines.append(f"GPU {n:02d} {'   '.join(cells)}   {sum(sent):8.3f}  "
                     f"{min(sent) * len(sent):8.3f}")  # fmt: skip
    lines += ["", f"RTotal {'   '.join(['  99.000'] * (count + 3))}", "",
              "Average   bandwidth (GPU Timed):   40.000 GB/s"]  # fmt: skip
    title = (f"{HEAD}{memory}GPU-GFX All-To-All benchmark:\n==========\n- Copying {SIZE} bytes "
             f"between directly connected pairs of GPUs using 8 CUs ({len(known)} Transfers)\n\n"
             f"Summary: [{SIZE} bytes per Transfer]\n==========\n")  # fmt: skip
    return title + "\n".join(lines) + "\n", known


@pytest.mark.parametrize("seed", range(20))
def test_all_pairs_at_once_are_one_workload(seed: int) -> None:
    text, known = all_to_all(seed)
    found = read(text, "x")
    (one,) = found.measured
    assert not found.unsupported_paths, reasons(found)
    assert one.samples.transfers[0] == pytest.approx([SIZE / rate / 1e9 for rate in known])
    assert one.samples.span[0] == max(one.samples.transfers[0])
    first = one.workload.transfers[0]
    assert str(first.way) == (
        "device[grain=fine]@gpu:0 -> device[grain=fine]@gpu:1 by sm[cus=8,side=push]"
    )
    rng = random.Random(seed)
    for _ in range(20):
        cut = read(text[: rng.randrange(text.index("Summary"), len(text))], "x")
        assert [each.samples for each in cut.measured] in ([], [one.samples])
        assert cut.measured or cut.unsupported_paths


def test_a_summary_repeats_no_test() -> None:
    text, _ = all_to_all(3)
    table = ("Test 1:\n Transfer 00 | 10.000 GB/s | 0.100 ms | 1000000 bytes | F0 -> G0:8 -> F1\n"
             " Aggregate (CPU) | 10.000 GB/s | 0.100 ms | 1000000 bytes |\n\nSummary:")  # fmt: skip
    found = read(text.replace("Summary:", table), "x")
    assert [each.name[:6] for each in found.measured] == ["test 1"]


def test_all_pairs_of_unknown_memory_or_another_mode() -> None:
    text, _ = all_to_all(5, memory="")
    (one,) = read(text, "x").measured
    assert one.workload.transfers[0].path.source.variant == {"grain": "unknown"}
    bare = text[text.index("Summary") :].replace(f": [{SIZE} bytes per Transfer]", ":")
    (other,) = read("TransferBench v1.50\n" + bare, "x").measured
    assert any("size is not in the file" in note for note in other.notes)
    assert other.workload.transfers[0].parameters["cus"] == "unknown"
    read_only, _ = all_to_all(5, memory="A2A_MODE = 1 : x\n")
    assert "only read" in reasons(read(read_only, "x"))


@pytest.mark.parametrize("seed", range(10))
def test_scaling_and_schmoo(seed: int) -> None:
    rng = random.Random(seed)
    rates = [[round(rng.uniform(1, 900), 2) for _ in range(4)] for _ in range(5)]
    rows = "\n".join(f"{n:4d}  {''.join(f'  {rate:7.2f}    ' for rate in row)}"
                     for n, row in enumerate(rates, 1))  # fmt: skip
    text = (f"{HEAD}GPU-GFX Scaling benchmark:\n====\n- Copying {SIZE} bytes from GPU 1 to other "
            f"devices\n- All numbers reported as GB/sec\n\nNumCUs   CPU00        CPU01        "
            f"GPU00        GPU01     \n{rows}\n Best   900.00( 4)\n")  # fmt: skip
    found = read(text, "x")
    assert len(found.measured) == 20
    last = found.measured[-2].workload.transfers[0]
    assert last.way == "device@gpu:1 -> device@gpu:0 by sm[cus=5,side=push]"
    assert found.measured[-2].samples.span[0] == pytest.approx(SIZE / rates[4][2] / 1e9)
    cut = read(text[: text.index("\n Best") - rng.randrange(5, 12)], "x")
    assert {each.samples for each in cut.measured} <= {each.samples for each in found.measured}
    schmoo = (f"{HEAD}Bytes to transfer: {SIZE} Local GPU: 2 Remote GPU: 3\n       | Local Read |\n"
              "     4        10.000        11.000        12.000        13.000        14.000        "
              "15.000  \n     8     1.000\n")  # fmt: skip
    other = read(schmoo, "x")
    assert [str(each.workload) for each in other.measured] == [
        f"device@gpu:2 -> device@gpu:3 by sm[cus=4,side=push] of {SIZE}"
    ]
    assert "time a write" in reasons(other) and "1 figures for 6 columns" in reasons(other)


def test_one_to_all_and_health_check() -> None:
    text = (
        f"{HEAD}Executing (G0 -> G0 -> G*)\n   GPU 1      GPU 2     \n-------\n"
        "    57.060               1 4 (G0 G0 G1)\n"
        "    57.858      55.950   2 4 (G0 G0 G1) (G0 G0 G2)\n"
        "    57.858   2 4 (G0 G0 G1) (G0 G0 G2)\n"
    )
    found = read(text, "x")
    assert [len(each.workload.transfers) for each in found.measured] == [1, 2]
    assert any("size is not in the file" in note for note in found.measured[0].notes)
    assert "1 figures for 2 transfers" in reasons(found)
    health = (
        f"{HEAD}Testing unidirectional host to device copy \n"
        "   GPU 00: Measured  55.20 Limit  48.50\n"
        "   GPU 01: Measured  30.10 Limit  48.50\nFAIL (1 test(s))\n GPU 01: Measured:  30.10 GB/s"
        "      Criteria:  48.50 GB/s\nTesting bidirectional host<->device copies PASS\n"
    )
    checked = read(health, "x")
    assert str(checked.measured[0].workload) == (
        "pinned[near=gpu:0]@numa:0 -> device@gpu:0 by copy-engine[api=hsa] of 268435456"
    )
    assert "bidirectional" in reasons(checked)
    assert len({str(each.workload) for each in checked.measured}) == len(checked.measured) == 2
