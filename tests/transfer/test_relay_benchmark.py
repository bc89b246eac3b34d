"""The benchmark of relay copies and their links, on fake GPUs whose rates are known."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, Stream, configure

from script_module import script_module
from waywiser import transfer

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MIB = 1 << 20
GB = 1e9
SMALL = 16
"""MiB of a block: the least that relays are used for."""


class Array(GpuArray):
    """A part of a fake GPU's memory that can be sliced."""

    number = -1
    """The number of its GPU, if it is all of an allocation."""

    def __getitem__(self, part: slice) -> Array:
        start, stop, _ = part.indices(self.shape[0])
        return Array(
            stop - start, buffer=self.buffer, offset=self.offset + start, stream=self.stream
        )


class FakeGpus:
    name = "fake"

    def __init__(self, count: int) -> None:
        self.count = count
        self.streams: list[Any] = []

    def empty(self, gpu: int, nbytes: int) -> Array:
        made = Array(nbytes, gpu=gpu)
        made.number = gpu
        return made

    def stream(self, gpu: int) -> Any:
        self.streams.append(Stream(gpu))
        return self.streams[-1].handle

    def copy(self, to: Any, of: Any) -> None:
        transfer.copy(to, of)


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "link_limits", raising=False)
    return script_module(BENCHMARKS / "relay.py")


def sizes(relay: ModuleType, blocks: int = 2) -> Any:
    return relay.Sizes(block=SMALL * MIB, blocks=blocks, piece=2 * MIB)


def requested(**changed: Any) -> argparse.Namespace:
    usual = {"kinds": [], "gpu": 0, "links": [1, 2], "rounds": 1, "within": 1e9, "json": None}
    return argparse.Namespace(**{**usual, **changed})


def test_both_sockets_lend_their_links_and_their_memory(
    relay: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are on one half of the machine and on the other in turn, GPUs 0-3 and 4-7 on one
    each."""
    blocks: list[int] = []

    def latency(plain: Any, to: Array, of: Any) -> float:
        address = of.base.ctypes.data
        if address not in blocks:
            blocks.append(address)
        jitter = (address // 4096 + to.number) % 7 * 1e-8
        return 2e-6 + jitter + (1e-6 if blocks.index(address) % 2 != to.number // 4 else 0)

    configure("devices=8")
    monkeypatch.setattr(relay, "latency", latency)
    gpus = FakeGpus(8)
    few = relay.Sizes(block=MIB, blocks=6, piece=MIB)
    bench = relay.PinnedLinks(gpus, 1, few)
    try:
        assert bench.sides.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
        assert bench.order[0] == 1
        halves = [gpu // 4 for gpu in bench.order]
        assert halves == [0, 1, 0, 1, 0, 1, 0, 1] and sorted(bench.order) == list(range(8))
        shares = bench.memory.shares()
        assert set(shares) == {"A", "B"} and min(shares.values()) >= relay.BALANCED
        assert all(bench.local_pieces(gpu) for gpu in bench.order)
        assert bench.local_pieces(0) is bench.of_side[0]
        assert bench.local_pieces(7) is bench.of_side[1]
    finally:
        bench.close()


def test_eight_links_carry_more_than_one(relay: ModuleType) -> None:
    """Takes up to 20 copies over eight links, because a busy host only makes a rate lower."""
    configure("devices=8;h2d=0.03;d2h=0.03;peer=1")
    bench = relay.PinnedLinks(FakeGpus(8), 0, relay.Sizes(SMALL * MIB, 2, SMALL * MIB))
    try:
        bench.check(8)
        for direction in ("H2D", "D2H"):
            one = bench.relay(1, direction)
            assert one < 0.033 * GB
            assert any(bench.relay(8, direction) > 2 * one for _ in range(20))
    finally:
        bench.close()


def test_every_number_of_links_has_its_bounds_and_a_limit(
    relay: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("devices=2;h2d=2;d2h=2;peer=6")
    file = tmp_path / "relay.json"
    arguments = requested(kinds=["pinned"], json=file, rounds=6)  # intervals need six rounds
    assert relay.measure(FakeGpus(2), arguments, sizes(relay)) == 0
    found = json.loads(file.read_text())["pinned"]
    for direction in ("H2D", "D2H"):
        one, two = found["limits"][direction]
        assert (one["links"], two["links"]) == (1, 2)
        assert set(one["bounds"]) <= {"link", "socket interconnect"}
        assert {"link", "host memory", "copy engine", "NVLink"} <= set(two["bounds"])
        assert two["limits"] and two["lowest"] in two["bounds"]
        assert two["interval"]["low"] <= two["reached"] <= two["interval"]["high"]
    shown = capsys.readouterr().out
    assert "| H2D, links | relay, GB/s |" in shown and "| D2H, links |" in shown
    assert "aim: 300 GB/s with eight links; this machine has 2" in shown


def test_a_slow_peer_link_is_the_lowest_bound(relay: ModuleType) -> None:
    """The best of three rounds of each bound, because a busy host only makes a rate lower."""
    configure("devices=2;h2d=0.2;d2h=0.2;peer=0.04")
    found = relay.measure_pinned(FakeGpus(2), 0, [2], sizes(relay, 1), 3, 1e9)
    for direction in ("H2D", "D2H"):
        measured = found["measured"][direction][2]
        best = {name: max(rates) for name, rates in measured["bounds"].items()}
        assert min(best, key=lambda name: best[name]) == "NVLink", best
        assert best["NVLink"] < 0.25 * GB, "the GPU's own link and a fifth of it"
        (limit,) = relay.limits_of(found, direction)
        assert limit.lowest in best and limit.limits


def test_one_gpu_has_a_smaller_answer(
    relay: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("devices=1;h2d=2;d2h=2;staged=1")
    assert relay.measure(FakeGpus(1), requested(links=[1, 2, 4, 8]), sizes(relay)) == 0
    shown = capsys.readouterr().out
    assert "not measured: 2, 4, 8 links, this machine has 1 GPUs" in shown
    assert "| H2D, pageable | GB/s |" in shown and "| CPUs alone, " in shown


def test_pageable_memory_is_compared_with_what_cpus_copy_alone(relay: ModuleType) -> None:
    configure("devices=2;h2d=1;d2h=1;peer=4;staged=0.5")
    found = relay.measure_pageable(FakeGpus(2), [0, 1], [1, 2], SMALL * MIB, 2, 1e9)
    for rates in found["measured"].values():
        assert {"1 link", "2 links", relay.PLAIN} < set(rates)
        assert any(name.startswith(relay.ALONE) for name in rates)
        assert all(len(each) == 2 and min(each) > 0 for each in rates.values())


@pytest.mark.parametrize("threads", [1, 3])
def test_cpus_alone_read_all_of_the_memory_or_write_it(relay: ModuleType, threads: int) -> None:
    memory = np.zeros(3 * MIB, "u1")
    assert relay.cpus_alone(memory, threads, into_memory=False) > 0
    assert not memory.any()
    relay.cpus_alone(memory, threads, into_memory=True)
    assert memory.mean() > 0.9, "but for the rest that fills no buffer"


def test_wrong_bytes_are_found(relay: ModuleType) -> None:
    configure("devices=2;h2d=8;d2h=8;peer=8")
    bench = relay.PinnedLinks(FakeGpus(2), 0, sizes(relay))
    try:
        bench.check(2)
        configure("devices=2;h2d=8;d2h=8;peer=8;flip=copy@2")
        with pytest.raises(ValueError, match="over 2 links moved wrong bytes"):
            bench.check(2)
    finally:
        configure("devices=2")
        bench.close()


def test_a_failure_of_one_link_ends_the_measurement(relay: ModuleType) -> None:
    configure("devices=2;h2d=8;d2h=8;peer=8")
    bench = relay.PinnedLinks(FakeGpus(2), 0, sizes(relay))
    try:
        bench.lane = lambda *given: relay.Lane(None, relay.Tickets(1), lambda n: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.at_once([0, 1], "H2D", own=True, peers=True)
    finally:
        bench.close()


def test_blocks_are_chosen_so_that_both_sides_have_as_much(relay: ModuleType) -> None:
    sides = [[0, 0], [0, 0], [0, 1], [1, 1], [0, 0], [None, 1]]
    chosen = relay.balanced(sides, 4)
    every = [side for number in chosen for side in sides[number]]
    assert abs(every.count(0) - every.count(1)) <= 1
    assert relay.least_share(sides) == pytest.approx(4 / 12)


def test_without_torch_it_says_what_is_missing(
    relay: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["relay.py"])
    monkeypatch.setattr(relay.importlib.util, "find_spec", lambda name: None)
    assert relay.main() == 2
    assert "torch is not installed" in capsys.readouterr().err
