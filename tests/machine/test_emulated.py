"""Machines whose times mean nothing."""

from __future__ import annotations

import msgspec
import pytest

from profiles import machine
from waywiser.curves.normal import _link
from waywiser.machine.machine import (
    EMULATED,
    Machine,
    SimulatedMachineError,
    machine_line,
    require_real,
)
from waywiser.words import Memory, Path, Transfer, Workload

TEXT = "emulated by QEMU TCG: its times mean nothing"


def emulated() -> Machine:
    return msgspec.structs.replace(machine(), virtual=EMULATED)


def test_an_emulated_machine_says_so_wherever_it_is_described() -> None:
    assert machine_line(emulated()).endswith(TEXT)
    assert TEXT not in machine_line(machine())


def test_times_of_an_emulated_machine_are_not_taken() -> None:
    with pytest.raises(SimulatedMachineError, match=TEXT):
        require_real(emulated(), "a.wwp")
    require_real(emulated(), "a.wwp", allowed="emulated")  # a survey of it goes on
    require_real(machine(), "a.wwp")


def test_times_of_another_kind_than_the_allowed_one_are_not_taken() -> None:
    simulated = msgspec.structs.replace(emulated(), simulated="from check.wwp")
    assert (simulated.unreal, emulated().unreal, machine().unreal) == ("simulated", "emulated", "")
    require_real(simulated, "a.wwp", allowed="simulated")  # a check is tried out with it
    for other, allowed in ((simulated, "emulated"), (emulated(), "simulated")):
        with pytest.raises(SimulatedMachineError):
            require_real(other, "a.wwp", allowed=allowed)


def test_a_virtual_machine_is_not_emulated() -> None:
    assert not msgspec.structs.replace(machine(), virtual="QEMU/KVM").untimed


def test_an_emulated_machine_has_no_normal_values() -> None:
    way = Path(Memory.parse("pinned@numa:0"), Memory.parse("device@gpu:0"), "copy-engine")
    workload = Workload((Transfer(way, 2**26),))
    assert _link(emulated(), workload) == ("", f"the machine is {TEXT}")
