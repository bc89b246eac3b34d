"""Pages of results say what the code says."""

from __future__ import annotations

from pathlib import Path

from waywiser.model.prediction_interval import WIDTHS

PAGE = Path(__file__).parents[2] / "docs" / "results" / "models" / "held-out.md"


def test_the_page_names_the_constants_of_the_package() -> None:
    text = " ".join(PAGE.read_text().split())
    named = ", ".join(f"{kind} {width:g}" for kind, width in WIDTHS.items())
    assert named in text, "run: python benchmarks/model_truth.py"
    intervals = PAGE.read_text().partition("\n## Intervals\n")[2].splitlines()
    (constant,) = [
        line.split("|").index(" constant of all ")
        for line in intervals
        if " constant of all " in line
    ]
    for kind, width in WIDTHS.items():
        row = next(line for line in intervals if line.startswith(f"| {kind} |"))
        fitted = float(row.split("|")[constant])
        assert abs(fitted - width) <= 0.1, f"the constant of {kind} is not that of the profiles"
