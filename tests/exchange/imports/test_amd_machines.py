"""Machines that are known from TransferBench alone: what is shown of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from exchange.imports.transferbench_texts import Moved, peer_matrix, written
from machine.captured import CAPTURES
from parts_of_check import PEERS, part_of
from waywiser.cli import run
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile

Output = pytest.CaptureFixture[str]

GPUS = 4


def node(folder: Path, seed: int, slow: float = 1.0) -> Path:
    """A profile of copies between each GPU and the host and from each GPU to the next, of which
    that from gpu:2 to gpu:3 has ``slow`` times the bandwidth."""
    rng = random.Random(seed)
    tests = []
    for size in (2**12, 2**20, 2**28):
        for gpu in range(GPUS):
            for source, to in ((f"C{gpu // 2}", f"G{gpu}"), (f"G{gpu}", f"G{(gpu + 1) % GPUS}")):
                rate = 48.5 * (slow if (source, to) == ("G2", "G3") else 1.0)
                usual = 0.008 + size / 1e6 / rate
                times = tuple(usual * rng.uniform(0.999, 1.001) for _ in range(8))
                tests.append([Moved(source, "D", gpu, 1, to, size, times)])
    (folder / f"{seed}.txt").write_text(written("text 1.62", tests, shown=True))
    target = folder / f"{seed}.wwp"
    import_files([folder / f"{seed}.txt"], target, machine=f"node{seed}")
    return target


NVIDIA = ("cuda", "CUDA", "NVLink", "NVML", "multiprocessor", "NVIDIA")


def test_words_are_those_of_amds_runtime(tmp_path: Path, capsys: Output) -> None:
    matrix, _ = peer_matrix(random.Random(1), 2, GPUS)
    (tmp_path / "p2p.txt").write_text(f"Bytes Per Direction 67108864\n{matrix}")
    node(tmp_path, 1)
    file = str(tmp_path / "both.wwp")
    import_files([tmp_path / "1.txt", tmp_path / "p2p.txt"], Path(file))
    for arguments in (["show", file], ["show", "--all", file], ["topology", file],
                      ["report", "--format", "md", "--all", file]):  # fmt: skip
        assert run(arguments) == 0
        out = capsys.readouterr().out
        assert not [word for word in NVIDIA if word in out], out
        assert "hipMemcpyAsync" in out or arguments[0] == "topology"


def test_a_slow_link_is_found_among_its_peers(tmp_path: Path, capsys: Output) -> None:
    files = [str(node(tmp_path, seed, 0.9 if seed == 3 else 1.0)) for seed in range(10)]
    assert run(["check", *files]) == 1
    out = capsys.readouterr().out
    assert part_of(out, PEERS)[0] == "1 suspect, 9 fine of 10 hosts"
    assert "device@gpu:2 -> device@gpu:3 by copy-engine[api=async]" in out
    run(["compare", files[1], files[3]])
    out = capsys.readouterr().out
    assert "device@gpu:2 -> device@gpu:3 by copy-engine[api=async]" in out
    assert run(["report", "--format", "md", files[3]]) == 0
    out = capsys.readouterr().out
    assert "The link between gpu:2 and gpu:3 is slow" in out
    assert run(["report", "--format", "md", files[1]]) == 0
    assert "is slow" not in capsys.readouterr().out


def test_memory_near_a_gpu_is_placed_by_a_topology(tmp_path: Path) -> None:
    row = (
        "Test {0}:\n Transfer 00 | 10.000 GB/s | 0.100 ms | 1000000 bytes | P{0} -> D0:1 -> G0\n"
        " Aggregate (CPU) | 10.000 GB/s | 0.100 ms | 1000000 bytes | Overhead\n"
    )
    file = tmp_path / "a.txt"
    file.write_text("TransferBench v1.69.00\n" + "".join(map(row.format, range(4))))
    import_files([file], tmp_path / "a.wwp")
    with Profile.open(tmp_path / "a.wwp") as profile:
        texts = {str(each.transfers[0].path.source) for each in profile.workloads()}
        assert texts == {f"pinned[near=gpu:{gpu}]@numa:0" for gpu in range(4)}
    capture = CAPTURES / "two-socket-4gpu.json"
    import_files([file], tmp_path / "b.wwp", topology=capture)
    with Profile.open(tmp_path / "b.wwp") as profile:
        nodes = {gpu.numa for gpu in profile.machine.gpus}
        texts = {str(each.transfers[0].path.source) for each in profile.workloads()}
        assert texts == {f"pinned@numa:{node}" for node in nodes}


def test_copies_within_a_gpu_at_once_accuse_no_link(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "a.log"
    file.write_text(
        "".join(
            f"gpu{n}_to_gpu{n}_by_dma {650 + n}\ngpu{n}_and_gpu{n}_by_dma {660 + n}\n"
            for n in range(4)
        )
    )
    import_files([file], tmp_path / "a.wwp")
    assert run(["report", "--format", "md", str(tmp_path / "a.wwp")]) == 0
    out = capsys.readouterr().out
    assert "slot" not in out and "<->" not in out
