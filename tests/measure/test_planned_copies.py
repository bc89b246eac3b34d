"""GPUs that others use are left alone, and no GPU is observed twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import msgspec
import pytest

from measure.plan.machines import machine
from waywiser.machine.catalogue import registered_traits
from waywiser.machine.machine import Machine
from waywiser.measure import who_copies
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.who_copies import observe_planned_copies
from waywiser.profile import WritableProfile
from waywiser.words import Transfer
from waywiser.words.records import WhoCopies

GPUS = 3


def used_by_others(used: Sequence[bool]) -> Machine:
    known = machine(gpus=len(used))
    gpus = [
        msgspec.structs.replace(gpu, processes=("17 python 300 MiB",) if busy else ())
        for gpu, busy in zip(known.gpus, used, strict=True)
    ]
    return msgspec.structs.replace(known, gpus=tuple(gpus), traits=registered_traits())


@pytest.mark.parametrize("used", list(product((False, True), repeat=GPUS)))
def test_a_gpu_that_others_use_is_never_occupied(
    used: tuple[bool, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: dict[int, Sequence[Transfer]] = {}

    def observe(
        requests: Mapping[int, Sequence[Transfer]],
        machine: Machine,
        options: ProbeOptions,
        on_found: Callable[[WhoCopies], None],
    ) -> None:
        requested.update(requests)
        for gpu in requests:
            on_found(WhoCopies(gpu, "2026-11-25T12:00:00+00:00"))

    monkeypatch.setattr(who_copies, "observe_copies", observe)
    known = used_by_others(used)
    plan = make_plan(known, Request(preset="quick", only=("copy-engine",)))
    with WritableProfile.create(tmp_path / "a.wwp", known, {}) as profile:
        observe_planned_copies(profile, known, plan, ProbeOptions())
        found = profile.machine.traits.who_copies
        free = {n for n, busy in enumerate(used) if not busy}
        assert set(requested) == free
        places = {p for each in requested.values() for t in each for p in t.path.places}
        assert {place.index for place in places if place.kind == "gpu"} <= free
        assert {each.gpu for each in found} == set(range(GPUS))
        for each in found:
            assert (each.failure is None) == (each.gpu in free)
            assert each.failure is None or "17 python" in each.failure.reason
        requested.clear()
        observe_planned_copies(profile, known, plan, ProbeOptions())
        assert not requested and profile.machine.traits.who_copies == found
