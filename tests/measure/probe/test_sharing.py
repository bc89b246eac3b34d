"""Manners on a shared machine."""

from __future__ import annotations

import os
import subprocess
import sys
from uuid import uuid4

import msgspec
import pytest
from scripted_orders import a_machine

from waywiser.machine import limits
from waywiser.machine.machine import Machine
from waywiser.measure.probe.sharing import (
    PROCESS_BYTES,
    WAITING_BYTES,
    SharingError,
    SurveyLock,
    memory_bound,
    usable_gpus,
    workers_together,
)

GIB = 1 << 30


def a_lock() -> SurveyLock:
    return SurveyLock(f"waywiser-test-{uuid4()}")


def test_a_second_survey_is_reported_who_runs_the_first() -> None:
    name = f"waywiser-test-{uuid4()}"
    code = f"""
import sys
from waywiser.measure.probe.sharing import SharingError, SurveyLock
try:
    with SurveyLock({name!r}): print("held")
except SharingError as error:
    print(error)
"""

    def second() -> str:
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout

    with SurveyLock(name):
        assert f"surveyed already, by process {os.getpid()} (wait" in second()
    assert second() == "held\n"


def test_the_lock_leaves_when_its_holder_fails() -> None:
    lock = a_lock()
    with pytest.raises(RuntimeError), lock:
        raise RuntimeError
    with lock:
        pass


def test_the_lock_is_not_given_to_workers() -> None:
    with a_lock() as lock:
        assert lock._socket is not None
        assert not lock._socket.get_inheritable()


def gpus(**fields: object) -> Machine:
    """Two GPUs, the second with these fields."""
    machine = a_machine(gpus=2)
    changed = msgspec.structs.replace(machine.gpus[1], **fields)
    return msgspec.structs.replace(machine, gpus=(machine.gpus[0], changed))


def test_a_gpu_in_use_is_left_alone_with_the_reason() -> None:
    machine = gpus(processes=("4711 train.py 9000 MiB",))
    kept, unsupported_paths = usable_gpus(machine, False, GIB)
    assert kept == (0,)
    assert [unsupported.path for unsupported in unsupported_paths] == ["gpu:1"]
    assert "4711 train.py 9000 MiB" in unsupported_paths[0].reason
    assert "--share" in unsupported_paths[0].reason


def test_a_gpu_with_too_little_free_memory_is_left_alone_with_the_reason() -> None:
    kept, unsupported_paths = usable_gpus(gpus(memory_free_bytes=GIB - 1), False, GIB)
    assert kept == (0,)
    assert (
        "1023 MiB of its memory is free, a workload may take 1 GiB" in unsupported_paths[0].reason
    )


@pytest.mark.parametrize("free_bytes", [0, GIB, 2 * GIB])
def test_a_gpu_with_enough_or_unknown_free_memory_is_used(free_bytes: int) -> None:
    assert usable_gpus(gpus(memory_free_bytes=free_bytes), False, GIB) == ((0, 1), [])


def test_sharing_uses_every_gpu() -> None:
    machine = gpus(processes=("4711 train.py 9000 MiB",), memory_free_bytes=1)
    assert usable_gpus(machine, True, GIB) == ((0, 1), [])


def test_memory_is_bounded_by_the_control_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available_bytes", lambda: GIB)
    bound, note = memory_bound(4 * GIB)
    assert bound == GIB - PROCESS_BYTES
    assert "bounded by the control group: 512 MiB of 1 GiB left" in note
    assert memory_bound(bound) == (bound, "")


def test_without_a_limit_memory_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available_bytes", lambda: None)
    assert memory_bound(4 * GIB) == (4 * GIB, "")


def test_a_limit_that_leaves_nothing_is_said_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available_bytes", lambda: PROCESS_BYTES)
    with pytest.raises(SharingError, match="only 512 MiB of memory are left"):
        memory_bound(GIB)


def with_free(gpus: tuple[int, ...], host: int | None) -> Machine:
    """A machine with so much free memory."""
    machine = a_machine(gpus=len(gpus))
    return msgspec.structs.replace(
        machine,
        numa=tuple(msgspec.structs.replace(n, memory_free_bytes=host) for n in machine.numa),
        gpus=tuple(
            msgspec.structs.replace(gpu, memory_free_bytes=free)
            for gpu, free in zip(machine.gpus, gpus, strict=True)
        ),
    )


@pytest.mark.parametrize(
    ("gpus", "host", "limit", "together"),
    [
        ((), 100 * GIB, None, 193),
        ((80 * GIB, 8 * GIB), 100 * GIB, None, 9),
        ((8 * GIB, 80 * GIB), 100 * GIB, None, 9),
        ((8 * GIB, 2 * GIB), 100 * GIB, None, 1),
        ((0, 6 * GIB), None, None, 5),
        ((), 5 * GIB, None, 3),
        ((), 3 * GIB, None, 1),
        ((), 0, None, 1),
        ((), None, None, 1),
        ((8 * GIB,), 100 * GIB, 4 * GIB + PROCESS_BYTES + 3 * WAITING_BYTES, 4),
        ((8 * GIB,), 100 * GIB, GIB, 1),
    ],
)
def test_as_many_workers_wait_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
    gpus: tuple[int, ...],
    host: int | None,
    limit: int | None,
    together: int,
) -> None:
    """The one that measures has buffers of 4 GiB."""
    monkeypatch.setattr(limits, "available_bytes", lambda: limit)
    machine = with_free(gpus, host)
    assert workers_together(machine, range(len(gpus)), 4 * GIB) == together


def test_memory_of_gpus_that_are_not_measured_bounds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "available_bytes", lambda: None)
    machine = with_free((80 * GIB, GIB), 100 * GIB)
    assert workers_together(machine, [0], 4 * GIB) == 1 + 76 * 2
