"""A bandwidth that nothing can carry is imported with a note, whatever tool states it."""

from __future__ import annotations

import pytest

from waywiser.exchange.imports.foreign_file import ForeignSeries
from waywiser.exchange.imports.plausible import with_warning
from waywiser.exchange.imports.summary import summary
from waywiser.words import Workload

LINK = "pinned@numa:0 -> device@gpu:0 by copy-engine of 512MiB"
WITHIN = "device@gpu:0 -> device@gpu:0 by copy-engine of 512MiB"
BOTH = f"{LINK}; device@gpu:0 -> pinned@numa:0 by copy-engine of 512MiB"


@pytest.mark.parametrize(
    ("text", "rates", "is_noted"),
    [
        (LINK, (55.0,), False),
        (LINK, (1800.0,), False),
        (LINK, (55_000.0,), True),
        (LINK, (55e6,), True),
        (WITHIN, (8000.0,), False),
        (WITHIN, (55_000.0,), False),
        (WITHIN, (55e6,), True),
        (BOTH, (50.0, 55.0), False),
        (BOTH, (50.0, 55e6), True),
    ],
)
def test_only_what_nothing_carries_is_noted(
    text: str, rates: tuple[float, ...], is_noted: bool
) -> None:
    workload = Workload.parse(text)
    sizes = [transfer.bytes for transfer in workload.transfers]
    seconds = [size / (rate * 1e9) for size, rate in zip(sizes, rates, strict=True)]
    series = ForeignSeries(
        "n", "n", workload, "device", summary(max(seconds), seconds), notes=("a",)
    )
    found = with_warning(series)
    assert found.samples == series.samples and found.notes[0] == "a"
    assert [note for note in found.notes if "more than any link" in note] == list(found.notes[1:])
    assert len(found.notes) == 1 + is_noted


def test_a_latency_is_never_noted() -> None:
    workload = Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine of 8")
    series = ForeignSeries("n", "n", workload, "device", summary(1e-9))
    assert with_warning(series) == series
