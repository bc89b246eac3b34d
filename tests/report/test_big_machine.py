"""A report of a machine that everything was measured on is made while one waits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from report import machines
from waywiser.cli import run

VARIANTS = 322
"""Besides the copies between all places: together 500 curves of 10 sizes."""

MOST_SECONDS = 5.0
MOST_BYTES = 10_000_000
MOST_FIGURES = 40


@pytest.mark.slow
def test_5000_series_of_eight_gpus_take_seconds_and_few_megabytes(tmp_path: Path) -> None:
    file = machines.write(
        tmp_path / "full.wwp", machines.eight_gpus(), blocks=2, count=10, variants=VARIANTS
    )
    output = tmp_path / "report.html"
    start = time.process_time()  # others may be at work here
    assert run(["report", str(file), "-o", str(output)]) == 0
    took = time.process_time() - start
    text = output.read_text()
    assert took < MOST_SECONDS
    assert len(text.encode()) < MOST_BYTES
    assert 10 < text.count("<svg ") <= MOST_FIGURES
    assert f"5000 series of {178 + VARIANTS} curves" in text
    assert text.count('id="curve-') == 178 + VARIANTS
