"""Headings and captions above tables whose command is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.imports.test_run_commands import runs
from exchange.imports.test_run_labels import TABLE, series
from waywiser.exchange.imports.run_labels import REPEATED
from waywiser.exchange.imports.said_settings import headings, hosts_above


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Same switch:", "Two switches:"),
        ("## Same switch\n```", "## Two switches\n```"),
        ("rome3 | SUCCESS | rc=0 >>", "rome4 | SUCCESS | rc=0 >>"),
        ("-----\nrome3\n-----", "-----\nrome4\n-----"),
        ("GPU 0 and GPU 1, run 1", "GPU 0 and GPU 2, run 2"),
        ("# UCX 1.15", "# UCX 1.17"),
        ("Same switch\n[rome3:12] WARNING: no CMA", "Two switches\n[rome3:13] WARNING: no CMA"),
        ("`mpirun -np 2 --bind-to core all_reduce_perf`", "`mpirun -np 2 all_reduce_perf`"),
        ("Nodes: rome[3-4]", "Nodes: rome[5-6]"),
        (">>> CUDA_VISIBLE_DEVICES=0,1,2,3", ">>> CUDA_VISIBLE_DEVICES=0,1,2,4"),
        ("UCX_TLS=rc,cuda_copy", "UCX_TLS=rc,cuda_ipc"),
        ("NCCL_P2P_LEVEL=SYS,NCCL_ALGO=Ring", "NCCL_P2P_LEVEL=SYS,NCCL_ALGO=Tree"),
        ("Running on rome3", "Running on rome4"),
    ],
)
def test_other_captions_are_other_series(one: str, other: str, tmp_path: Path) -> None:
    assert runs(one, other, tmp_path) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Run 1", "Run 2"), ("trial 1 of 3", "trial 2 of 3"), ("1", "2"), ("1st pass", "2nd pass"),
        ("Tue Mar  3 10:00:01 CET 2026", "Wed Mar  4 11:30:00 CET 2026"),
        ("2026-03-03T10:00:01Z", "2026-03-03T10:20:44Z"),
        ("Same switch", ""), ("Same switch", "real 0m3.1s\nuser 0m2.0s\nsys 0m0.4s"),
        ("job 4711 started", "job 4712 started"), ("Same switch", "rome3:8:9 [0] NCCL INFO ok"),
    ],
)  # fmt: skip
def test_what_counts_repetitions_is_no_caption(one: str, other: str, tmp_path: Path) -> None:
    assert runs(one, other, tmp_path) == [2, 2]


def test_captions_of_tables_with_other_titles_do_not_count() -> None:
    lines = ["first part", "# A", "1 2", "second part", "# B", "1 2"]
    assert headings(lines, [(0, 1), (3, 4)]) == ["", ""]
    lines = ["first part", "# A", "1 2", "second part", "# A", "1 2", "# A"]
    assert headings(lines, [(0, 1), (3, 4), (6, 6)]) == ["first part", "second part", "second part"]


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("Node: rome3", "rome3"), ("=== hosts: a1 a2 ===", "a1 a2"),
        ("SLURM_JOB_NODELIST=rome[1-2]", "rome[1-2]"), ("running on 2 of 8", "2 of 8"),
        ("Host memory is pinned", ""), ("node type: fast?", ""),
    ],
)  # fmt: skip
def test_lines_name_hosts(line: str, hosts: str) -> None:
    assert hosts_above(["x", line, "y"]) == hosts


def test_repetitions_without_a_command_have_a_note(tmp_path: Path) -> None:
    from exchange.imports.test_made_texts import read

    path = tmp_path / "a.txt"
    path.write_text(TABLE.format("MPI", 5.0) + "\n" + TABLE.format("MPI", 6.0))
    found = [each for file in read(path) for each in file.measured]
    assert [REPEATED in each.notes for each in found] == [True, True]
    path.write_text(TABLE.format("MPI", 5.0))
    assert not any(REPEATED in each.notes for file in read(path) for each in file.measured)


def test_tables_below_one_script_are_no_blocks(tmp_path: Path) -> None:
    tables = "".join(f"{TABLE.format('MPI', 10.0 * n)}\n" for n in (1, 2, 3))
    once = series(f"$ ./sweep.sh\n{tables}", tmp_path)
    assert sorted(once.values()) == [[10], [20], [30]]
    twice = series(f"$ ./sweep.sh\n{tables}$ ./sweep.sh\n{tables}", tmp_path)
    assert sorted(twice.values()) == [[10, 10], [20, 20], [30, 30]]


COMMAND = "$ ./all_reduce_perf -g 4"


@pytest.mark.parametrize(
    ("one", "other", "blocks"),
    [
        ("## IOMMU on", "## IOMMU off", [1, 1, 1, 1]),
        ("", "=== after the update ===", [1, 1, 1, 1]),
        ("=== run 1 ===", "=== run 2 ===", [2, 2]),
        ("=== IOMMU on ===", "", [2, 2]),
        ("IOMMU on", "IOMMU off", [2, 2]),
    ],
)
def test_headings_above_equal_commands(
    one: str, other: str, blocks: list[int], tmp_path: Path
) -> None:
    assert runs(f"{one}\n{COMMAND}", f"{other}\n{COMMAND}", tmp_path) == blocks
