from __future__ import annotations

from pathlib import Path

import pytest

from exchange.imports.shared_files import shared
from waywiser.curves.overview import Overview, overview
from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import EmptyFile, Malformed
from waywiser.exchange.imports.profiles import Imported, import_files
from waywiser.profile import Profile
from waywiser.stats.order import median


def imported(name: str, folder: Path) -> tuple[Imported, Overview]:
    target = folder / "a.wwp"
    found = import_files([shared(name)], target)
    with Profile.open(target) as profile:
        return found, overview(profile)


def test_every_file_of_the_dgx_1_is_read_or_found_to_be_empty() -> None:
    empty = []
    for path in sorted(shared("dgx-1").iterdir()):
        try:
            found = detect.read(path)[0]
        except EmptyFile:
            empty.append(path.name)
        else:
            assert found.measured and not found.unsupported_paths, path
    assert empty == ["dgx-1-UM_Latency_GPUToGPU-1-0.json", "dgx-1-shared.json"]


def test_the_dgx_1_is_one_machine(tmp_path: Path) -> None:
    found, seen = imported("dgx-1", tmp_path)
    assert len(found.files) == 204 and len(found.unsupported_paths) == 2
    assert [gpu.index for gpu in found.machine.gpus] == list(range(8))
    assert [node.index for node in found.machine.numa] == [0, 1]
    assert found.machine.gpus[0].peers == (1, 2, 3, 4)  # of the cube mesh, those with a link
    assert seen.summary.series == found.series == 5080
    lines = {line.text: line for line in seen.series}
    line = lines["pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync] of 256"]
    assert line.estimate is not None and line.mode == "device"
    assert line.estimate.count == 5 and line.estimate.interval is None
    assert line.estimate.median == pytest.approx(10912.853561946433e-9)
    expected = {
        "device@gpu:0 -> device@gpu:3 by copy-engine[api=sync,peer=off,submit=1] of 1048576",
        "device@gpu:0 -> device@gpu:4 by copy-engine[api=sync] of 1048576",
        "pageable@numa:1 -> pinned@numa:0 by copy-engine[api=sync] of 8589934592",
        "write-combined@numa:1 -> device@gpu:7 by copy-engine[api=sync] of 1024",
        "managed@gpu:5 -> managed@numa:1 by page-fault of 4096",
        "managed@gpu:0 -> managed@gpu:7 by prefetch of 2147483648",
        "page-fault-latency[stride=1048576]@numa:0",
    }
    assert expected <= set(lines)
    assert lines["managed@gpu:5 -> managed@numa:1 by page-fault of 4096"].mode == "host"


def test_frontiers_good_file_keeps_every_repetition(tmp_path: Path) -> None:
    found, seen = imported("frontier/hipMemcpyAsync_PinnedToGPU.json", tmp_path)
    assert found.machine.hostname == "frontier08191"
    assert len(seen.series) == 23 and {line.cache for line in seen.series} == {"dirtied"}
    with Profile.open(tmp_path / "a.wwp") as profile:
        visits = list(profile.visits())
    assert {len(visit.samples) for visit in visits} == {5}
    first = visits[0].samples
    assert first.span[0] == pytest.approx(1.29851569551622e-05)
    assert first.repetitions == (53841,) * 5
    assert visits[0].started == "2023-10-09T21:41:29+00:00"
    assert median(first.span) == seen.series[0].estimate.median  # type: ignore[union-attr]


def test_frontiers_truncated_file_leaves_nothing(tmp_path: Path) -> None:
    path = shared("frontier/implicit_managed_HostWrGPU_coarse.json")
    with pytest.raises(Malformed, match=r"coarse\.json:\d+: the file ends in the middle"):
        import_files([path], tmp_path / "a.wwp")
    assert list(tmp_path.iterdir()) == []


def test_nvbandwidths_matrices_become_paths(tmp_path: Path) -> None:
    found, seen = imported("nvbandwidth/4x-rtx5090-v0.8.json", tmp_path)
    assert [gpu.pci for gpu in found.machine.gpus] == [
        "0000:0c:00.0", "0000:22:00.0", "0000:b2:00.0", "0000:e0:00.0"
    ]  # fmt: skip
    assert (found.machine.hostname, found.machine.cuda_driver) == ("nf5468-m7", "12.8")
    assert all("waived" in unsupported.reason for unsupported in found.unsupported_paths)
    lines = {line.text: line for line in seen.series}
    rate = {text: line.estimate.rate.value / 1e9 for text, line in lines.items()
            if line.estimate and line.estimate.rate}  # fmt: skip
    size = 512 * 2**20
    assert rate[f"pinned@numa:0 -> device@gpu:2 by copy-engine of {size}"] == pytest.approx(56.3944)
    assert rate[f"device@gpu:1 -> pinned@numa:0 by copy-engine of {size}"] == pytest.approx(56.9175)
    duplex = next(line for line in seen.series
                  if line.name == "pinned@numa:0 <-> device@gpu:0 by copy-engine")  # fmt: skip
    assert [each / 1e9 for each in duplex.transfer_rates] == pytest.approx([44.3294, 44.1853])
    latency = lines["sm-latency[bytes=2097152,memory=host-alloc:0]@gpu:0"]
    assert latency.estimate is not None and latency.estimate.summary
    assert latency.estimate.median == pytest.approx(574.737e-9)


@pytest.mark.parametrize(
    ("name", "path", "rate"),
    [
        ("osu/08_docs-software-communication-openmpi-md_L187.txt",
         "pageable@numa:0 -> pageable@numa:1 by mpi[test=bw]", 23982.18),
        ("osu/10_docs-software-communication-openmpi-md_L249.txt",
         "device@gpu:0 -> device@gpu:1 by mpi[test=bw]", 23989.54),
    ],
)  # fmt: skip
def test_osus_table_is_a_curve_of_summaries(
    name: str, path: str, rate: float, tmp_path: Path
) -> None:
    _, seen = imported(name, tmp_path)
    assert len(seen.series) == 23 and {line.curve for line in seen.series} == {path}
    last = seen.series[-1].estimate
    assert last is not None and last.rate is not None and last.interval is None
    assert last.rate.value == pytest.approx(rate * 1e6)
    assert {flag.kind for flag in last.quality_flags} == {"summary only"}
