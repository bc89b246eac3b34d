from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from machine.captured import machine
from waywiser.machine import native
from waywiser.machine.native_words import native_machine


def test_places_and_how_they_see_each_other_are_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in = SimpleNamespace(
        Machine=SimpleNamespace, NumaNode=SimpleNamespace, GpuPlace=SimpleNamespace
    )
    native.load.cache_clear()
    monkeypatch.setitem(sys.modules, "stand_in", stand_in)
    monkeypatch.setenv(native.MODULE_VARIABLE, "stand_in")
    made = native_machine(machine("two-socket-4gpu"))
    native.load.cache_clear()
    assert [node.index for node in made.numa] == [0, 1]
    assert made.numa[1].cpus == list(range(16, 32))
    assert vars(made.gpus[2]) == {
        "index": 2,
        "uuid": machine("two-socket-4gpu").gpus[2].uuid,
        "numa": 1,
        "peers": [0, 1, 3],
        "pageable_access": False,
    }
