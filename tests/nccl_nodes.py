"""Nodes whose ranks have messages by the fake NCCL, over the fake GPU. Each has workers of its own,
as an agent has."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

import pytest
from msgspec.structs import replace
from tests.measure.probe.scripted_orders import a_machine

from tree import FAKE_FOLDER
from waywiser.machine.machine import Gpu, Machine
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.ranks.nccl_group import NCCL, NcclGroup
from waywiser.words import Workload
from waywiser.words.records import Failure, Order, Rule, Visit

FAKE_NCCL = FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"
PATIENCE_SECONDS = 60.0
RULE = Rule(maximum=6, minimum_seconds=0.0, soft_seconds=0.02, hard_seconds=0.1)
OPTIONS = ProbeOptions(startup_seconds=PATIENCE_SECONDS, memory_bytes=1 << 28)

_T = TypeVar("_T")


def node_with(gpus: int) -> Machine:
    """A node of the fake GPU."""
    return replace(
        a_machine(),
        gpus=tuple(
            Gpu(n, f"GPU-fake0000-0000-0000-0000-{n:012x}", "fake", f"0000:0{n}:00.0")
            for n in range(gpus)
        ),
    )


def use_fakes(environment: dict[str, str], gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the workers that start from now on use the fakes; ``environment`` is that of
    ``fake_native_environment``."""
    for name in ("WAYWISER_NATIVE", "PYTHONPATH"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setenv("WAYWISER_FAKE", f"devices={gpus}")
    monkeypatch.setenv("WAYWISER_NCCL", str(FAKE_NCCL))


def an_order(workload: str, timeout_seconds: float = PATIENCE_SECONDS) -> Order:
    work = Workload.parse(workload)
    return Order(
        workload=work,
        block=1,
        process=NCCL,
        rule=RULE,
        seed=7,
        buffer_bytes=6 * work.bytes,
        expected_seconds=0.2,
        timeout_seconds=timeout_seconds,
    )


class Nodes:
    """Nodes with equal GPUs, which are asked at once."""

    def __init__(self, gpus: int, groups: list[NcclGroup]) -> None:
        self.gpus, self.groups = gpus, groups

    @classmethod
    def start(
        cls, gpus: int, faults: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, owner: ExitStack
    ) -> Nodes:
        """A node for each of ``faults``, which are what its fake NCCL does."""
        groups = []
        for fault in faults:
            monkeypatch.setenv("WAYWISER_FAKE_NCCL", fault)
            groups.append(NcclGroup(range(gpus)))
            owner.callback(groups[-1].close)
        nodes = cls(gpus, groups)
        machine = node_with(gpus)
        for failure in nodes.at_once(lambda _, group: group.get_ready(machine, OPTIONS)):
            assert failure is None, failure
        return nodes

    def at_once(self, ask: Callable[[int, NcclGroup], _T]) -> list[_T]:
        with ThreadPoolExecutor(len(self.groups)) as threads:
            return list(threads.map(ask, range(len(self.groups)), self.groups))

    def connect(self, seconds: float = PATIENCE_SECONDS) -> list[float | Failure]:
        """Numbers the ranks node after node."""
        key = self.groups[0].make_key(PATIENCE_SECONDS)
        assert isinstance(key, str), key
        each, size = self.gpus, self.gpus * len(self.groups)
        return self.at_once(
            lambda n, group: group.connect(key, range(each * n, each * (n + 1)), size, seconds)
        )

    def leave(self) -> None:
        self.at_once(lambda _, group: group.leave())

    def measure(self, workload: str) -> list[Visit]:
        order = an_order(workload)
        return self.at_once(lambda _, group: group.measure(order)[0])
