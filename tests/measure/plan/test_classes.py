from __future__ import annotations

import msgspec
import pytest
from tests.measure.plan.machines import machine

from waywiser.curves.classes import Classes, representatives
from waywiser.machine.machine import Gpu, Machine, NvLink, PcieLink
from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import FULL, Request
from waywiser.words import Operation, Place, Workload

H2D = "pinned@numa:0 -> device@gpu:{} by copy-engine"
PEER = "device@gpu:{} -> device@gpu:{} by copy-engine"


def changed(of: Machine, index: int, **fields: object) -> Machine:
    gpus = [
        msgspec.structs.replace(gpu, **fields) if gpu.index == index else gpu for gpu in of.gpus
    ]
    return msgspec.structs.replace(of, gpus=tuple(gpus))


def near(of: Machine) -> Machine:
    """With the first half of the GPUs at node 0, and the rest at node 1."""
    half = len(of.gpus) // 2
    gpus: list[Gpu] = []
    for gpu in of.gpus:
        gpus.append(msgspec.structs.replace(gpu, numa=int(gpu.index >= half)))
    nodes = tuple(msgspec.structs.replace(node, package=node.index) for node in of.numa)
    return msgspec.structs.replace(of, gpus=tuple(gpus), numa=nodes)


def firsts(of: Machine, *texts: str) -> list[str]:
    found = representatives(map(Workload.parse, texts), of)
    return [found[text] for text in texts]


def test_gpus_of_one_kind_make_equal_paths() -> None:
    to = [H2D.format(n) for n in range(3)]
    assert firsts(machine(gpus=3), *to) == [to[0]] * 3


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "Another GPU"},
        {"pcie": PcieLink(5, 16, 4, 16)},
        {"pcie": PcieLink(5, 8, 5, 8)},
        {"nvlinks": (NvLink("switch", 12, 26.562),)},
        {"pageable_access": True},
    ],
)
def test_another_model_or_link_is_another_class(fields: dict[str, object]) -> None:
    to = [H2D.format(n) for n in range(3)]
    assert firsts(changed(machine(gpus=3), 1, **fields), *to) == [to[0], to[1], to[0]]


def test_paths_between_nodes_at_other_distances_are_not_equal() -> None:
    """Four nodes in a ring, with a GPU at node 1: the opposite node is two steps away."""
    ring = near(machine(gpus=1, nodes=4))
    away = {
        node.index: tuple(
            (n, 22 if (n - node.index) % 4 == 2 else 16) for n in range(4) if n != node.index
        )
        for node in ring.numa
    }
    nodes = tuple(msgspec.structs.replace(node, distances=away[node.index]) for node in ring.numa)
    ring = msgspec.structs.replace(ring, numa=nodes)
    paths = [f"pageable@numa:0 -> pageable@numa:{n} by cpu" for n in (1, 2, 3)]
    assert firsts(ring, *paths) == [paths[0], paths[1], paths[0]]
    to = [f"pinned@numa:{n} -> device@gpu:0 by copy-engine" for n in range(4)]
    assert [gpu.numa for gpu in ring.gpus] == [1]
    assert firsts(ring, *to) == [to[0], to[1], to[0], to[3]]


def test_an_idle_link_and_free_memory_make_no_difference() -> None:
    to = [H2D.format(n) for n in range(2)]
    idle = changed(machine(gpus=2), 1, pcie=PcieLink(1, 16, 5, 16), memory_free_bytes=1)
    assert firsts(idle, *to) == [to[0]] * 2


def test_near_and_far_nodes_are_two_classes() -> None:
    of = near(machine(gpus=4, nodes=2))
    texts = [H2D.format(n).replace("numa:0", f"numa:{m}") for m in range(2) for n in range(4)]
    assert firsts(of, *texts) == [texts[n] for n in (0, 0, 2, 2, 2, 2, 0, 0)]


def test_all_pairs_of_peers_are_one_class_and_local_copies_another() -> None:
    of = machine(gpus=8)
    texts = [PEER.format(a, b) for a in range(8) for b in range(8)]
    assert set(firsts(of, *texts)) == {PEER.format(0, 0), PEER.format(0, 1)}


def test_pairs_without_access_or_across_nodes_are_classes_of_their_own() -> None:
    of = changed(near(machine(gpus=4, nodes=2)), 1, peers=(0,))
    texts = [PEER.format(a, b) for a, b in ((0, 1), (0, 2), (2, 3), (1, 2), (3, 0))]
    assert firsts(of, *texts) == [texts[0], texts[1], texts[0], texts[3], texts[1]]


def test_direct_lanes_are_a_relation_of_two() -> None:
    of = machine(gpus=3)
    for gpu in of.gpus:
        links = tuple(NvLink(f"gpu:{p}", 2 + ({p, gpu.index} == {0, 1}), 25.0) for p in gpu.peers)
        of = changed(of, gpu.index, nvlinks=links)
    texts = [PEER.format(a, b) for a, b in ((0, 1), (1, 0), (0, 2), (1, 2))]
    assert firsts(of, *texts) == [texts[0], texts[0], texts[2], texts[2]]


def test_what_is_done_distinguishes() -> None:
    of = machine(gpus=1)
    texts = [
        H2D.format(0),
        f"{H2D.format(0)}[api=sync]",
        H2D.format(0).replace("pinned", "pageable"),
        f"{H2D.format(0)} as list[piece=4096]",
        f"{H2D.format(0)} (flushed)",
        "device@gpu:0 -> pinned@numa:0 by copy-engine",
        f"{H2D.format(0)}; device@gpu:0 -> pinned@numa:0 by copy-engine",
    ]
    assert firsts(of, *texts) == texts


def test_sizes_do_not_distinguish_and_operations_have_classes_too() -> None:
    classes = Classes(machine(gpus=2, nodes=2))
    small, large = (Workload.parse(f"{H2D.format(n)} of {2**n}") for n in range(2))
    assert classes.key(small) == classes.key(large)
    launch = [Workload(operation=Operation("launch", Place("gpu", n))) for n in range(2)]
    assert classes.key(launch[0]) == classes.key(launch[1])
    other = Workload(operation=Operation("launch", Place("numa", 0)))
    assert classes.key(other) != classes.key(launch[0])


@pytest.mark.usefixtures("scripted")
def test_fifty_six_pairs_become_one_and_few_sizes() -> None:
    standard = make_plan(machine(gpus=8), Request(only=(PEER.format("?", "?"),)))
    certain: dict[str, list[int]] = {}
    for point in standard.points:
        if not point.conditional:
            certain.setdefault(point.curve.text, []).append(point.size)
    first = certain.pop(PEER.format(0, 1))
    local = [certain.pop(PEER.format(n, n)) for n in range(8)]
    assert len(first) == len(local[0]) == 28
    assert len(certain) == 55
    assert set(map(tuple, [*certain.values(), *local[1:]])) == {(8, 2**20, 2**26)}


@pytest.mark.usefixtures("scripted")
def test_equal_paths_of_eight_gpus_take_little_more_than_those_of_one() -> None:
    only = (H2D.format("?"),)
    one, eight = (make_plan(machine(gpus=n), Request(only=only)) for n in (1, 8))
    assert outlook(eight).seconds < 3 * outlook(one).seconds


@pytest.mark.usefixtures("scripted")
def test_full_measures_the_settings_of_all_members_one_by_one() -> None:
    full = make_plan(machine(gpus=3), Request(preset="full"))
    sizes: dict[str, list[int]] = {}
    for point in full.points:
        if point.like and not point.conditional:
            sizes.setdefault(point.curve.text, []).append(point.size)
    equal = H2D.format(2)
    assert sizes[equal] == list(FULL.equal_sizes)
    assert sizes[equal + "[api=sync]"] == [2**26]
    assert not [text for text in sizes if text.startswith(equal) and "," in text]
    assert {p.curve.is_default for p in full.points if p.conditional} == {True}


@pytest.mark.usefixtures("scripted")
def test_who_names_one_path_gets_all_of_it() -> None:
    named = make_plan(machine(gpus=4), Request(only=("pinned -> device@gpu:3",)))
    sizes = [p.size for p in named.points if p.curve.text == H2D.format(3)]
    assert len(sizes) == 28 and not any(p.conditional for p in named.points)
    assert any("api=sync" in p.curve.text for p in named.points)
