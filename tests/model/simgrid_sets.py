"""The sets of a profile on SimGrid, beside the model's own times."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from waywiser.model.capacity import CapacityModel, CapacityModelReader
from waywiser.model.export.simgrid import simgrid_xml
from waywiser.words import Workload

SCRIPT = Path(__file__).with_name("simgrid_spans.py")


class SpanOfSet(NamedTuple):
    """One set by the model and by SimGrid, in seconds."""

    workload: Workload
    model: float
    simgrid: float
    is_queue: bool
    """Whether copies of it wait for one another in the model."""

    @property
    def error(self) -> float:
        return self.simgrid / self.model - 1


def usual_sets(workloads: Sequence[Workload]) -> list[Workload]:
    """Sets of copies by copy engines with default settings, between pinned memory and GPUs."""
    return [each for each in workloads if len(each.transfers) > 1 and _is_usual(each)]


def spans(
    model: CapacityModel, workloads: Sequence[Workload], folder: Path, command: Sequence[str]
) -> list[SpanOfSet]:
    """Each set on a platform of its size. ``command`` is a Python that has SimGrid."""
    reader = CapacityModelReader(model)
    found = []
    for size in sorted({each.transfers[0].bytes for each in workloads}):
        sets = [each for each in workloads if each.transfers[0].bytes == size]
        platform = folder / f"{size}.xml"
        platform.write_text(simgrid_xml(model, size))
        routes = [
            [
                [str(t.path.source.place), str(t.path.destination.place), t.bytes]
                for t in w.transfers
            ]
            for w in sets
        ]
        answer = subprocess.run(
            [*command, str(SCRIPT), str(platform)],
            input=json.dumps(routes),
            capture_output=True,
            text=True,
            check=True,
        )
        for workload, seconds in zip(sets, json.loads(answer.stdout.splitlines()[-1]), strict=True):
            queues = [each.queue for each in reader.demands(workload, reader.known) if each.queue]
            is_queue = len(queues) > len(set(queues))
            span = reader.filled(workload).span
            found.append(SpanOfSet(workload, span, seconds, is_queue))
    return found


def _is_usual(workload: Workload) -> bool:
    return not workload.states and all(
        t.path.executor == "copy-engine"
        and not t.parameters
        and t.layout is None
        and {memory.kind for memory in t.path.ends} <= {"pinned", "device"}
        for t in workload.transfers
    )
