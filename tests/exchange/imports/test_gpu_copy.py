from __future__ import annotations

import random

import pytest

from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.gpu_copy import BYTES, TITLE, read
from waywiser.words.records import SUMMARY

LINES = {
    "cpu_to_gpu0_by_dma_under_numa1": "pinned@numa:1 -> device@gpu:0 by copy-engine",
    "gpu3_to_cpu_by_sm_under_numa0": "device@gpu:3 -> pinned@numa:0 by sm[grid=by-size]",
    "cpu_to_gpu0_by_dma_under_numa0_uni": "pinned@numa:0 -> device@gpu:0 by copy-engine",
    "gpu1_to_gpu1_by_dma": "device@gpu:1 -> device@gpu:1 by copy-engine",
    "gpu0_to_gpu1_write_by_dma": "device@gpu:0 -> device@gpu:1 by copy-engine[api=async]",
    "gpu0_to_gpu1_read_by_dma":
        "device@gpu:0 -> device@gpu:1 by copy-engine[api=async,by=destination]",
    "gpu0_to_gpu1_write_by_sm": "device@gpu:0 -> device@gpu:1 by sm[grid=by-size,side=push]",
    "gpu0_to_gpu1_read_by_sm": "device@gpu:0 -> device@gpu:1 by sm[grid=by-size]",
    "gpu0_to_gpu1_read_by_sm_under_numa1_uni":
        "device@gpu:0 -> device@gpu:1 by sm[grid=by-size,submit=1]",
    "cpu_to_gpu2_by_gpu2_using_sm_under_numa0": "pinned@numa:0 -> device@gpu:2 by sm[grid=by-size]",
}  # fmt: skip


def reasons(found: ForeignFile) -> str:
    return "\n".join(f"{each.path}: {each.reason}" for each in found.unsupported_paths)


@pytest.mark.parametrize("tag", LINES)
@pytest.mark.parametrize("seed", range(3))
def test_one_way(tag: str, seed: int) -> None:
    rate = random.Random(seed).uniform(1, 900)
    text = f"{tag} {rate:g}\n"
    assert TITLE.search(text)
    (one,) = read(text, "x").measured
    assert str(one.workload) == f"{LINES[tag]} of {BYTES}"
    assert one.samples.span == (pytest.approx(BYTES / rate / 1e9, rel=1e-5),)
    assert one.samples.flags == (SUMMARY,)
    assert any("64 MiB" in note for note in one.notes)


@pytest.mark.parametrize(
    ("tag", "first", "second"),
    [
        ("cpu_and_gpu0_by_dma_under_numa0", "pinned@numa:0 -> device@gpu:0 by copy-engine",
         "device@gpu:0 -> pinned@numa:0 by copy-engine"),
        ("gpu0_and_cpu_by_dma_under_numa0", "pinned@numa:0 -> device@gpu:0 by copy-engine",
         "device@gpu:0 -> pinned@numa:0 by copy-engine"),
        ("gpu0_to_cpu_by_dma_under_numa0_bi", "pinned@numa:0 -> device@gpu:0 by copy-engine",
         "device@gpu:0 -> pinned@numa:0 by copy-engine"),
        ("gpu2_and_gpu1_write_by_sm",
         "device@gpu:1 -> device@gpu:2 by sm[grid=by-size,side=push]",
         "device@gpu:2 -> device@gpu:1 by sm[grid=by-size,side=push]"),
        ("gpu1_and_gpu1_by_dma", "device@gpu:1 -> device@gpu:1 by copy-engine",
         "device@gpu:1 -> device@gpu:1 by copy-engine"),
    ],
)  # fmt: skip
def test_both_ways_have_a_total(tag: str, first: str, second: str) -> None:
    (one,) = read(f"{tag} 50\n", "x").measured
    assert str(one.workload) == f"{first} of {BYTES}; {second} of {BYTES}"
    assert one.samples.span == (pytest.approx(2 * BYTES / 50e9),)
    assert not one.samples.transfers
    assert any("all its transfers together" in note for note in one.notes)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_all_gpus(gpus: int) -> None:
    """Each pair has its part of a buffer, and the rate is that of the slowest GPU."""
    lines = [f"gpu{n}_to_gpu_all_write_by_sm 40" for n in range(gpus)]
    text = "\n".join(
        [*lines, "gpu_all_to_gpu0_write_by_sm 40", "gpu_all_to_gpu_all_write_by_sm 40\n"]
    )
    found = read(text, "x").measured
    assert [len(each.workload.transfers) for each in found] == (
        [gpus - 1] * (gpus + 1) + [gpus * (gpus - 1)]
    )
    for each in found:
        assert {transfer.bytes for transfer in each.workload.transfers} == {BYTES // gpus}
        assert each.samples.span == (pytest.approx((gpus - 1) * (BYTES // gpus) / 40e9),)
    assert len({str(each.workload) for each in found}) == len(found)
    assert "how many GPUs" in reasons(read("gpu_all_to_gpu_all_write_by_sm 40\n", "x"))


def test_the_size_of_a_command_above_is_used() -> None:
    text = (
        "$ ./gpu_copy --size 1048576 --num_loops 3 --sm_copy\ngpu0_to_cpu_by_sm_under_numa0 5\n"
        "$ ./gpu_copy --size=2097152 --num_loops 3 --sm_copy\ngpu0_to_cpu_by_sm_under_numa0 5\n"
    )
    found = read(text, "x").measured
    assert [each.workload.bytes for each in found] == [2**20, 2**21]
    assert not found[0].notes


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("cpu_to_gpu0_by_dma_under_numa0 0", "its figure is 0"),
        ("cpu_to_gpu0_by_dma_under_numa0 0.000", "its figure is 0"),
        ("cpu_to_gpu0_by_dma_under_numa0 nan", "its figure is nan"),
        ("cpu_to_gpu0_by_dma_under_numa0", "its figure is missing"),
        ("cpu_to_gpu0_by_dma_under_numa0 1.2.3", "its figure is 1.2.3"),
        ("cpu_to_gpu0_by_dma_under_numa0 1e99", "no rate"),
        ("cpu_to_gpu0_by_dma 26.2", "NUMA node"),
        ("gpu0_to_gpu1_by_sm 26.2", "neither read nor write"),
        ("cpu_to_cpu_by_sm_under_numa0 26.2", "no GPU"),
        ("cpu_to_gpu0_by_magic_under_numa0 26.2", "unknown copy"),
        ("gpu_all_to_gpu_all_read_by_sm 26.2", "that writes"),
    ],
)
def test_a_bad_line_is_listed_and_the_rest_is_read(line: str, why: str) -> None:
    found = read(f"{line}\ngpu1_to_gpu0_write_by_sm 258\n[INFO] a line of another program\n", "x")
    assert why in reasons(found)
    assert len(found.measured) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_text_cut_off_anywhere_gives_no_other_number(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(f"{tag} {rng.uniform(1, 900):g}\n" for tag in LINES)
    whole = [each.samples for each in read(text, "x").measured]
    for _ in range(20):
        try:
            found = read(text[: rng.randrange(len(text))], "x")
        except Malformed:
            continue
        assert [each.samples for each in found.measured] == whole[: len(found.measured)]


def test_a_text_without_a_path() -> None:
    with pytest.raises(Malformed, match="no line such as"):
        read("nothing", "x")


@pytest.mark.parametrize(
    "damaged", ["cpu_0o_gpu1_by_dma 17.5", "gpu1_to_c", "gpu0_to_gpu1_re", "gpu_a"]
)
def test_a_line_that_begins_as_a_path_is_listed(damaged: str) -> None:
    found = read(f"gpu1_to_gpu1_by_dma 612.5\n{damaged}\nsome other line 3.5\n", "x")
    assert len(found.measured) == 1
    assert [each.path for each in found.unsupported_paths] == [damaged]
