"""What nvbandwidth prints says the same as its JSON, to two decimals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import Malformed
from waywiser.exchange.imports.nvbandwidth import read as read_json
from waywiser.exchange.imports.nvbandwidth_text import read
from waywiser.words.number_format import count

FILE = Path(__file__).parent / "data" / "nvbandwidth.txt"
HOST_CASES = ("host_to_device_memcpy_ce", "device_to_host_memcpy_sm", "device_local_copy")
PEER_CASES = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_sm")


def matrix(rng: random.Random, name: str, gpus: int) -> list[list[str]]:
    """Rows of a case's figures, as the tool formats them."""
    if name in PEER_CASES:
        every = range(gpus)
        return [["N/A" if row == column else f"{rng.uniform(20, 400):.2f}" for column in every]
                for row in every]  # fmt: skip
    return [[f"{rng.uniform(5, 60):.2f}" for _ in range(gpus)]]


def as_text(cases: dict[str, list[list[str]]], gpus: int) -> str:
    lines = ["nvbandwidth Version: v0.8", "", "CUDA Runtime Version: 12080",
             "CUDA Driver Version: 12080", "Driver Version: 570.1", ""]  # fmt: skip
    lines += [f"Device {n}: Test GPU (00000000:{n + 1:02x}:00)" for n in range(gpus)]
    for name, rows in cases.items():
        lines += ["", f"Running {name}.", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"]
        lines += ["".join(f"{n:>10}" for n in range(len(rows[0])))]
        lines += [f"{n:>2}" + "".join(f"{cell:>10}" for cell in row) for n, row in enumerate(rows)]
        total = sum(float(cell) for row in rows for cell in row if cell != "N/A")
        lines += ["", f"SUM {name} {total:.2f}"]
    return "\n".join(lines) + "\n"


def as_json(cases: dict[str, list[list[str]]], gpus: int) -> Any:
    return {
        "nvbandwidth": {
            "version": "v0.8",
            "Driver Version": "570.1",
            "CUDA Runtime Version": 12080,
            "GPU Device list": [f"{n}: Test GPU (00000000:{n + 1:02x}:00)" for n in range(gpus)],
            "testcases": [
                {"name": name, "status": "Passed", "bandwidth_matrix": rows}
                for name, rows in cases.items()
            ],
        }
    }


@pytest.mark.parametrize("seed", range(24))
def test_text_and_json_say_the_same(seed: int) -> None:
    rng = random.Random(seed)
    gpus = rng.randint(1, 8)
    names = rng.sample(HOST_CASES + (PEER_CASES if gpus > 1 else ()), rng.randint(1, 3))
    cases = {name: matrix(rng, name, gpus) for name in names}
    (text,) = read(as_text(cases, gpus), "x")
    assert text.measured
    value = read_json(as_json(cases, gpus), "x")
    for field in ("measured", "unsupported_paths", "gpus", "driver", "cuda_driver", "version"):
        assert getattr(text, field) == getattr(value, field)


def test_the_file() -> None:
    (found,) = detect.read(FILE)
    reasons = {each.path: each.reason for each in found.unsupported_paths}
    assert "tensor memory accelerator" in reasons["device_to_device_memcpy_read_tma"]
    assert reasons["multinode_device_to_device_memcpy_read_ce"] == (
        "nvbandwidth waived it: needs several processes"
    )
    names = [each.name for each in found.measured]
    assert names.count("device_to_device_bidirectional_memcpy_write_ce") == 2
    latencies = [each.samples.span[0] for each in found.measured if "latency" in each.name]
    assert latencies == pytest.approx([772.5e-9, 781.25e-9])
    assert [gpu.pci for gpu in found.gpus] == ["0000:1b:00.0", "0000:9c:00.0"]


def test_a_second_run_is_a_file_of_its_own() -> None:
    text = FILE.read_text()
    first, second = read(text + text.replace("55.01", "54.01").replace("109.63", "108.63"), "x")
    assert first.measured[0].samples != second.measured[0].samples
    assert first.measured[1:] == second.measured[1:]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" 0     55.01     54.62", " 0     55.01", "below 2 columns"),
        (" 0     55.01     54.62", " 0     55.01     nan", "no number"),
        (" 0     55.01     54.62\n", "", "did not end"),
        (" 0     55.01     54.62", " 0     55.01     54.62\n 1     1.00     2.00", "2 × 2"),
        (
            "bandwidth (GB/s)\n           0         1\n 0     55",
            "bandwidth (us)\n 0 1\n 0 55",
            "us",
        ),
    ],
)
def test_a_damaged_case_is_listed_and_others_are_kept(old: str, new: str, reason: str) -> None:
    (found,) = read(FILE.read_text().replace(old, new), "x")
    reasons = {each.path: each.reason for each in found.unsupported_paths}
    assert reason in reasons["host_to_device_memcpy_ce"]
    assert len(found.measured) == 6


def test_a_text_without_a_case_is_an_error() -> None:
    with pytest.raises(Malformed, match="no line that begins with Running"):
        read("nvbandwidth Version: v0.8\nDevice 0: Test GPU\n", "x")


@pytest.mark.parametrize("key", ["waived_reason", "reason", "message", "a_new_reason"])
def test_the_reason_of_a_waiver_is_kept(key: str) -> None:
    cases = [
        {"name": "device_local_copy", "status": "Waived", key: "needs more memory"},
        {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["1"]]},
    ]
    found = read_json(json.loads(json.dumps({"nvbandwidth": {"testcases": cases}})), "x")
    assert [each.reason for each in found.unsupported_paths] == [
        "nvbandwidth waived it: needs more memory"
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_case_of_other_gpus_than_the_file_lists_is_listed(seed: int) -> None:
    rng = random.Random(seed)
    listed = rng.randint(2, 6)
    columns = rng.choice([n for n in range(1, 10) if n != listed])
    name = rng.choice(HOST_CASES + PEER_CASES)
    cases = {name: matrix(rng, name, columns), "device_local_copy": matrix(rng, "", listed)}
    if name == "device_local_copy":
        cases = {"host_to_device_memcpy_ce": matrix(rng, "", listed)} | cases
        cases[name] = matrix(rng, name, columns)
    (text,) = read(as_text(cases, listed), "x")
    for found in (text, read_json(as_json(cases, listed), "x")):
        reasons = {each.path: each.reason for each in found.unsupported_paths}
        noted = {each.name for each in found.measured if "columns and" in " ".join(each.notes)}
        if columns < listed:
            it_has = f"it has {columns} columns, and the file lists {count(listed, 'GPU')}"
            assert (reasons, noted) == ({name: it_has}, set())
        else:
            assert (reasons, noted) == ({}, {name})
    unlisted = as_json(cases, listed)
    del unlisted["nvbandwidth"]["GPU Device list"]
    of_list = [
        each for each in read_json(unlisted, "x").unsupported_paths if "lists" in each.reason
    ]
    assert not of_list


def bidirectional_rows(rng: random.Random, gpus: int, once: bool) -> list[list[str]]:
    """Three matrices one below the other; ``once``: both cells of a pair have its only figures."""
    every = range(gpus)
    parts: list[dict[tuple[int, int], float]] = []
    for _ in range(2):
        part = {(r, c): round(rng.uniform(20, 400), 2) for r in every for c in every if r != c}
        parts.append({(r, c): part[min(r, c), max(r, c)] if once else part[r, c] for r, c in part})
    parts.append({key: parts[0][key] + parts[1][key] for key in parts[0]})
    return [["N/A" if r == c else f"{part[r, c]:.2f}" for c in every] for part in parts
            for r in every]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("once", [True, False])
def test_a_pair_that_was_measured_once_is_no_second_block(seed: int, once: bool) -> None:
    rng = random.Random(seed)
    gpus = rng.randint(2, 6)
    rows = bidirectional_rows(rng, gpus, once)
    how = rng.choice(["read_ce", "write_sm"])
    cases = {f"device_to_device_bidirectional_memcpy_{how}": rows}
    (found,) = read(as_text(cases, gpus), "x")
    pairs = [each.workload.identity for each in found.measured]
    assert len(pairs) == gpus * (gpus - 1) // (2 if once else 1)
    assert len(set(pairs)) == gpus * (gpus - 1) // 2
    assert {"measured each pair once" in " ".join(each.notes) for each in found.measured} == {once}
    # the first matrix of row 0 and column 1 goes from GPU 1 to GPU 0
    first = found.measured[0]
    assert [t.path.source.place.index for t in first.workload.transfers] == [0, 1]
    back, there = (first.workload.transfers[n].bytes / first.samples.transfers[0][n] / 1e9
                   for n in (1, 0))  # fmt: skip
    assert (back, there) == pytest.approx((float(rows[0][1]), float(rows[gpus][1])))


def test_what_version_0_10_prints() -> None:
    text = as_text({"host_to_device_memcpy_ce": [["55.59", "55.60"]],
                    "device_local_copy_sm": [["1500.10", "1500.20"]],
                    "device_local_read_sm": [["3000.10", "3000.20"]]}, 2)  # fmt: skip
    text = text.replace("CUDA Driver Version: 12080", "CUDA Driver Version (API): 13.3 (13030)")
    text = text.replace("CUDA Runtime Version: 12080", "CUDA Runtime Version: 13.3 (13030)")
    text = "".join(line for line in text.splitlines(True) if not line.startswith("Device "))
    text += "COEFFICIENT_OF_VARIATION device_local_copy 0.01\n\n"
    text += "Running device_to_device_latency_tma.\nTestcase WAIVED: TMA is not supported\n"
    (found,) = read(text, "x")
    assert (found.cuda_driver, found.driver) == ("13.3", "570.1")
    assert len(found.measured) == 2
    reasons = {each.path: each.reason for each in found.unsupported_paths}
    assert "is not known" in reasons["device_local_copy_sm"]
    assert "only reads memory of one GPU" in reasons["device_local_read_sm"]
    waived = "nvbandwidth waived it: TMA is not supported"
    assert reasons["device_to_device_latency_tma"] == waived


HEAD = "nvbandwidth Version: v0.8\nDriver Version: 570.1\n\nrack2-n5\n"
DEVICES = "".join(f"Device {n}: NVIDIA A30 (00000000:{n + 1:02x}:00)\n" for n in range(3))


def case(name: str, unit: str, *rows: str) -> str:
    what = "->" if name.startswith("host") else "<-"
    title = f"memcpy CE CPU(row) {what} GPU(column) bandwidth{unit}"
    lines = [f"Running {name}.", title, "           0         1         2", *rows]
    return "\n".join([*lines, "", f"SUM {name} 70.00", "", ""])


def stated_in(text: str) -> tuple[dict[str, str], list[float]]:
    """(what is not imported, GB/s of what is imported)."""
    (found,) = read(HEAD + DEVICES + "\n" + text, "x")
    rates = [each.workload.bytes / each.samples.span[0] / 1e9 for each in found.measured]
    return {each.path: each.reason for each in found.unsupported_paths}, rates


GOOD = case("device_to_host_memcpy_ce", " (GB/s)", " 0     22.10     22.20     22.30")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (" 0     23.10     -1.00     23.30", "cannot be read"),
        (" 0     23,10     23,20     23,30", "cannot be read"),
        (" 0     23.10     1e300     23.30", "cannot be read"),
        (" 1     23.10     23.20     23.30", "row 1 stands where row 0 is expected"),
    ],
)
def test_a_row_that_cannot_be_read_is_the_reason(row: str, reason: str) -> None:
    skipped, rates = stated_in(case("host_to_device_memcpy_ce", " (GB/s)", row) + GOOD)
    assert reason in skipped["host_to_device_memcpy_ce"]
    assert rates == pytest.approx([22.1, 22.2, 22.3])


@pytest.mark.parametrize("unit", ["MB/s", "GiB/s", "Gbit/s"])
def test_another_unit_is_not_read_as_gb(unit: str) -> None:
    bad = case("host_to_device_memcpy_ce", f" ({unit})", " 0     23.10     23.20     23.30")
    skipped, rates = stated_in(bad + GOOD)
    assert skipped["host_to_device_memcpy_ce"] == f"its figures are in {unit}, not in GB/s"
    assert len(rates) == 3


def test_a_unit_that_is_not_stated_is_noted() -> None:
    text = case("host_to_device_memcpy_ce", "", " 0     23.10     23.20     23.30")
    (found,) = read(HEAD + DEVICES + "\n" + text, "x")
    assert all("states no unit" in " ".join(each.notes) for each in found.measured)


def test_figures_below_a_damaged_title_are_not_those_of_the_case_above() -> None:
    above = case("host_to_device_memcpy_ce", " (GB/s)", " 0     23.10     23.20     23.30")
    skipped, rates = stated_in(above + GOOD.replace("Running", "Runn?ng"))
    assert skipped == {"device_to_host_memcpy_ce": "the line that begins it is damaged"}
    assert rates == pytest.approx([23.1, 23.2, 23.3])
    unread = above.replace("23.20", "-")
    skipped, rates = stated_in(unread + GOOD.replace("Running", "Runn?ng"))
    assert set(skipped) == {"device_to_host_memcpy_ce", "host_to_device_memcpy_ce"}
    assert rates == []


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_figure_of_zero_is_listed(column: int) -> None:
    cells = ["22.10", "22.20", "22.30"]
    cells[column] = "0.00"
    row = " 0     " + "     ".join(cells)
    skipped, rates = stated_in(case("device_to_host_memcpy_ce", " (GB/s)", row))
    assert skipped == {f"device_to_host_memcpy_ce, row 0, column {column}": "its figure is 0"}
    assert len(rates) == 2


def test_a_case_that_stands_twice_is_imported_once() -> None:
    skipped, rates = stated_in(GOOD + GOOD.replace("22.", "19."))
    assert "twice" in skipped["device_to_host_memcpy_ce, again"]
    assert rates == pytest.approx([22.1, 22.2, 22.3])


def test_the_host_is_named_above_its_devices() -> None:
    (found,) = read(HEAD + DEVICES + "\n" + GOOD, "x")
    assert found.hostname == "rack2-n5"
    (unnamed,) = read(HEAD.replace("rack2-n5\n", "") + DEVICES + "\n" + GOOD, "x")
    assert unnamed.hostname == ""


def test_an_error_of_cuda_is_the_reason() -> None:
    said = "[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc at memcpy.cpp:91"
    skipped, _ = stated_in(f"Running host_to_device_memcpy_ce.\n{said}\n{GOOD}")
    assert skipped["host_to_device_memcpy_ce"] == f"it failed: {said}"


@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("options", ["-b 64", "-b64", "--bufferSize 64", "--bufferSize=64"])
def test_the_command_above_a_run_states_its_buffers(options: str, gpus: int) -> None:
    rng = random.Random(gpus)
    text = as_text({name: matrix(rng, name, gpus) for name in HOST_CASES}, gpus)
    first, second = read(
        f"$ ./nvbandwidth {options} -t host\n{text}$ ./nvbandwidth -v\n{text}", "f"
    )
    for own, usual in zip(first.measured, second.measured, strict=True):
        assert [each.bytes for each in own.workload.transfers] == [64 * 2**20]
        assert own.samples.span[0] * 8 == pytest.approx(usual.samples.span[0])
        assert "command line: 64 MiB" in own.notes[0] and "assumed" in usual.notes[0]


@pytest.mark.parametrize("off", [0.0, 0.01, 700.0, -30.0])
def test_a_sum_that_is_not_that_of_the_figures_is_noted(off: float) -> None:
    text = as_text({"host_to_device_memcpy_ce": [["10.00", "20.00"]]}, 2)
    (found,) = read(text.replace("30.00\n", f"{30 + off:.2f}\n"), "f")
    for each in found.measured:
        said = any(f"add up to 30.00, and its SUM is {30 + off:.2f}" in x for x in each.notes)
        assert said == (abs(off) > 1)
