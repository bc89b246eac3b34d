"""A machine whose registry and probe answer at once, for surveys without a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from measure.plan import scripted_native
from measure.plan.machines import machine
from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.measure import scope, survey_run
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.words.records import Order, Samples, Visit


def answer(order: Order) -> Visit:
    """10 GB/s beyond a microsecond, so that large sizes saturate."""
    seconds = 1e-6 + order.workload.bytes / 10e9
    samples = Samples(
        span=(seconds,) * 6,
        host=(seconds,) * 6,
        skew=(0.0,) * 6,
        repetitions=(1,) * 6,
        flags=(0,) * 6,
        transfers=((seconds,),) * 6,
    )
    return Visit(order.workload, order.block, "converged", "2026-01-01T00:00:00", samples=samples)


@contextmanager
def scripted_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Machine], None]]:
    """A machine with one GPU, a registry and a probe that answer at once; call it to change the
    machine."""
    monkeypatch.setenv(native.MODULE_VARIABLE, scripted_native.__name__)
    native.load.cache_clear()

    def become(now: Machine) -> None:
        monkeypatch.setattr(scope, "live_machine", lambda *_: now)
        monkeypatch.setattr(survey_run, "live_machine", lambda *_: now)

    def run_orders(orders: Iterable[Order], *_: Any, on_visit: Any, **__: Any) -> None:
        for order in orders:
            on_visit(answer(order))

    become(machine(gpus=1))
    monkeypatch.setattr(survey_run, "run_orders", run_orders)
    monkeypatch.setattr(
        survey_run, "SurveyLock", lambda: SurveyLock(f"waywiser-test-{os.getpid()}")
    )
    monkeypatch.setattr(scope, "_unavailable_reason", lambda: "")
    yield become
    native.load.cache_clear()
