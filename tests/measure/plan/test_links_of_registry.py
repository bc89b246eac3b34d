"""Readers of profiles and the registry name the same links for every path of captured machines."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from machine.captured import machine
from waywiser.machine.bounds import bound
from waywiser.machine.catalogue import Catalogue
from waywiser.machine.link_kinds import link_kinds
from waywiser.machine.machine import FilePlace, Machine
from waywiser.machine.routes import are_peers, is_through_host, relays_of
from waywiser.measure.plan.paths import find_paths
from waywiser.words import Transfer, Workload

MACHINES = ("h200-vm-8gpu", "two-socket-4gpu", "dgx-1", "mig", "no-gpu")


@pytest.fixture(autouse=True)
def with_nccl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a library that nobody loads, whatever is installed."""
    (tmp_path / "libnccl.so.2").touch()
    monkeypatch.setenv("WAYWISER_NCCL", str(tmp_path / "libnccl.so.2"))


def transfers(of: Machine, catalogue: Catalogue) -> list[Transfer]:
    """Each path by default settings and with each value of each parameter. What moves in place is
    left out: over which links memory migrates is the driver's secret."""
    found = []
    for path in find_paths(of).valid:
        bare = Transfer(path)
        if "contiguous" not in catalogue.executors[path.executor].layouts:
            continue
        if catalogue.in_place(bare):
            continue
        found.append(bare)
        for parameter in catalogue.parameters(bare):
            varied = (Transfer(path, 0, {parameter.name: value}) for value in parameter.choices[1:])
            found += [
                transfer for transfer in varied if catalogue.unsupported_reason(transfer) is None
            ]
    return found


def links(transfer: Transfer, of: Machine) -> tuple[set[int], set[frozenset[int]]]:
    """GPUs whose links to the host carry bytes, and pairs that access each other's memory."""
    if transfer.path.is_among_several:
        members = [of.gpu(place.index) for place in transfer.path.source.place.each]
        pairs = [(one, other) for one, other in permutations(filter(None, members), 2)]
        peers = {frozenset((a.index, b.index)) for a, b in pairs if are_peers(a, b)}
        return {one.index for one, other in pairs if not are_peers(one, other)}, peers
    gpus = [place.index for place in transfer.path.places if place.kind == "gpu"]
    if len(set(gpus)) == 2:
        through = is_through_host(transfer, of)
        return (set(gpus), set()) if through else (set(), {frozenset(gpus)})
    if len(gpus) != 1:
        return set(), set()
    relays = relays_of(transfer, of)
    return {*gpus, *relays}, {frozenset((gpus[0], relay)) for relay in relays}


@pytest.mark.parametrize("name", MACHINES)
def test_readers_and_the_registry_name_the_same_links(name: str) -> None:
    of = machine(name)
    catalogue = Catalogue(of)
    for transfer in transfers(of, catalogue):
        needs = catalogue.requirements(transfer)
        result = set(needs.host_links), {frozenset(pair) for pair in needs.peers}
        assert links(transfer, of) == result, transfer


def test_the_bound_of_a_path_is_that_of_the_links_that_the_registry_names() -> None:
    of = machine("h200-vm-8gpu")
    catalogue = Catalogue(of)
    one = 63.015e9
    for path in find_paths(of).valid:
        needs = catalogue.requirements(Transfer(path))
        found = bound(of, Workload((Transfer(path),)))
        ends = {place.kind for place in path.places}
        if found is None or ends != {"numa", "gpu"}:
            continue
        # Seven links bring 441 GB/s, which the NVLinks of one GPU carry.
        assert found.bytes_per_second == pytest.approx(len(needs.host_links) * one, rel=1e-3), path


@pytest.mark.parametrize("name", MACHINES)
def test_the_kinds_of_links_are_those_of_the_bound(name: str) -> None:
    of = machine(name)
    kinds = {"PCIe": {"pcie"}, "NVLink": {"nvlink"}, "memory": set()}
    for transfer in transfers(of, Catalogue(of)):
        workload = Workload((transfer,))
        peak, found = bound(of, workload), link_kinds(of, workload)
        if peak is not None and (first := peak.narrowest.split()[0]) != "host":
            assert kinds[first] <= set(found.kinds), transfer
            assert bool(kinds[first]) == bool(found.kinds), transfer
            assert not found.unknown, transfer
        elif relays_of(transfer, of):
            assert "pcie" in found.kinds, transfer
        elif not found.unknown:
            numa_or_file = {place.kind for place in transfer.path.places} & {"numa", "file"}
            assert numa_or_file or found.kinds, transfer


def test_without_a_gpu_no_path_to_one_is_planned_from_a_file_that_is_never_cold() -> None:
    tmpfs = FilePlace("tmpfs", "/dev/shm", scratch=True, bytes=2**30, filesystem="tmpfs")
    of = msgspec.structs.replace(machine("no-gpu"), files=(tmpfs,))
    found = find_paths(of)
    assert not [path for path in found.valid if any(p.kind == "gpu" for p in path.places)]
    unsupported = {each.path: each.reason for each in found.unsupported_paths}
    assert unsupported["file[state=warm]@file:tmpfs -> device@gpu:0 by staged"] == of.gpu_reason
