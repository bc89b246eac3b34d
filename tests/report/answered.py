"""Answers as analyses give them, made up."""

from __future__ import annotations

from waywiser.curves.answer import Answer, Device, Exhibit, Finding, SheetCell, table
from waywiser.stats.order import Interval

CURVE = "pinned@numa:0 -> device@gpu:0 by copy-engine"


def answers() -> tuple[Answer, ...]:
    """One of each that a report shows."""
    exhibits = (
        Exhibit(f"{CURVE} of 1048576", "rate", 55.4e9, "B/s", Interval(55.3e9, 55.5e9)),
        Exhibit(f"{CURVE} of 8", "latency", 5.5e-6, "s"),
        Exhibit("device@gpu:9 -> device@gpu:0 by sm of 8", "ratio", 0.95, "ratio"),
        Exhibit(CURVE, "half-peak size", 1.5 * 2**20, "B"),
    )
    slow = Finding(
        "slow-link", "error", "gpu:3 reaches host memory at half the rate of its peers.",
        -0.5, Interval(-0.51, -0.49), (Device("gpu:3", "GPU-3", "0000:09:00.0"),), exhibits,
        "reseat the card",
    )  # fmt: skip
    small = Finding("dip", "info", "A small dip at 2 MiB.", -0.06)
    cells = (
        SheetCell("host to GPU"),
        SheetCell("12 %", "yes", CURVE),
        SheetCell("", "no"),
        SheetCell("", "unclear"),
    )
    # wider than a phone, and what is read aloud alone stands at its far end
    wide = (*cells, *(SheetCell("unbroken" * 4) for _ in range(3)), SheetCell("", "unclear"))
    columns = ("kind", "large", "small", "other", "a", "b", "c", "last")
    (found,) = table("Is it so?", columns, (wide,) * 12, "yes, no")
    return (
        Answer(
            "identical", "Are equal links equal?", "One is not.", (slow,), (found,), ("x: few",)
        ),
        Answer("irregular", "Is a curve irregular?", "Hardly.", (small,) * 7),
        Answer("calm", "Is all calm?", "It is."),
        Answer("unasked", "Could it be asked?", "It could not.", unanswered=("no GPU",)),
    )
