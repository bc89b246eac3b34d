"""Pages of results say what the code says."""

from __future__ import annotations

from pathlib import Path

from waywiser.model.prediction_interval import WIDTHS

PAGE = Path(__file__).parents[2] / "docs" / "results" / "models" / "held-out.md"


def test_the_page_names_the_constants_of_the_package() -> None:
    text = " ".join(PAGE.read_text().split())
    named = ", ".join(f"{kind} {width:g}" for kind, width in WIDTHS.items())
    assert named in text, "run: python benchmarks/model_truth.py"
    for kind, width in WIDTHS.items():
        (row,) = [
            line
            for line in PAGE.read_text().splitlines()
            if line.startswith(f"| {kind} |") and line.count("|") == 7
        ]
        fitted = float(row.split("|")[6])
        assert abs(fitted - width) <= 0.1, f"the constant of {kind} is not that of the profiles"
