"""Tests of TransferBench's configuration files, as its versions print them."""

from __future__ import annotations

import random
import re

import pytest

from exchange.imports.transferbench_texts import STYLES, Moved, invented, workload, written
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, Malformed
from waywiser.exchange.imports.transferbench import TITLE, read
from waywiser.words.records import SUMMARY

SEEDS = range(6)
EXAMPLES = [(style, seed) for style in STYLES for seed in SEEDS]


def made(style: str, seed: int, tests: int = 4) -> list[list[Moved]]:
    rng = random.Random(f"{style} {seed}")
    return [invented(rng, STYLES[style][2]) for _ in range(tests)]


def by_workload(found: ForeignFile) -> dict[str, list[ForeignSeries]]:
    series: dict[str, list[ForeignSeries]] = {}
    for each in found.measured:
        series.setdefault(str(each.workload), []).append(each)
    return series


def reasons(found: ForeignFile) -> str:
    return "\n".join(f"{each.path}: {each.reason}" for each in found.unsupported_paths)


@pytest.mark.parametrize(("style", "seed"), EXAMPLES)
def test_every_version_gives_each_test_with_its_mean(style: str, seed: int) -> None:
    tests = made(style, seed)
    text = written(style, tests, shown=False)
    assert TITLE.search(text)
    found = read(text, "x")
    assert not found.unsupported_paths, reasons(found)
    assert [str(each.workload) for each in found.measured] == [workload(test) for test in tests]
    for each, test in zip(found.measured, tests, strict=True):
        assert each.samples.flags == (SUMMARY,)
        assert each.samples.transfers == (
            pytest.approx(tuple(moved.mean * 1e-3 for moved in test), rel=5e-3),
        )
        assert each.samples.span[0] >= max(each.samples.transfers[0])
        assert each.mode == ("host" if any(m.executor == "C" for m in test) else "device")


@pytest.mark.parametrize(("style", "seed"), [each for each in EXAMPLES if STYLES[each[0]][3]])
def test_iterations_are_samples_in_running_order(style: str, seed: int) -> None:
    tests = made(style, seed)
    found = read(written(style, tests, shown=True, warmups=0), "x")
    assert not found.unsupported_paths, reasons(found)
    for each, test in zip(found.measured, tests, strict=True):
        times = list(zip(*(moved.times for moved in test), strict=True))
        if each.samples.flags == (SUMMARY,):  # transfers whose slowest iterations do not meet
            assert len(test) > 1 and any("not run all at once" in note for note in each.notes)
            continue
        assert each.samples.flags == (0,) * 5
        assert each.samples.repetitions == (1,) * 5
        assert each.samples.span == pytest.approx([max(t) * 1e-3 for t in times], rel=5e-3)
        for sample, own in zip(each.samples.transfers, times, strict=True):
            assert sample == pytest.approx([time * 1e-3 for time in own], rel=5e-3)
        assert "no warm-up preceded the first sample" in each.notes


@pytest.mark.parametrize(("style", "seed"), EXAMPLES)
def test_a_file_cut_off_anywhere_gives_no_other_number(style: str, seed: int) -> None:
    text = written(style, made(style, seed), shown=STYLES[style][3])
    whole = by_workload(read(text, "x"))
    rng = random.Random(seed)
    for _ in range(30):
        try:
            found = read(text[: rng.randrange(len(text))], "x")
        except Malformed:
            continue
        for each in found.measured:
            assert each.samples in [known.samples for known in whole[str(each.workload)]]


@pytest.mark.parametrize(("style", "seed"), EXAMPLES)
def test_a_damaged_line_loses_its_test_alone(style: str, seed: int) -> None:
    tests = made(style, seed)
    text = written(style, tests, shown=False)
    lines = text.splitlines()
    rng = random.Random(seed)
    rows = [n for n, line in enumerate(lines)
            if re.match(r"^\s*Transfer\s+\d|^\d+,\d", line)]  # fmt: skip
    for n in rng.sample(rows, min(4, len(rows))):
        damaged = [*lines]
        damaged[n] = re.sub(r"(\d\.\d{3})", rng.choice(("?", "1.2.3", "")), lines[n], count=1)
        found = read("\n".join(damaged) + "\n", "x")
        assert len(found.measured) == len(tests) - 1
        assert re.search("damaged|one of them is wrong", reasons(found))


@pytest.mark.parametrize("seed", range(20))
def test_changed_digits_are_noticed_or_rounding(seed: int) -> None:
    rng = random.Random(seed)
    style = rng.choice([style for style in STYLES if style != "text 1.02"])
    text = written(style, made(style, seed, 2), shown=STYLES[style][3])
    whole = {str(each.workload): each for each in read(text, "x").measured}
    figures = list(re.finditer(r"\d+\.\d{3}(?= *GB/s(?! *\(sum))", text))
    for match in rng.sample(figures, min(8, len(figures))):
        other = f"{float(match[0]) * rng.choice((0.3, 3, 10)):.3f}"
        found = read(text[: match.start()] + other + text[match.end() :], "x")
        for each in found.measured:
            before = whole[str(each.workload)]
            same = each.samples == before.samples
            assert same or len(each.notes) > len(before.notes) or _is_executor(text, match.start())


def _is_executor(text: str, at: int) -> bool:
    """Whether the figure is of an executor, whose time no other figure repeats."""
    return "Executor" in text[text.rfind("\n", 0, at) : at]


def only(text: str, version: str = "1.62.00") -> ForeignFile:
    return read(f"TransferBench v{version}\n{text}", "x")


ROW = (
    "Test 1:\n     Transfer 00  |  10.000 GB/s |    0.100 ms |      1000000 bytes | {}\n"
    " Aggregate (CPU)  |  10.000 GB/s |    0.100 ms |      1000000 bytes | Overhead: 0.0 ms\n"
)


@pytest.mark.parametrize(
    ("route", "version", "expected"),
    [
        ("G0 -> G000:004 -> G1", "1.62", "device@gpu:0 -> device@gpu:1 by sm[cus=4,side=push]"),
        ("G0 -> G001:004 -> G1", "1.62", "device@gpu:0 -> device@gpu:1 by sm[cus=4]"),
        ("G0 -> D001:001 -> G1", "1.62",
         "device@gpu:0 -> device@gpu:1 by copy-engine[api=async,by=destination]"),
        ("G3 -> D3.2:1 -> C1", "1.66", "device@gpu:3 -> pinned@numa:1 by copy-engine[engine=2]"),
        ("B0 -> G0:8 -> G0", "1.66", "pinned[grain=fine]@numa:0 -> device@gpu:0 by sm[cus=8]"),
        ("D0 -> D0:1 -> G0", "1.66", "pinned[grain=coarse]@numa:0 -> device@gpu:0 by copy-engine"),
        ("K0 -> D0:1 -> G0", "1.66", "pinned[cached=no]@numa:0 -> device@gpu:0 by copy-engine"),
        ("H1 -> D0:1 -> G0", "1.66", "pageable@numa:1 -> device@gpu:0 by copy-engine"),
        ("U1 -> D0:1 -> G0", "1.65.9", "pageable@numa:1 -> device@gpu:0 by copy-engine"),
        ("U0 -> D0:1 -> G1", "1.66.0",
         "device[cached=no]@gpu:0 -> device@gpu:1 by copy-engine[api=async]"),
        ("F2 -> G2:16 -> F2", "1.62",
         "device[grain=fine]@gpu:2 -> device[grain=fine]@gpu:2 by sm[cus=16]"),
        ("G5 -> D5:1 -> P2", "1.69", "device@gpu:5 -> pinned[near=gpu:2]@numa:0 by copy-engine"),
        ("C0 -> C1:4 -> C1", "1.62", "pinned@numa:0 -> pinned@numa:1 by cpu[threads=4]"),
        ("C1 -> C1:1 -> C0", "1.62", "pinned@numa:1 -> pinned@numa:0 by cpu[side=push]"),
        ("C0 -> C0:16 -> G7", "1.62", "pinned@numa:0 -> device@gpu:7 by cpu[threads=16]"),
        ("R0G0 -> R0G0:4 -> R0C0", "1.66", "device@gpu:0 -> pinned@numa:0 by sm[cus=4]"),
    ],
)  # fmt: skip
def test_letters_and_executors(route: str, version: str, expected: str) -> None:
    found = only(ROW.format(route), version)
    assert [str(each.workload) for each in found.measured] == [f"{expected} of 1000000"]


@pytest.mark.parametrize(
    ("route", "why"),
    [
        ("N -> GPU00:032 -> G0", "null memory"),
        ("C0 -> CPU00:004 -> N", "null memory"),
        ("G0 -> GPU00:016 -> G0G1", "several"),
        ("G0G1 -> GPU02:016 -> G2", "several"),
        ("C1 -> G002:004 -> C0", "gpu:2, at neither end"),
        ("G0 -> G002:004 -> G1", "gpu:2, at neither end"),
        ("G0 -> C000:004 -> G1", "the CPUs of numa:0, at neither end"),
        ("F0 -> I0.2:1 -> F1", "network adapter"),
        ("F0 -> N0.1:1 -> F1", "network adapter"),
        ("G0 -> B0:4 -> G1", "batches"),
        ("G0 -> T0:4 -> G1", "tensor data mover"),
        ("G0 -> Q0:4 -> G1", "the executor Q is not known"),
        ("M0 -> G0:4 -> G1", "managed memory"),
        ("Z0 -> G0:4 -> G0", "the memory Z is not known"),
        ("R0G0 -> R0G0:4 -> R12G1", "another machine"),
        ("R1G0 -> R1G0:4 -> R1G1", "another machine"),
        ("G9999 -> D0:1 -> G0", "no machine"),
        ("G0 - D0:1 - G1", "damaged"),
    ],
)
def test_what_has_no_counterpart_is_listed_and_the_rest_is_read(route: str, why: str) -> None:
    good = ROW.format("G0 -> D000:001 -> G1").replace("Test 1", "Test 2")
    found = only(ROW.format(route) + good)
    assert why in reasons(found)
    assert [each.name[:6] for each in found.measured] == ["test 2"]


def test_uncached_or_unpinned_is_not_guessed_without_a_version() -> None:
    with_u = ROW.format("U0 -> D000:001 -> G0") + ROW.format("C0 -> D000:001 -> G0")
    found = read(with_u, "x")
    assert "does not name its version" in reasons(found)
    assert len(found.measured) == 1


def test_other_settings_are_another_method() -> None:
    settings = {"GFX_UNROLL": 8, "GFX_BLOCK_SIZE": 512, "USE_HSA_DMA": 1, "BYTE_OFFSET": 64}
    head = "".join(f"{key:<20} = {value:12d} : text\n" for key, value in settings.items())
    found = only(head + ROW.format("G0 -> G0:4 -> C0") + ROW.format("G0 -> D0:1 -> C0"))
    kernel, engine = (each.workload.transfers[0] for each in found.measured)
    assert kernel.parameters == {"cus": "4", "unroll": "8", "block": "512", "offset": "64"}
    assert engine.parameters == {"api": "hsa", "offset": "64"}
    usual = only(head.replace(" 8 :", " 4 :") + ROW.format("G0 -> G0:4 -> C0")).measured[0]
    assert "unroll" not in usual.workload.transfers[0].parameters


def test_runs_of_one_file_have_their_own_settings() -> None:
    one = "TransferBench v1.62.00\nGFX_UNROLL           =            {} : text\n"
    text = (
        one.format(2)
        + ROW.format("G0 -> G0:4 -> C0")
        + one.format(4)
        + ROW.format("G0 -> G0:4 -> C0")
    )
    unrolls = [
        each.workload.transfers[0].parameters.get("unroll") for each in read(text, "x").measured
    ]
    assert unrolls == ["2", None]


def test_old_copies_of_the_runtime_are_copies_of_the_runtime() -> None:
    head = "USE_HIP_CALL         =            1 : text\n"
    found = only(head + ROW.format("G00 -> GPU00:004 -> C00"), "1.09")
    assert str(found.measured[0].workload.transfers[0].path.executor) == "copy-engine"
    assert not found.measured[0].workload.transfers[0].parameters


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("USE_MEMSET           =            1 : x\n", "fills memory"),
        ("NUM_SUBITERATIONS    =            4 : x\n", "an iteration is 4 copies"),
    ],
)
def test_settings_with_which_a_figure_means_something_else(head: str, why: str) -> None:
    found = only(head + ROW.format("G0 -> G0:4 -> C0"))
    assert not found.measured and why in reasons(found)


def test_time_by_the_host_is_called_so() -> None:
    head = "USE_HIP_EVENTS       =            0 : text\n"
    assert only(head + ROW.format("G0 -> D0:1 -> C0")).measured[0].mode == "host"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (ROW.format("G0 -> D0:1 -> C0").replace("0.100 ms", "0.500 ms", 1), "not of the same"),
        (ROW.format("G0 -> D0:1 -> C0").replace("10.000", "0.000").replace("0.100", "0.000"),
         "its figure is 0"),
        (ROW.format("G0 -> D0:1 -> C0").replace("10.000", "inf", 1), "its figure is inf"),
        (ROW.format("G0 -> D0:1 -> C0").replace("1000000 bytes", "0 bytes"), "0 bytes"),
        (ROW.format("G0 -> D0:1 -> C0").replace("1000000 bytes", "1000004 bytes", 1), "missing"),
        (ROW.format("G0 -> D0:1 -> C0").rsplit("\n", 2)[0] + "\n", "cut off"),
        (ROW.format("G0 -> D0:1 -> C0") .replace("Transfer 00", "Transfer 0x"), "no transfer"),
    ],
)  # fmt: skip
def test_figures_that_are_none(row: str, why: str) -> None:
    good = ROW.format("G1 -> D001:001 -> G0").replace("Test 1", "Test 2")
    found = only(row + good)
    assert why in reasons(found)
    assert len(found.measured) == 1


def test_the_more_precise_of_rate_and_time_is_used() -> None:
    text = ROW.format("G0 -> D0:1 -> C0").replace("10.000", " 0.205").replace("0.100", "0.005")
    (one,) = only(text.replace("1000000", "1024")).measured
    assert one.samples.span == (pytest.approx(1024 / 0.205e9),)
    slow = ROW.format("G0 -> D0:1 -> C0").replace("10.000", " 0.010").replace("0.100", "97.123")
    (other,) = only(slow).measured
    assert other.samples.span == (pytest.approx(97.123e-3),)


def test_transfers_that_ran_one_after_the_other() -> None:
    """Two copies of 1 ms on one executor that took 2 ms: no sample may say 1 ms."""
    lines = ["Test 1:", " Executor: DMA 00 |   1.000 GB/s |    2.000 ms |      2000000 bytes"]
    for n in range(2):
        lines.append(
            f"  Transfer {n:02d} | 1.000 GB/s | 1.000 ms | 1000000 bytes | G0 -> D0:1 -> G{n + 1}"
        )
        lines += [f"   Iter {i:03d} | 1.000 GB/s | 1.000 ms |" for i in (2, 1)]
    lines.append(" Aggregate (CPU) | 1.000 GB/s | 2.000 ms | 2000000 bytes | Overhead: 0.0 ms")
    (one,) = only("\n".join(lines) + "\n").measured
    assert one.samples.span == (pytest.approx(2e-3),)
    assert one.samples.flags == (SUMMARY,)
    assert any("did not run all at once" in note for note in one.notes)


@pytest.mark.parametrize("gone", range(1, 6))
def test_a_missing_or_damaged_iteration_is_counted(gone: int) -> None:
    times = tuple(1.0 + n / 100 for n in range(5))
    moved = Moved("G0", "D", 0, 1, "G1", 2**20, times)
    lines = written("text 1.62", [[moved]], shown=True).splitlines()
    row = next(n for n, line in enumerate(lines) if f"Iter {gone:03d}" in line)
    left = [time * 1e-3 for n, time in enumerate(times, 1) if n != gone]
    for other in ([], [lines[row].replace(" ms", " m")], [lines[row].replace("GB/s", "9 GB/s")]):
        (one,) = read("\n".join([*lines[:row], *other, *lines[row + 1 :]]) + "\n", "x").measured
        assert one.samples.span == pytest.approx(left, rel=1e-3)
        assert any("1 iterations were skipped" in note for note in one.notes)


def test_what_the_tool_says_went_wrong() -> None:
    wrong = ROW.format("G0 -> D0:1 -> C0").replace(
        "Test 1:\n", "Test 1:\n\n[ERROR] Unexpected mismatch at index 5 of destination array 0:\n"
    )
    found = only(wrong + ROW.format("G0 -> D0:1 -> C1").replace("Test 1", "Test 2"))
    failed, good = found.measured
    assert failed.failure is not None and failed.failure.kind == "wrong-bytes"
    assert good.failure is None
    assert "[ERROR] Unexpected mismatch" in reasons(found)
    warned = "[WARN] DMA 0 attempting 7 parallel transfers\n" + ROW.format("G0 -> D0:1 -> C0")
    assert "DMA 0 attempting 7 parallel transfers" in only(warned).measured[0].notes


def test_a_text_without_results() -> None:
    with pytest.raises(Malformed, match="no result of TransferBench"):
        read("TransferBench v1.50\n===\nUsage: TransferBench config <N>\n", "x")
    found = read("TransferBench v1.66.00\n[P2P Network Related]\n NIC 0 | 12.3\n", "x")
    assert reasons(found) == "the preset P2P Network: its table is not read"
