"""A fleet of equal hosts: nobody is accused, and everybody who is ill is found and named."""

from __future__ import annotations

import shlex

import msgspec
import nodes
import pytest

from waywiser.analysis.comparison.fleet import Fleet, assess_fleet
from waywiser.curves.subject import LoadedLink, Subject
from waywiser.profile import RunHealth
from waywiser.words.records import Failure, GpuHealth, Health

HOSTS = 400


def peers(count: int, seed: int = 1) -> list[Subject]:
    return [nodes.node(seed, f"n{host:03}") for host in range(count)]


def of(fleet: Fleet, host: str):
    return next(each for each in fleet.hosts if each.host == host)


def test_of_400_peers_at_most_one_is_suspected() -> None:
    fleet = assess_fleet(peers(HOSTS))
    assert len(fleet.of("bad", "suspect")) <= 1
    assert len(fleet.classes) == 1
    assert fleet.classes[0].assessed


def test_every_ill_node_is_found_and_its_device_is_named() -> None:
    fleet_nodes = peers(HOSTS, seed=2)
    halved = {f"n{n:03}": n % 8 for n in range(0, 170, 17)}
    slower = {f"n{n:03}": n % 8 for n in range(3, 173, 17)}
    gone = ("n005", "n077")
    for at, one in enumerate(fleet_nodes):
        if one.name in halved:
            gpu = halved[one.name]
            fleet_nodes[at] = nodes.node(
                2, one.name, slow=nodes.slow_host_link(gpu, 2.0), links={gpu: LoadedLink(5, 8)}
            )
        elif one.name in slower:
            slow = nodes.slow_host_link(slower[one.name], 1.05)
            fleet_nodes[at] = nodes.node(2, one.name, slow=slow)
        elif one.name in gone:
            fleet_nodes[at] = nodes.without(one, "0000:04:00.0")
    fleet = assess_fleet(fleet_nodes)
    ill = {*halved, *slower, *gone}
    assert {host.host for host in fleet.hosts[: len(ill)]} == ill
    assert len(fleet.of("bad", "suspect")) <= len(ill) + 1
    for host, gpu in halved.items():
        kinds = {fault.id: fault for fault in of(fleet, host).faults}
        assert of(fleet, host).status == "bad"
        assert kinds["link"].devices[0].uuid == f"GPU-{host}-{gpu}"
        assert "PCIe 5 x8 of 5 x16" in kinds["link"].statement
    for host, gpu in slower.items():
        (fault,) = of(fleet, host).faults
        assert (of(fleet, host).status, fault.id) == ("suspect", "slow")
        assert [device.place for device in fault.devices] == [f"gpu:{gpu}"]
        assert fault.devices[0].pci == f"0000:{gpu + 1:02x}:00.0"
        assert ";" not in fault.exhibits[0].series
    for host in gone:
        assert "7 of 8 GPUs: none at 0000:04:00.0" in of(fleet, host).faults[0].statement
        assert of(fleet, host).status == "bad"


def test_a_slow_link_behind_a_missing_gpu_has_the_hosts_own_number() -> None:
    fleet_nodes = peers(40)
    ill = nodes.without(nodes.node(1, "n007"), "0000:04:00.0")
    slow = nodes.node(7, "n007", gpus=7, slow=nodes.slow_host_link(5, 1.3))
    fleet_nodes[7] = msgspec.structs.replace(slow, machine=ill.machine)
    faults = of(assess_fleet(fleet_nodes), "n007").faults
    slow_fault = next(fault for fault in faults if fault.id == "slow")
    assert slow_fault.devices[0].place == "gpu:5"
    assert slow_fault.devices[0].pci == "0000:07:00.0"
    assert "device@gpu:5" in slow_fault.again


def test_a_suspicion_comes_with_the_command_that_tests_it() -> None:
    fleet_nodes = peers(40)
    fleet_nodes[3] = nodes.node(1, "n003", slow=nodes.slow_host_link(2, 1.06))
    (fault,) = of(assess_fleet(fleet_nodes), "n003").faults
    words = shlex.split(fault.again)
    assert words[:2] == ["waywiser", "survey"]
    assert nodes.h2d(2) in words
    assert words[words.index("--sizes") + 1].split(",") == ["64MiB"] and nodes.SIZE == 2**26
    assert fault.severity == "warning"


def test_a_suspicion_seen_again_is_a_verdict_and_else_it_is_dropped() -> None:
    fleet_nodes = peers(40)
    slow = nodes.slow_host_link(2, 1.06)
    fleet_nodes[3] = nodes.node(1, "n003", slow=slow)
    later = "2026-11-20T04:00:00.000+00:00"
    again = nodes.node(9, "n003", slow=slow, created=later)
    assert of(assess_fleet([*fleet_nodes, again]), "n003").status == "bad"
    cured = nodes.node(9, "n003", created=later)
    assert of(assess_fleet([*fleet_nodes, cured]), "n003").status == "fine"
    few = msgspec.structs.replace(cured, points=cured.points[30:])  # not what was suspected
    assert of(assess_fleet([*fleet_nodes, few]), "n003").status == "suspect"


def test_classes_are_assessed_apart_and_few_are_not_assessed() -> None:
    others = []
    for n in range(3):
        one = nodes.node(1, f"m{n}", slow=lambda _: 3.0)
        gpus = tuple(msgspec.structs.replace(gpu, name="Old GPU") for gpu in one.machine.gpus)
        machine = msgspec.structs.replace(one.machine, gpus=gpus)
        others.append(msgspec.structs.replace(one, machine=machine))
    fleet = assess_fleet([*others, *peers(20)])
    assert [(each.hosts, each.assessed) for each in fleet.classes] == [(20, True), (3, False)]
    assert {host.host for host in fleet.of("not determined")} == {"m0", "m1", "m2"}
    assert not fleet.of("bad", "suspect")


def test_a_node_without_any_gpu_left_belongs_to_its_class() -> None:
    fleet_nodes = peers(10)
    machine = msgspec.structs.replace(
        nodes.machine("n004"), gpus=(), gpu_reason="the driver does not answer"
    )
    fleet_nodes[4] = Subject("n004", machine)
    (fault,) = of(assess_fleet(fleet_nodes), "n004").faults
    assert fault.statement.startswith("0 of 8 GPUs")
    assert "the driver does not answer" in fault.statement


def test_two_kinds_of_hosts_do_not_accuse_each_other() -> None:
    """Half of them near, half of them far: that is how the class is."""
    near = [nodes.node(1, f"a{n}") for n in range(30)]
    far = [nodes.node(1, f"b{n}", slow=lambda _: 1.15) for n in range(30)]
    assert not assess_fleet([*near, *far]).of("bad", "suspect")


def test_links_that_are_narrow_everywhere_are_how_the_class_is() -> None:
    narrow = {gpu: LoadedLink(4, 16) for gpu in range(8)}
    fleet_nodes = [nodes.node(1, f"n{n}", links=narrow) for n in range(10)]
    assert not assess_fleet(fleet_nodes).of("bad")
    later = "2026-11-20T04:00:00.000+00:00"
    again = [nodes.node(9, f"n{n}", created=later) for n in range(10)]
    few = [msgspec.structs.replace(node, points=node.points[:1], links={}) for node in again]
    assert not assess_fleet([*fleet_nodes, *few]).of("bad")


def test_errors_that_the_driver_reported_make_a_node_suspect() -> None:
    fleet_nodes = peers(10)
    start = Health("t", (GpuHealth(0, "GPU-n002-0", {"PCIe replays": 0}),))
    end = Health("t", (GpuHealth(0, "GPU-n002-0", {"PCIe replays": 2}, {}, (79,)),))
    health = (RunHealth(1, start, end),)
    fleet_nodes[2] = msgspec.structs.replace(fleet_nodes[2], health=health)
    found = of(assess_fleet(fleet_nodes), "n002")
    assert found.status == "suspect"
    assert found.faults[0].statement == "gpu:0 XID 79"
    assert found.faults[0].devices[0].pci == "0000:01:00.0"
    assert found.notes == ("counted while it ran: gpu:0 PCIe replays +2",)


def test_a_path_that_fails_on_one_node_alone_is_a_fault() -> None:
    fleet_nodes = peers(10)
    broken = Failure("wrong-bytes", "byte 7 is 0")
    digests = tuple(
        msgspec.structs.replace(each, blocks=(), failures=(broken,))
        if each.curve == nodes.peer(0, 1)
        else each
        for each in fleet_nodes[2].points
    )
    fleet_nodes[2] = msgspec.structs.replace(fleet_nodes[2], points=digests)
    found = of(assess_fleet(fleet_nodes), "n002")
    assert found.status == "suspect"
    assert "byte 7 is 0" in found.faults[0].statement


def test_a_later_survey_of_one_path_hides_no_fault_of_others() -> None:
    later = "2026-11-20T04:00:00.000+00:00"
    few = nodes.node(9, "n002", created=later)
    few = msgspec.structs.replace(few, points=few.points[:1], links={})
    broken = Failure("wrong-bytes", "byte 7 is 0")
    healthy = peers(12)
    series = tuple(
        msgspec.structs.replace(each, blocks=(), failures=(broken,))
        if each.curve == nodes.peer(0, 1)
        else each
        for each in healthy[2].points
    )
    start = Health("t", (GpuHealth(0, "GPU-n002-0", {"ECC uncorrected": 0}),))
    end = Health("t", (GpuHealth(0, "GPU-n002-0", {"ECC uncorrected": 3}),))
    for changes, said in (
        ({"links": {3: LoadedLink(5, 8)}}, "gpu:3 ran at PCIe 5 x8"),
        ({"points": series}, "byte 7 is 0"),
        ({"health": (RunHealth(1, start, end),)}, f"ECC uncorrected +3 in {healthy[2].called}"),
    ):
        ill = [*healthy, few]
        ill[2] = msgspec.structs.replace(healthy[2], **changes)
        (fault,) = of(assess_fleet(ill), "n002").faults
        assert said in fault.statement
    cured = msgspec.structs.replace(
        nodes.node(9, "n002", created=later), links={3: LoadedLink(5, 16)}
    )
    ill = [*healthy, cured]
    ill[2] = msgspec.structs.replace(healthy[2], points=series, links={3: LoadedLink(5, 8)})
    assert of(assess_fleet(ill), "n002").status == "fine"


def test_an_empty_fleet_is_empty() -> None:
    assert assess_fleet([]).hosts == ()


def test_virtual_machines_with_one_name_are_reported_by_their_gpus() -> None:
    made = peers(8)
    same_name = [msgspec.structs.replace(one, name="vm", file=f"{one.name}.wwp") for one in made]
    again = nodes.node(99, "n002")
    same_name.append(msgspec.structs.replace(again, name="vm", file="n002-again.wwp"))
    hosts = {host.host: host.files for host in assess_fleet(same_name).hosts}
    assert len(hosts) == 8
    assert hosts["vm (n002.wwp)"] == ("n002.wwp", "n002-again.wwp")


def test_hosts_that_are_built_with_fewer_gpus_are_a_class_of_their_own() -> None:
    whole = peers(12)
    halves = [nodes.node(1, f"h{n}", gpus=4) for n in range(6)]
    fleet = assess_fleet([*whole, *halves])
    assert [(each.hosts, each.gpus) for each in fleet.classes] == [(12, 8), (6, 4)]
    assert not fleet.of("bad", "suspect")
    one = nodes.node(1, "h0", gpus=4)  # a healthy node of its own kind, or half of one
    alone = assess_fleet([*whole, one])
    assert not alone.of("bad", "suspect") and of(alone, "h0").status == "not determined"
    expecting = assess_fleet([*whole, one], expected_gpus=8)
    assert [host.host for host in expecting.of("bad")] == ["h0"]
    assert of(expecting, "h0").faults[0].statement.startswith("4 of 8 GPUs")


def on(node: Subject, cpu: str = "", memory_bytes: int = 0, packages: int = 1) -> Subject:
    """The node with another CPU, or with other memory."""
    machine = node.machine
    numa = machine.numa
    if memory_bytes:
        numa = tuple(
            msgspec.structs.replace(each, memory_bytes=memory_bytes // len(numa)) for each in numa
        )
    machine = msgspec.structs.replace(
        machine,
        cpu_model=cpu or machine.cpu_model,
        packages=machine.packages * packages,
        numa=numa,
    )
    return msgspec.structs.replace(node, machine=machine)


@pytest.mark.parametrize(("ill", "pci"), [(8, "0000:05:00.0"), (4, "0000:02:00.0")])
def test_of_nodes_of_mixed_sizes_only_the_one_without_a_gpu_is_bad(ill: int, pci: str) -> None:
    mixed = []
    for gpus in (1, 2, 4, 8):
        for cpu in ("One CPU", "Other CPU"):
            for number in range(4):
                slow = 1.2 if cpu == "Other CPU" else 1.0  # which is how these are
                name = f"{cpu[:2]}{gpus}-{number}"
                made = nodes.node(number, name, gpus=gpus, slow=lambda _, by=slow: by)
                mixed.append(on(made, cpu))
    fleet = assess_fleet(mixed)
    assert len(fleet.classes) == 8 and not fleet.of("bad", "suspect")
    ill_at = next(n for n, node in enumerate(mixed) if node.name == f"On{ill}-2")
    mixed[ill_at] = nodes.without(mixed[ill_at], pci)
    fleet = assess_fleet(mixed)
    assert [host.host for host in fleet.of("bad", "suspect")] == [f"On{ill}-2"]
    (fault,) = of(fleet, f"On{ill}-2").faults
    assert fault.statement == f"{ill - 1} of {ill} GPUs: none at {pci}"


def test_a_host_that_had_more_gpus_lacks_them() -> None:
    """With half of its GPUs it would else be a host that is built with fewer."""
    later = "2026-11-21T04:00:00.000+00:00"
    half = nodes.node(5, "n003", gpus=4, created=later)
    before, after = peers(6), [*peers(6), half]
    assert not assess_fleet(before).of("bad")
    assert [host.host for host in assess_fleet(after).of("bad")] == ["n003"]


def test_hosts_with_other_memory_or_packages_are_not_compared() -> None:
    """What is slow on all hosts with less memory is how these are; a lost module is no class."""
    large = peers(6)
    small = [on(nodes.node(n, f"s{n}", slow=lambda _: 1.3), "", 2**38) for n in range(5)]
    fleet = assess_fleet([*large, *small])
    assert [each.hosts for each in fleet.classes] == [6, 5]
    assert not fleet.of("bad", "suspect")
    names = [each.name for each in fleet.classes]
    assert "512 GiB of memory" in names[0] and "256 GiB of memory" in names[1]
    lost = on(large[2], "", 2**39 * 15 // 16)
    assert len(assess_fleet([*large[:2], lost, *large[3:]]).classes) == 1
    double = [on(node, packages=2) for node in small]
    assert [each.hosts for each in assess_fleet([*large, *double]).classes] == [6, 5]


def test_hosts_with_less_than_half_of_the_gpus_are_another_class() -> None:
    four = [nodes.node(1, f"f{n}", gpus=4) for n in range(8)]
    fleet = assess_fleet([*four, nodes.node(1, "one", gpus=1)])
    assert [(each.hosts, each.gpus) for each in fleet.classes] == [(8, 4), (1, 1)]
    assert not fleet.of("bad", "suspect")
    assert of(fleet, "one").status == "not determined"
    three = nodes.without(nodes.node(1, "three", gpus=4), "0000:02:00.0")
    assert [host.host for host in assess_fleet([*four, three]).of("bad")] == ["three"]
