from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from exchange.imports.shared_files import shared
from waywiser.curves.curve import points_of
from waywiser.exchange.imports import detect
from waywiser.exchange.imports.benchpress import ALL_GPUS, ONE_WAY, read
from waywiser.exchange.imports.benchpress_places import ASSUMED
from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.machine import RANKS
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame

DATA = Path(__file__).parent / "data"


def found(kind: str) -> ForeignFile:
    return detect.read(DATA / f"benchpress_{kind}.out")[0]


def seconds(file: ForeignFile) -> dict[str, float]:
    return {str(each.workload): each.samples.span[0] for each in file.measured}


def test_sizes_of_columns_are_by_position_and_pairs_stay_apart() -> None:
    file = found("ping_pong")
    times = seconds(file)
    assert len(times) == 2 * 5 * 4
    here, there = "pinned[node=0,socket=0]@rank:0", "pinned[node=1,socket=0]@rank:2"
    assert times[f"{here} -> {there} by mpi[test=ping-pong] of 32"] == pytest.approx(1.32e-6)
    same = "pinned[node=0,socket=1]@rank:1"
    assert times[f"{here} -> {same} by mpi[test=ping-pong] of 4"] == pytest.approx(1.01e-6)
    gpus = ("device[gpu=1,node=0,socket=1]@rank:1", "device[gpu=1,node=1,socket=1]@rank:3")
    assert f"{gpus[0]} -> {gpus[1]} by mpi[test=ping-pong] of 4" in times
    assert all(each.notes == (ONE_WAY, ASSUMED) for each in file.measured)


def test_what_follows_a_placement_and_precedes_a_title_is_no_result() -> None:
    assert "9.0" not in str(sorted(seconds(found("ping_pong")).values()))
    title = "Timing Max-Rate CPU Ping-Pongs\n"
    (alone,) = read(f"app\nSize 1\t7.000000e-06\t\n{title}Size 1\t1.000000e-06\t\n", "x")
    assert list(seconds(alone).values()) == [1e-6]


def test_max_rate_and_node_pong_have_the_same_titles_and_differ_in_their_rows() -> None:
    single, split = found("maxrate"), found("node_pong")
    last = single.measured[15].workload
    assert [(str(t.path.source.place), t.bytes) for t in last.transfers] == [
        (f"rank:{n}", 32) for n in range(4)
    ]
    assert [str(t.path.destination.place) for t in last.transfers] == [
        f"rank:{n}" for n in range(4, 8)
    ]
    assert {t.parameters["test"] for t in last.transfers} == {"max-rate"}
    rows = [each.workload for each in split.measured if "CPU" in each.family]
    assert [len(w.transfers) for w in rows] == [1, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4]
    assert [w.transfers[0].bytes for w in rows[-4:]] == [32, 16, 8, 8]  # 8 floats by 3: 2 each
    assert {t.parameters["test"] for w in rows for t in w.transfers} == {"node-pong"}


def test_gpus_of_counts_are_at_the_first_rank_of_each_gpu() -> None:
    last = found("maxrate").measured[-1].workload
    assert [str(t.path.source) for t in last.transfers] == [
        "device[gpu=0,node=0,socket=0]@rank:0",
        "device[gpu=1,node=0,socket=1]@rank:2",
    ]
    assert str(last.transfers[1].path.destination) == "device[gpu=1,node=1,socket=1]@rank:6"


def test_messages_of_one_rank_go_to_the_ranks_of_the_other_node() -> None:
    last = found("mult_pong").measured[15].workload
    assert {str(t.path.source.place) for t in last.transfers} == {"rank:0"}
    assert [t.path.destination.place.index for t in last.transfers] == [4, 5, 6, 7]
    assert last.transfers[0].bytes == 32


def test_copies_name_the_rank_and_the_gpu() -> None:
    times = seconds(found("memcpy"))
    path = "pinned[node=0,socket=1]@rank:1 -> device[node=0,socket=0]@gpu:0 by copy-engine"
    assert times[f"{path} of 16"] == pytest.approx(1.2e-5)
    back = "device[node=0,socket=1]@gpu:1 -> pinned[node=0,socket=0]@rank:0 by copy-engine"
    assert f"{back} of 4" in times
    peers = "device[node=0,socket=0]@gpu:0 -> device[node=0,socket=1]@gpu:1"
    assert f"{peers} by copy-engine[submit=rank:1] of 8" in times


def test_np_k_is_k_plus_one_ranks_of_each_gpu() -> None:
    file = found("memcpy_mult")
    assert [len(each.workload.transfers) for each in file.measured] == [1, 1, 1, 2, 2, 2] * 2
    assert all(ALL_GPUS in each.notes for each in file.measured)
    times = seconds(file)
    assert times.keys() & seconds(found("memcpy")).keys() == set()


def test_a_figure_of_zero_is_no_time() -> None:
    (file,) = read("Timing Max-Rate CPU Ping-Pongs\nSize 1\t0.000000e+00\t1.000000e-06\t\n", "x")
    assert len(file.measured) == 1
    (unsupported,) = file.unsupported_paths
    assert unsupported.reason == "its figure is no time"


TITLE = "Profiling Standard CPU Ping-Pongs:\n"
PAIR = "CPU 0 and CPU 1:\t1.000000e-06\t2.000000e-06\t\n"
COUNTS = "Timing Max-Rate CPU Ping-Pongs\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("nothing", "x: no title"),
        (TITLE, "x:1: 'Profiling Standard CPU Ping-Pongs' has no row"),
        (TITLE + "CPU 0 and CPU 1:\t1.000000e-06\t2.0000", "x:2: '2.0000' where a time"),
        (TITLE + "CPU 0 and CPU 1:\t1.000000e-06\tnan\t\n", "x:2: 'nan' where a time"),
        (TITLE + PAIR + "CPU 0 and CPU 2:\t1.000000e-06\t\n", "x:3: the row has 1 figures"),
        (TITLE + PAIR + PAIR, "x:3: the row occurs twice"),
        (TITLE + "CPU 0 und CPU 1:\t1.000000e-06\t\n", "x:2: 'CPU 0 und CPU 1:' begins no row"),
        (TITLE + "CPU 0 and CPU 1:\n", "x:2: the row has no figures"),
        (COUNTS + "Size 3\t1.000000e-06\t\n", "x:2: 3 floats are no size"),
        (
            COUNTS + "Size 4\t1.000000e-06\t1.000000e-06\t\n",
            "begins with size 4: without its first rows",
        ),
        ("Memcpy Host To Device Mult:\nNP 0\n", "has no row below it"),
        ("Memcpy Host To Device Mult:\nNP 0\nNP 1\n1.000000e-06\t\n", "x:3: 'NP 1' where a time"),
        (
            "Memcpy Host To Device Mult:\nNP 0\n1.000000e-06\t\nNP 1\n",
            "x:4: a row has no figures: the file is truncated",
        ),
        (COUNTS + "Size 1" + "\t1.000000e-06" * 200 + "\t\n", "200 figures, more than 128"),
    ],
)
def test_damage_is_one_line_with_its_place(text: str, what: str) -> None:
    with pytest.raises(Malformed) as error:
        read(text, "x")
    assert what in str(error.value) and "\n" not in str(error.value)


def test_jobs_are_blocks_and_a_copied_file_is_no_second_job(tmp_path: Path) -> None:
    text = (DATA / "benchpress_ping_pong.out").read_text()
    (tmp_path / "ping_pong.1.out").write_text(text)
    (tmp_path / "ping_pong.2.out").write_text(text.replace("1.010000e-06", "1.020000e-06"))
    shutil.copy(tmp_path / "ping_pong.1.out", tmp_path / "ping_pong.1 2.out")
    imported = import_files([tmp_path], tmp_path / "a.wwp", machine="two nodes")
    assert [each.reason for each in imported.unsupported_paths] == [
        "it has the same content as ping_pong.1 2.out"
    ]
    with Profile.open(tmp_path / "a.wwp") as profile:
        found = points_of(SeriesFrame.read(profile))
    assert {len(series.blocks) for series in found} == {2}
    assert sorted({block.median for series in found for block in series.blocks})[:2] == [
        pytest.approx(1.01e-6),
        pytest.approx(1.02e-6),
    ]


def test_every_file_of_summit_is_read() -> None:
    number = {}
    for path in sorted(shared("benchpress/summit").iterdir()):
        file = detect.read(path)[0]
        assert not file.unsupported_paths, path
        number[path.name.partition(".")[0]] = len(file.measured)
    assert number == {
        "maxrate": 828,
        "memcpy": 2916,
        "memcpy_mult": 216,
        "mult_pong": 828,
        "node_pong": 640,
        "ping_pong": 1836,
    }


def test_ranks_are_no_nodes_of_the_machine(tmp_path: Path) -> None:
    found = import_files([DATA / "benchpress_ping_pong.out"], tmp_path / "a.wwp")
    assert not found.machine.numa and not found.machine.gpus
    assert RANKS not in found.machine.notes
    copies = import_files([DATA / "benchpress_memcpy.out"], tmp_path / "b.wwp")
    assert [gpu.index for gpu in copies.machine.gpus] == [0, 1]
