"""What a plan measures, as tests ask for it."""

from __future__ import annotations

from waywiser.measure.plan.plan import Plan


def curves(of: Plan) -> dict[str, list[int]]:
    """The sizes of each curve, by its text."""
    sizes: dict[str, list[int]] = {}
    for point in of.points:
        sizes.setdefault(point.curve.text, []).append(point.size)
    return sizes
