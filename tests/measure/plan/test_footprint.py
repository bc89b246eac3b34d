from __future__ import annotations

import pytest
from machines import machine

from waywiser.machine.catalogue import Catalogue, footprint
from waywiser.words import Workload

pytestmark = pytest.mark.usefixtures("scripted_whole")

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"


@pytest.mark.parametrize(
    ("text", "total", "on_gpu"),
    [
        (f"{H2D} of 100", 200, 100),
        ("device@gpu:0 -> device@gpu:0 by copy-engine of 100", 200, 200),
        ("rambling@numa:0 -> rambling@gpu:0 by call of 100", 100, 100),
        ("pinned@numa:0 -> device@gpu:0 by tongs as list[piece=10] of 100", 400, 200),
        (f"{H2D} of 100; {H2D} of 50", 300, 150),
        (f"{H2D} of 100; {H2D} of 50 (shared)", 200, 100),
        (f"{H2D} of 100; device@gpu:0 -> pinned@numa:0 by copy-engine of 100 (shared)", 400, 200),
    ],
)
def test_each_buffer_counts_once_where_it_lies(text: str, total: int, on_gpu: int) -> None:
    needed = footprint(Workload.parse(text), Catalogue(machine(gpus=1)))
    assert (needed.total, needed.at["gpu:0"]) == (total, on_gpu)
    assert (needed.staging, needed.gpus) == (0, {0})


def test_staging_counts_with_the_buffers_and_on_the_gpus_that_stage() -> None:
    ferried = "pageable@numa:0 -> device@gpu:0 by ferry of 100"
    needed = footprint(Workload.parse(ferried), Catalogue(machine(gpus=3)))
    assert (needed.total, needed.staging, needed.gpus) == (500, 300, {0, 1, 2})
    assert needed.at == {"numa:0": 100, "gpu:0": 100, "gpu:1": 100, "gpu:2": 100}
    twice = footprint(Workload.parse(f"{ferried}; {ferried} (shared)"), Catalogue(machine(gpus=1)))
    assert (twice.total, twice.staging) == (400, 200)
