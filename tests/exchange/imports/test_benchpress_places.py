"""Ranks are where the file says, and by rules only where it says nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.benchpress import read
from waywiser.exchange.imports.benchpress_places import ASSUMED, NODE_STATED, STATED
from waywiser.exchange.imports.foreign_file import Malformed
from waywiser.model.messages import locality_of

FILE = Path(__file__).parent / "data" / "benchpress_placed.out"


def line(rank: int, host: str, memory: str, gpu: str = "0") -> str:
    mem = f" ; mem: {{{memory}}}" if memory else ""
    return f"rank: {rank}: {{ host: {host}; cpu: {{0-3}} ; gpu: {{{gpu}}}{mem} }} : app 0\n"


def localities(text: str) -> dict[tuple[int, ...], str | None]:
    (found,) = read(text, "x")
    return {
        tuple(end.place.index for end in transfer.path.ends): locality_of(transfer)
        for transfer in (each.workload.transfers[0] for each in found.measured)
    }


def rows(ranks: int) -> str:
    return "Profiling Standard CPU Ping-Pongs:\n" + "".join(
        f"CPU 0 and CPU {rank}:\t1.000000e-06\t2.000000e-06\t\n" for rank in range(1, ranks)
    )


def test_the_file() -> None:
    assert localities(FILE.read_text()) == {
        (0, 1): "on-socket",
        (0, 2): "on-node",
        (0, 3): "off-node",
    }
    (found,) = detect.read(FILE)
    assert {note for each in found.measured for note in each.notes if "stat" in note} == {STATED}


@pytest.mark.parametrize("seed", range(24))
def test_any_placement_is_kept(seed: int) -> None:
    """Ranks in any order over hosts of any name and sockets of any size."""
    rng = random.Random(seed)
    hosts = rng.sample(["1", "2", "17", "a", "node-b"], rng.randint(1, 3))
    sockets = rng.randint(1, 4)
    places = {
        rank: (rng.choice(hosts), rng.randrange(sockets)) for rank in range(rng.randint(2, 9))
    }
    width = rng.choice([100, 16302])
    text = rows(len(places)) + "app 0: ./time_ping_pong\n"
    for rank in rng.sample(sorted(places), len(places)):
        host, socket = places[rank]
        text += line(rank, host, f"{socket * width}-{(socket + 1) * width - 1}")
    own = places[0]
    for (_, rank), found in localities(text).items():
        expected = "on-socket" if places[rank] == own else "on-node"
        assert found == (expected if places[rank][0] == own[0] else "off-node")


def test_without_memory_the_socket_is_assumed_and_said() -> None:
    text = rows(4) + "".join(line(rank, str(rank // 2), "") for rank in range(4))
    (found,) = read(text, "x")
    assert {each.notes[-1] for each in found.measured} == {NODE_STATED}
    assert localities(text)[0, 2] == "off-node"


def test_a_file_that_states_nothing_says_what_was_assumed() -> None:
    (found,) = read(rows(4), "x")
    assert {each.notes[-1] for each in found.measured} == {ASSUMED}


def test_a_rank_that_is_placed_in_two_ways_is_damage() -> None:
    with pytest.raises(Malformed, match="x:4: rank 0 is placed twice"):
        read(rows(2) + line(0, "1", "0-9") + "\n" + line(0, "2", "0-9"), "x")


def test_the_gpu_of_a_rank_is_the_one_that_it_sees() -> None:
    text = "Profiling GPU Ping-Pongs\nGPU on rank 0 and GPU on rank 1:\t1.000000e-06\t\n"
    (found,) = read(text + line(0, "1", "0-9", "3") + line(1, "1", "10-19", "5"), "x")
    path = found.measured[0].workload.transfers[0].path
    assert (path.source.variant["gpu"], path.destination.variant["gpu"]) == ("3", "5")


@pytest.mark.parametrize("seed", range(20))
def test_a_rank_that_the_file_does_not_place_has_no_place_by_rules(seed: int) -> None:
    rng = random.Random(seed)
    ranks = rng.choice([4, 6, 8])
    pairs = [(0, other) for other in range(1, ranks)]
    rows = [f"CPU {a} and CPU {b}:\t{rng.uniform(1, 9) * 1e-7:.6e}\t" for a, b in pairs]
    placed = rng.sample(range(ranks), rng.randint(1, ranks - 1))
    lines = [f"rank: {n}: {{ host: {n % 2}; cpu: {{0-3}} ; mem: {{0-9999}} }} : app 0"
             for n in placed]  # fmt: skip
    (found,) = read("\n".join(["Profiling Standard CPU Ping-Pongs:", *rows, "", *lines, ""]), "x")
    whole = {f"{a} and {b}" for a, b in pairs if a in placed and b in placed}
    assert {each.name.split(", ")[1] for each in found.measured} == whole
    assert all("not rank" in each.reason for each in found.unsupported_paths)


def test_a_table_that_names_no_ranks_needs_the_places_of_all() -> None:
    table = "Timing Max-Rate CPU Ping-Pongs\nSize 1\t1.000000e-06\t2.000000e-06\n"
    lines = [line(n, str(n // 4), "0-9999") for n in range(8)]
    (whole,) = read(f"{table}\n\n{''.join(lines)}", "x")
    del lines[2]
    text = f"{table}\nProfiling Standard CPU Ping-Pongs:\nCPU 0 and CPU 1:\t1.000000e-06\t\n\n"
    (cut,) = read(text + "".join(lines), "x")
    assert len(whole.measured) == 2
    assert [each.name for each in cut.measured] == ["Profiling Standard CPU Ping-Pongs, 0 and 1, 4"]
    assert "does not place all ranks" in cut.unsupported_paths[0].reason
