"""A rank whose memory is of all nodes has the socket of its CPUs."""

from __future__ import annotations

import random

import pytest

from waywiser.exchange.imports.benchpress import read
from waywiser.exchange.imports.benchpress_places import NODE_STATED, STATED

NEAR, FAR = "0-16301", "163036-179337"
BOTH = f"{NEAR},{FAR}"


def text_of(ranks: dict[int, tuple[str, str]]) -> str:
    """``ranks``: rank -> (CPUs, memory), all of one host."""
    rows = "".join(f"CPU 0 and CPU {rank}:\t1.000000e-06\t\n" for rank in sorted(ranks) if rank)
    placed = "".join(
        f"rank: {rank}: {{ host: 4; cpu: {{{cpus}}} ; gpu: {{0}} ; mem: {{{memory}}} }} : app 0\n"
        for rank, (cpus, memory) in ranks.items()
    )
    return f"Profiling Standard CPU Ping-Pongs:\n{rows}\napp 0: ./time_ping_pong\n{placed}"


def sockets(text: str) -> tuple[dict[int, str], set[str]]:
    (found,) = read(text, "x")
    ends = [end for each in found.measured for end in each.workload.transfers[0].path.ends]
    notes = {note for each in found.measured for note in each.notes if "state" in note}
    return {end.place.index: end.variant["socket"] for end in ends}, notes


def cpus(core: int) -> str:
    """The four CPUs of a core: each socket has 22 cores, the last of which is the system's."""
    first = 4 * (core + core // 21)
    return f"{first}-{first + 3}"


@pytest.mark.parametrize("seed", range(12))
def test_a_rank_with_memory_of_both_nodes_is_at_its_cpus(seed: int) -> None:
    rng = random.Random(seed)
    cores = rng.sample(range(42), 8)
    while len({core // 21 for core in cores[:6]}) < 2:
        cores = rng.sample(range(42), 8)
    ranks = {
        rank: (cpus(core), BOTH if rank > 5 else (NEAR, FAR)[core // 21])
        for rank, core in enumerate(cores)
    }
    near_own = {}
    for rank, core in enumerate(cores):
        known = cores[:6]
        near_own[rank] = str((core if rank < 6 else min(known, key=lambda k: abs(k - core))) // 21)
    assert sockets(text_of(ranks)) == (near_own, {STATED})


def test_memory_of_both_nodes_alone_leaves_the_gap_between_cpus() -> None:
    ranks = {0: ("0-3", BOTH), 1: ("4-7", BOTH), 2: ("88-91", BOTH), 3: ("92-95", BOTH)}
    assert sockets(text_of(ranks))[0] == {0: "0", 1: "0", 2: "1", 3: "1"}


def test_ranks_in_turn_over_the_sockets_follow_their_cpus() -> None:
    ranks = {0: ("0-3", BOTH), 1: ("88-91", BOTH), 2: ("4-7", BOTH), 3: ("92-95", BOTH)}
    assert sockets(text_of(ranks))[0] == {0: "0", 1: "1", 2: "0", 3: "1"}


def test_two_ranks_side_by_side_are_an_assumption() -> None:
    found, notes = sockets(text_of({0: ("0-3", BOTH), 1: ("4-7", BOTH)}))
    assert notes == {NODE_STATED}
    assert set(found) == {0, 1}


def test_one_node_for_all_is_one_socket() -> None:
    found, notes = sockets(text_of({0: ("0-3", NEAR), 1: ("4-7", NEAR)}))
    assert found == {0: "0", 1: "0"}
    assert notes == {STATED}
