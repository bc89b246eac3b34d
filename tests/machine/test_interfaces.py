"""Network interfaces, their rates and counters, of captured networks."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from captured_network import FOLDER, NAMES, captured_network

from script_module import script_module
from waywiser.machine.interfaces import (
    FoundInterface,
    InterfaceBytes,
    find_interfaces,
    new_errors,
    rails,
    rate_of_port,
    read_bytes,
    read_errors,
)
from waywiser.machine.system_files import SystemFiles
from waywiser.words.cluster import Interface, Rail

Open = Callable[[str], SystemFiles]


@pytest.fixture
def network(tmp_path: Path) -> Open:
    return lambda name: captured_network(name, tmp_path)


def gbit(rate: float) -> float:
    return rate * 1e9 / 8


def test_captures_are_current() -> None:
    made = dict(script_module(FOLDER / "synthesise.py").texts())
    assert made == {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert len(made) == len(NAMES)


def test_active_ports_come_first_with_their_rates(network: Open) -> None:
    found = [each.interface for each in find_interfaces(network("eight-gpus"))]
    names = [f"mlx5_{n}" for n in (0, 1, 2, 3, 4, 6, 7, 10)]
    assert [each.name for each in found] == [*names, "eno1"]
    assert found[2] == Interface("mlx5_2", "infiniband", gbit(400), 0)
    assert found[7] == Interface("mlx5_10", "infiniband", gbit(200), 0)
    assert found[8] == Interface("eno1", "ethernet", gbit(10), 0)


@pytest.mark.parametrize(
    ("name", "interfaces"),
    [
        (
            "bonded",
            [
                Interface("mlx5_bond_0", "infiniband", gbit(200), 1),
                Interface("bond0", "ethernet", gbit(200), 1),
            ],
        ),
        ("containers", [Interface("ens2f10", "ethernet", gbit(25), 0)]),
        ("container", [Interface("eth0", "ethernet")]),
        ("cloud-vm", [Interface("eth0", "ethernet")]),
    ],
)
def test_what_is_up_is_found(network: Open, name: str, interfaces: list[Interface]) -> None:
    assert [each.interface for each in find_interfaces(network(name))] == interfaces


def test_a_machine_without_sysfs_has_no_interface(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    assert find_interfaces(files) == ()
    assert read_errors((), files) == {}
    assert rails([(0, "0000:01:00.0")], (), files) == (Rail(0, 0),)
    assert rails([], (), files) == (Rail(0),)


def test_error_counters_are_named_by_interface(network: Open) -> None:
    files = network("eight-gpus")
    assert read_errors(find_interfaces(files), files) == {
        "mlx5_2 symbol_error": 1234,
        "mlx5_2 link_downed": 3,
        "mlx5_2 out_of_sequence": 88,
    }


def test_a_lost_carrier_is_counted(network: Open) -> None:
    files = network("bonded")
    assert read_errors(find_interfaces(files), files) == {"bond0 link_downed": 3}


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 2**32 - 1, -5])
def test_what_a_card_that_fell_off_its_bus_counts_is_not_read(tmp_path: Path, value: int) -> None:
    folder = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for name in ("counters/symbol_error", "counters/port_xmit_data", "counters/port_rcv_data"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{value}\n")
    (folder / "counters/link_downed").write_text("3\n")
    found = FoundInterface(
        Interface("mlx5_0", "infiniband"), "/sys/class/infiniband/mlx5_0/ports/1"
    )
    files = SystemFiles(tmp_path)
    assert read_errors([found], files) == {"mlx5_0 link_downed": 3}
    assert read_bytes(found, files) is None


def test_new_errors_are_those_between_two_readings() -> None:
    before = {"mlx5_0 symbol_error": 5, "mlx5_1 symbol_error": 9}
    after = {"mlx5_0 symbol_error": 7, "mlx5_1 symbol_error": 1, "mlx5_1 link_downed": 1}
    assert new_errors(before, after) == {"mlx5_0 symbol_error": 2, "mlx5_1 link_downed": 1}


def test_ports_count_words_and_network_devices_bytes(network: Open) -> None:
    files = network("eight-gpus")
    first, *_, last = find_interfaces(files)
    assert read_bytes(first, files) == InterfaceBytes(1_000_000_000, 1_000_000_000)
    assert read_bytes(last, files) == InterfaceBytes(1_000_000, 2_000_000)
    assert read_bytes(first, SystemFiles("/nowhere")) is None


def test_bytes_of_a_reset_counter_are_unknown() -> None:
    before = InterfaceBytes(100, 200)
    assert InterfaceBytes(150, 260).since(before) == InterfaceBytes(50, 60)
    assert InterfaceBytes(150, 20).since(before) is None


def test_each_gpu_has_the_interface_below_its_switch(network: Open) -> None:
    files = network("eight-gpus")
    gpus = [(n, f"0000:{n + 32:02X}:00.0") for n in range(8)]
    made = rails(gpus, find_interfaces(files), files)
    assert [(each.index, each.gpu) for each in made] == [(n, n) for n in range(8)]
    names = [each.interface.name if each.interface else "" for each in made]
    # The link of mlx5_5 is down: its GPU uses one of the same NUMA node that another uses too.
    assert names == [*(f"mlx5_{n}" for n in range(5)), "mlx5_6", "mlx5_6", "mlx5_7"]


def test_gpus_share_interfaces_evenly_if_none_is_nearer(network: Open) -> None:
    files = network("eight-gpus")
    made = rails([(n, "0000:ff:00.0") for n in range(9)], find_interfaces(files), files)
    names = [each.interface.name for each in made if each.interface]
    assert len(set(names[:7])) == 7  # not the slower one for storage
    assert names[7:] == names[:2]


def test_a_node_without_gpus_has_one_rail_of_its_fastest_interface(network: Open) -> None:
    files = network("eight-gpus")
    rail = rails([], find_interfaces(files), files)
    assert rail == (Rail(0, interface=Interface("mlx5_0", "infiniband", gbit(400), 0)),)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400 Gb/sec (4X NDR)", gbit(400)),
        ("2.5 Gb/sec (1X SDR)", gbit(2.5)),
        ("", 0),
        ("fast", 0),
    ],
)
def test_the_rate_of_a_port_is_read(text: str, rate: float) -> None:
    assert rate_of_port(text) == rate


def test_this_machine_is_read_without_errors() -> None:
    for each in find_interfaces():
        assert each.interface.bytes_per_second >= 0
        counted = read_bytes(each)
        assert counted is None or counted.sent >= 0


def test_devices_of_another_network_namespace_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ethernet() -> list[str]:
        found = find_interfaces(SystemFiles())
        return [each.interface.name for each in found if each.interface.kind == "ethernet"]

    known = {name: index for index, name in socket.if_nameindex()}
    assert set(ethernet()) <= set(known)
    monkeypatch.setattr("socket.if_nametoindex", lambda name: known[name] + 1)
    assert not ethernet()
    monkeypatch.setattr("socket.if_nametoindex", not_found)
    assert not ethernet()


def not_found(name: str) -> int:
    raise OSError(f"no interface with the name {name}")
