"""Where buffers and threads belong, which GPUs to use together, and what the worst choice costs."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import msgspec
import pytest
from tests.analysis.questions.machines import altered, host_links, machine, peer_links
from tests.analysis.questions.subjects import FEW, curve, postal, subject
from tests.analysis.questions.test_hidden import placed

import sides as synthetic
import waywiser
from exchange.imports.shared_files import shared
from kept import RESULTS, unpacked
from machine.captured import machine as captured
from waywiser.analysis.questions.placement import Placement, PlacementCost, PlacementRank
from waywiser.analysis.questions.placement_answer import placement
from waywiser.analysis.questions.placement_text import placement_tables
from waywiser.curves.subject import Subject
from waywiser.profile import Profile
from waywiser.words.records import Locality, Series

H2D = "pinned@numa:{} -> device@gpu:{} by copy-engine"


def two_nodes(rate: float = 1.0, *, gpus: int = 4, odd: int | None = None) -> Placement:
    """Two nodes, remote memory has so much of the bandwidth; for GPU ``odd`` local memory has."""
    found: list[list[Series]] = []
    for gpu in range(gpus):
        for node in range(2):
            remote = (node != gpu * 2 // gpus) != (gpu == odd)
            truth = postal(5e-6, 50e9 * (rate if remote else 1))
            found.append(curve(H2D.format(node, gpu), truth, FEW))
    return placement(subject(*found, machine=machine(gpus, 2)))


def large(found: Placement, question: str) -> list[PlacementRank]:
    return [r for r in found.ranks if r.question == question and r.regime == "bandwidth"]


def test_the_node_of_each_gpu_is_ranked_with_the_cost_of_the_worst() -> None:
    found = two_nodes(1 / 1.2)
    assert found.source == "system"
    assert [(gpu.node, gpu.basis) for gpu in found.gpus] == [
        (node, "measured") for node in (0, 0, 1, 1)
    ]
    ranks = large(found, "buffer")
    assert [rank.subject for rank in ranks] == [f"gpu:{gpu}" for gpu in range(4)]
    assert [rank.best.name for rank in ranks] == ["numa:0", "numa:0", "numa:1", "numa:1"]
    for rank in ranks:
        assert rank.cost.loss == pytest.approx(1 - 1 / 1.2, abs=0.01)
        assert rank.cost.interval is not None and rank.cost.limit is None
        assert rank.cost.interval.low < rank.cost.loss < rank.cost.interval.high
        assert rank.best.rate == pytest.approx(50e9, rel=0.02)
    assert "Put buffers and threads of GPUs 0-1 on numa:0" in found.sentences[0]
    assert (
        "has less bandwidth, for copies of 16 MiB and more: pinned -> GPU by copy-engine 17 %"
    ) in str(found)


def test_the_nearest_gpus_of_each_node_follow() -> None:
    found = two_nodes(1 / 1.2)
    assert [(each.node, each.gpus, each.basis) for each in found.nodes] == [
        (0, (0, 1), "measured"), (1, (2, 3), "measured"),
    ]  # fmt: skip
    nearest = next(each for each in found.sentences if each.startswith("Nearest to numa:1"))
    assert "GPUs 2-3. The slowest, gpu:" in nearest and "has 17 % (" in nearest
    assert "less bandwidth (" in nearest


def test_what_was_measured_decides_against_what_the_system_shows() -> None:
    found = two_nodes(1 / 1.2, odd=3)
    assert [gpu.node for gpu in found.gpus] == [0, 0, 1, 0]


def test_a_node_that_does_not_matter_is_reported_with_the_largest_difference() -> None:
    found = two_nodes()
    assert {gpu.basis for gpu in found.gpus} == {"no difference"}
    assert {each.gpus for each in found.nodes} == {(0, 1, 2, 3)}
    costs = [rank.cost for rank in large(found, "buffer")]
    assert {cost.outcome for cost in costs} == {"equivalent"}
    assert all(cost.limit is not None and 0 < cost.limit < 0.03 for cost in costs)
    assert "makes no difference of more than" in str(found)
    assert "takes longer" not in str(found) and "less bandwidth" not in str(found)


def test_pairs_of_gpus_are_ranked_by_their_slower_direction() -> None:
    series = peer_links(4, {(2, 3): 0.5})
    found = placement(subject(*([one] for one in series), machine=machine(4)))
    (rank,) = large(found, "pair")
    assert rank.worst.name == "gpu:2, gpu:3"
    assert rank.cost.loss == pytest.approx(1 - 1 / 1.5, abs=0.02)
    pairs = {f"gpu:{a}, gpu:{b}" for a, b in combinations(range(4), 2)}
    assert {each.name for each in rank.good} == pairs - {"gpu:2, gpu:3"}
    assert "The worst pair of GPUs has less bandwidth" in str(found)


def sharing(gpus: int = 4) -> Placement:
    """GPUs 0 and 1 share a link to the host, and so do 2 and 3."""
    found = [host_links(gpus, sizes=(2**26,))]
    for pair in combinations(range(gpus), 2):
        times = 2.0 if pair in ((0, 1), (2, 3)) else 1.0
        text = "; ".join(H2D.format(0, gpu) for gpu in pair)
        found.append(curve(text, postal(5e-6, 50e9 / times), (2**26,)))
    return placement(subject(*found, machine=machine(gpus)))


def test_gpus_that_share_a_link_to_the_host_are_ranked_last() -> None:
    found = sharing()
    (rank,) = large(found, "set")
    assert rank.subject == "2 GPUs"
    assert {each.name for each in rank.choices[-2:]} == {"gpu:0, gpu:1", "gpu:2, gpu:3"}
    assert rank.cost.loss == pytest.approx(0.5, abs=0.02)
    slowed = [use.gpus for use in found.concurrent if use.outcome == "different"]
    assert sorted(slowed) == [(0, 1), (2, 3)]
    share = next(use.share for use in found.concurrent if use.gpus == (0, 1))
    assert share == pytest.approx(0.5, abs=0.02)
    assert not any("share a link" in each for each in found.unanswered)


def test_the_node_that_submits_is_ranked() -> None:
    found = []
    for a, b in permutations(range(4), 2):
        for node in range(2):
            text = f"device@gpu:{a} -> device@gpu:{b} by copy-engine[peer=off,submit={node}]"
            late = 1.3 if node != a // 2 else 1.0
            found.append(curve(text, postal(5e-6, 20e9 / late), FEW))
    ranks = large(placement(subject(*found, machine=machine(4, 2))), "thread")
    assert len(ranks) == 12
    for rank in ranks:
        source = int(rank.subject[len("gpu:")])
        assert rank.best.name == f"numa:{source // 2}"
        assert rank.cost.loss == pytest.approx(1 - 1 / 1.3, abs=0.02)


def hiding(cost: float, localities: list[Locality], virtual: str = "KVM") -> Placement:
    """Eight GPUs of a virtual machine with one node; blocks of memory are on either side."""
    series = [
        each
        for gpu in range(8)
        for each in curve(H2D.format(0, gpu), postal(5e-6, 50e9), (8, 64, 2**26), blocks=2)
    ]
    made = msgspec.structs.replace(
        machine(8),
        virtual=virtual,
        gpus=tuple(msgspec.structs.replace(gpu, numa=-1) for gpu in machine(8).gpus),
    )
    return placement(subject(placed(series, cost=cost), machine=made, localities=localities))


def test_hidden_sides_decide_and_it_is_said_how_sure_that_is() -> None:
    found = hiding(1.1, synthetic.records(5))
    assert found.source == "latency"
    assert found.sides == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert [(gpu.side, gpu.node) for gpu in found.gpus] == [(n // 4, None) for n in range(8)]
    rank = next(rank for rank in found.of("side") if rank.regime == "bandwidth")
    assert (rank.best.name, rank.worst.name) == ("own side", "other side")
    assert rank.cost.loss == pytest.approx(1 - 1 / 1.1, abs=0.01)
    text = str(found)
    assert "GPUs 0-3 and GPUs 4-7 are on two sides" in text
    assert "How sure this is: such latencies have a probability of " in text
    assert "6 of 6 blocks" in text
    assert "Virtual CPUs may move between sockets" in text
    assert "Memory of the other side has less bandwidth" in text


def test_gpus_of_different_hidden_sides_are_not_compared() -> None:
    found = hiding(1.1, synthetic.records(5))
    ranks = large(found, "gpu")
    assert [rank.subject for rank in ranks] == ["numa:0, side A", "numa:0, side B"]
    for rank, side in zip(ranks, found.sides, strict=True):
        assert {each.name for each in rank.choices} == {f"gpu:{gpu}" for gpu in side}


def test_sides_that_are_known_by_their_level_alone_are_little_sure() -> None:
    found = hiding(1.1, synthetic.records(5, one_side=True))
    assert found.source == "latency"
    assert "How sure this is: little. All blocks of memory were on one side" in str(found)


def test_cores_that_move_are_reported() -> None:
    text = str(hiding(1.1, synthetic.records(5, cores="drifting")))
    assert "Cores drift between two sides" in text


def test_bare_metal_has_no_virtual_cpus() -> None:
    assert "Virtual CPUs" not in str(hiding(1.1, synthetic.records(5), virtual=""))


def test_one_socket_that_shows_no_sides_is_not_determined() -> None:
    found = hiding(1.0, synthetic.records(5, sockets=1))
    assert (found.source, found.sides) == ("not known", (tuple(range(8)),))
    assert {(gpu.node, gpu.basis) for gpu in found.gpus} == {(None, "not known")}
    text = str(found)
    assert "does not exclude two sockets with all GPUs on one" in text
    assert "The hypervisor placed the memory of the 2 processes" in text


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ((0, 0), "The system shows 1 NUMA node, near GPUs 0-1."),
        ((-1, 0), "The system shows 1 NUMA node, near gpu:1, and not where gpu:0 is."),
        ((-1, -1), "The system shows 1 NUMA node and not where its GPUs are."),
    ],
)
def test_the_node_of_each_gpu_is_said_of_a_machine_with_one_node(
    nodes: tuple[int, ...], said: str
) -> None:
    made = machine(2)
    for gpu, node in enumerate(nodes):
        made = altered(made, gpu, numa=node)
    assert placement(subject(machine=made)).sentences[0] == said


@pytest.mark.parametrize("name", ["two-socket-4gpu", "h200-vm-8gpu", "mig", "no-gpu", "small-vm"])
def test_captured_machines_without_any_measurement_have_an_answer(name: str) -> None:
    found = placement(subject(machine=captured(name)))
    assert found.ranks == () and len(found.gpus) == len(captured(name).gpus)
    assert str(found)
    if name == "two-socket-4gpu":
        assert {gpu.basis for gpu in found.gpus} == {"system"}
        assert any("no path between host and GPU was measured" in e for e in found.unanswered)
    if not found.gpus:
        assert found.unanswered == ("the machine has no GPU",)


@cache
def recorded(name: str, folder: Path) -> Subject:
    file = unpacked(RESULTS / f"{name}.wwp.xz", folder / f"{name.replace('/', '-')}.wwp")
    with Profile.open(file) as profile:
        return Subject.of(profile)


def test_four_gpus_that_were_measured(tmp_path: Path) -> None:
    kept = recorded("2026-11-20-h200-catalogue/four-gpus/standard", tmp_path)
    found = placement(kept)
    assert found.source == "not known" and found.virtual
    (pairs,) = [rank for rank in large(found, "pair") if rank.is_headline]
    assert pairs.cost.outcome == "equivalent" and pairs.cost.limit is not None
    assert pairs.cost.limit < 0.03 and len(pairs.choices) == 6
    by_name = {use.name.partition(" ")[0]: use for use in found.concurrent}
    assert by_name["all-to-host"].outcome == "different"
    assert by_name["all-to-host"].share == pytest.approx(0.72, abs=0.02)
    known = {curve.text for curve in kept.curves}
    assert {choice.series for rank in found.ranks for choice in rank.choices} <= known
    for made in placement_tables(found):
        assert 0 < len(made.rows) <= 40
        assert all(len(row.cells) == len(made.columns) for row in made.rows)
        assert {cell.series for row in made.rows for cell in row.cells} <= {"", *known}


def test_a_dgx_1_shows_what_the_thesis_about_it_shows(tmp_path: Path) -> None:
    from waywiser.exchange.imports.profiles import import_files

    target = tmp_path / "dgx-1.wwp"
    import_files([shared("dgx-1")], target, machine="dgx-1",
                 topology=RESULTS.parents[1] / "tests" / "captures" / "dgx-1.json")  # fmt: skip
    with Profile.open(target) as profile:
        found = placement(Subject.of(profile))
    assert [gpu.node for gpu in found.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [each.gpus for each in found.nodes] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    ranks: dict[str, list[PlacementCost]] = {}
    for rank in large(found, "buffer"):
        ranks.setdefault(rank.transfer, []).append(rank.cost)
    pinned = ranks["pinned -> GPU by copy-engine"]
    assert {cost.outcome for cost in pinned} == {"equivalent"}
    assert max(cost.limit or 1 for cost in pinned) < 0.01
    assert all(cost.loss > 0.25 for cost in ranks["GPU -> pageable by copy-engine"])
    threads = large(found, "thread")
    assert threads and all(rank.cost.outcome != "different" for rank in threads)
    (pair,) = [rank for rank in large(found, "pair") if rank.is_headline]
    linked = {f"gpu:0, gpu:{gpu}" for gpu in (1, 2, 3, 4)}
    assert {each.name for each in pair.good} == linked


def test_an_opened_profile_has_its_placement(tmp_path: Path) -> None:
    packed = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"
    found = waywiser.open(unpacked(packed, tmp_path / "two.wwp")).placement()
    assert found.concurrent and "GPUs 0-1 have equal latency to host memory" in str(found)


def test_values_are_plain_data() -> None:
    found = two_nodes(1 / 1.2)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Placement) == found
