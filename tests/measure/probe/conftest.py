"""A run of scripted workers that looks for what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from scripted_orders import (
    PATIENCE_SECONDS,
    a_command,
    a_machine,
    is_alive,
    processes_in,
    wait_until,
)

from waywiser.machine.machine import Machine
from waywiser.measure.probe import member
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import Progress, run_orders
from waywiser.words.records import Locality, Order, Process, Visit


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    """A folder in which every scripted worker, and child of one, leaves a file."""
    folder = tmp_path / "pids"
    folder.mkdir()
    return folder


@pytest.fixture
def run(pids: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Visit]]]:
    """Runs orders with scripted workers: the visits. Afterwards no process and no descriptor of
    the run may be left."""
    monkeypatch.setattr(member, "_EXIT_SECONDS", PATIENCE_SECONDS)
    descriptors = set(Path("/proc/self/fd").iterdir())

    def run(
        orders: Iterable[Order],
        *arguments: str,
        machine: Machine | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        on_visit: Callable[[Visit], None] | None = None,
        on_locality: Callable[[Locality], None] | None = None,
        coming: Callable[[], Sequence[Process]] = tuple,
        **options: object,
    ) -> list[Visit]:
        visits: list[Visit] = []
        settings = {
            "startup_seconds": PATIENCE_SECONDS,
            "locating_seconds": PATIENCE_SECONDS,
            "command": a_command("--pids", str(pids), *arguments),
            **options,
        }
        run_orders(
            orders,
            machine or a_machine(),
            options=ProbeOptions(**settings),  # type: ignore[arg-type]
            on_visit=on_visit or visits.append,
            on_progress=on_progress,
            on_locality=on_locality,
            coming=coming,
        )
        return visits

    yield run
    assert wait_until(lambda: not any(map(is_alive, processes_in(pids))))
    assert set(Path("/proc/self/fd").iterdir()) == descriptors
