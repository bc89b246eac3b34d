"""A report of a machine that everything was measured on is made while one waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from effort import result_and_calls
from report import machines
from waywiser.cli import run

VARIANTS = 122
"""Curves that are added to the copies between all places: 300 curves of 10 sizes in all."""

MOST_CALLS = 15_000_000
"""10 million take some four seconds."""
MOST_BYTES = 10_000_000
MOST_FIGURES = 40


@pytest.mark.slow
def test_3000_series_of_eight_gpus_take_few_calls_and_megabytes(tmp_path: Path) -> None:
    file = machines.write(
        tmp_path / "full.wwp", machines.eight_gpus(), blocks=2, count=10, variants=VARIANTS
    )
    output = tmp_path / "report.html"
    code, calls = result_and_calls(lambda: run(["report", str(file), "-o", str(output)]))
    assert code == 0
    text = output.read_text()
    assert calls < MOST_CALLS
    assert len(text.encode()) < MOST_BYTES
    assert 10 < text.count("<svg ") <= MOST_FIGURES
    assert f"3000 series of {178 + VARIANTS} curves" in text
    assert text.count('id="curve-') == 178 + VARIANTS
