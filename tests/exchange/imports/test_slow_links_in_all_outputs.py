"""One slow link in other tools' results: named first, by every output, and no other is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.verb_output import Output, output

SIZES = [2**n for n in range(12, 29, 4)]


def benchmark(name: str, ids: tuple[int, ...], rate: float, size: int) -> dict[str, object]:
    """A benchmark of Comm|Scope at ``rate`` GB/s after 8 µs."""
    nanoseconds = 8000 + size / rate
    places = "/".join(map(str, ids))
    return {
        "name": f"Comm_{name}/{places}/log2(N):{size.bit_length() - 1}/manual_time",
        "run_type": "iteration",
        "iterations": 100,
        "real_time": nanoseconds,
        "cpu_time": nanoseconds,
        "time_unit": "ns",
        "bytes": float(size),
        "bytes_per_second": size / nanoseconds * 1e9,
    }


def profile(
    folder: Path,
    to_gpu: Callable[[int], float],
    between: Callable[[int, int], float],
    capsys: Output,
    gpus: int = 4,
) -> str:
    """A profile of Comm|Scope's copies, whose sources in host memory are written before each."""
    made = [
        benchmark("cudaMemcpyAsync_PinnedToGPU", (0, gpu), to_gpu(gpu), size)
        for gpu in range(gpus)
        for size in SIZES
    ]
    made += [
        benchmark("cudaMemcpyPeerAsync_GPUToGPUPeer", (one, other), between(one, other), size)
        for one in range(gpus)
        for other in range(gpus)
        for size in SIZES
        if one != other
    ]
    document = {"context": {"host_name": "node4"}, "benchmarks": made}
    (folder / "made.json").write_text(json.dumps(document))
    file = str(folder / "made.wwp")
    output(["import", str(folder / "made.json"), "-o", file], capsys)
    return file


def outputs(file: str, capsys: Output) -> tuple[str, str]:
    shown = output(["show", file], capsys)
    return shown, output(["report", file, "--format", "md", "-o", "-"], capsys)


@pytest.mark.parametrize(("slow", "share"), [(0, 41), (2, 63)])
def test_a_link_to_the_host_is_found_though_its_source_was_written_before_each_copy(
    slow: int, share: int, tmp_path: Path, capsys: Output
) -> None:
    rates = {gpu: 21.7 + 0.01 * gpu for gpu in range(4)} | {slow: 21.7 * share / 100}
    file = profile(tmp_path, rates.__getitem__, lambda *_: 70.0, capsys)
    shown, report = outputs(file, capsys)
    said = f"the link of gpu:{slow} to the host is slower than those of the others"
    assert said in shown.splitlines()[1]
    assert f"1. **problem:** gpu:{slow}'s link to the host is slow" in report
    assert "equivalent within 3%." not in report.partition("## Headline")[0]
    assert "4: " in next(line for line in shown.splitlines() if line.startswith("H2D, "))
    table = shown.partition("GPU links to the host")[2].partition("GB/s at")[0]
    others = [line for line in table.splitlines()[1:] if not line.startswith(f"gpu:{slow} ")]
    assert [line.split()[-1] for line in others if line] == ["equivalent"] * 3


@pytest.mark.parametrize("gpus", [4, 6])
@pytest.mark.parametrize("share", [55, 78])
def test_both_directions_of_one_slow_link_do_not_hide_each_other(
    gpus: int, share: int, tmp_path: Path, capsys: Output
) -> None:
    def between(one: int, other: int) -> float:
        usual = 88.0 + 0.02 * (one + 2 * other)
        return usual * share / 100 if {one, other} == {0, 3} else usual

    file = profile(tmp_path, lambda _: 21.7, between, capsys, gpus)
    shown, report = outputs(file, capsys)
    assert shown.splitlines()[1].startswith("the link between gpu:0 and gpu:3 is slower than")
    assert "1. **" in report and "The link between gpu:0 and gpu:3 is slow" in report
    assert report.count("is slow:") == 1


def test_links_of_several_kinds_are_no_slow_links(tmp_path: Path, capsys: Output) -> None:
    """Half of the pairs have a bridge: without a topology nobody knows which are right."""

    def between(one: int, other: int) -> float:
        return 101.0 if one // 2 == other // 2 else 19.5 + 0.1 * one

    file = profile(tmp_path, lambda _: 21.7, between, capsys)
    shown, report = outputs(file, capsys)
    assert "slower" not in shown
    assert "is slow" not in report


def test_copies_within_a_gpu_are_not_checked_by_its_slot(tmp_path: Path, capsys: Output) -> None:
    text = "nvbandwidth Version: v0.7\nDriver Version: 560.35.03\n\n"
    text += "".join(f"Device {n}: NVIDIA L40S (00000000:{n + 1:02x}:00)\n" for n in range(5))
    text += "\nRunning device_local_copy.\nmemcpy local GPU(column) bandwidth (GB/s)\n"
    text += "           0         1         2         3         4\n"
    text += " 0    312.40    312.61    250.02    312.55    312.48\n\n"
    text += "SUM device_local_copy 1500.06\n"
    (tmp_path / "local.txt").write_text(text)
    file = str(tmp_path / "local.wwp")
    output(["import", str(tmp_path / "local.txt"), "-o", file], capsys)
    _, report = outputs(file, capsys)
    assert "gpu:2's memory is slow" in report
    assert "clocks, MIG mode, ECC errors" in report
    assert "slot" not in report and "cables" not in report
