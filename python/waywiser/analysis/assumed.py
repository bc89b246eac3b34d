"""What the verdicts of a comparison stand on where blocks do not tell how far they scatter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.compared import PathVerdict
from waywiser.analysis.experience import FOREIGN, SPREAD
from waywiser.analysis.grouped import percent
from waywiser.analysis.likeness import How
from waywiser.analysis.node import Node
from waywiser.analysis.unit import Regime

REGIMES: dict[Regime, str] = {
    "rate": "from 16 MiB on",
    "between": "from 64 KiB on",
    "latency": "below 64 KiB",
    "operation": "of operations",
}
"""How sizes are called, the surest first."""


def assumed(nodes: Sequence[Node], paths: Sequence[PathVerdict]) -> Iterator[str]:
    """One line for each source of noise other than blocks, with the widths that were used."""
    by_tools: dict[str, list[str]] = {}
    for node in nodes:
        if node.tools:
            by_tools.setdefault(", ".join(node.tools), []).append(node.called)
    for tools, files in by_tools.items():
        yield (
            f"results of {tools} ({', '.join(files)}): how far two of its runs lie apart is told "
            "by several files a side, and assumed for one"
        )
    widths = {how: _widths(how, paths) for how in ("others", "spread", "experience", "foreign")}
    if widths["others"]:
        yield (
            "one block a side: the noise of a path is taken from how much the others differ "
            f"({widths['others']}); several files a side tell it, or --preset standard"
        )
    if widths["spread"]:
        yield (
            "one block a side: the noise of some paths is taken from how their samples scatter, "
            f"{SPREAD:g} times that ({widths['spread']}), which is more than runs of others do"
        )
    if widths["experience"]:
        yield (
            "one block a side: two runs are assumed to scatter as they did on H200 "
            f"machines ({widths['experience']}); survey with --preset standard, or give several "
            "files a side"
        )
    if widths["foreign"]:
        yield (
            "one run a side, by another tool: two of its runs are assumed to scatter "
            f"{FOREIGN:g} times as much as processes of waywiser did on H200 machines at rest "
            f"({widths['foreign']}); give several runs a side, which tell it themselves"
        )


def _widths(how: How, paths: Sequence[PathVerdict]) -> str:
    """``standard deviation 0.3 % from 16 MiB on, 5–20 % below 64 KiB``; empty where nothing stands
    on it."""
    found: dict[Regime, list[float]] = {}
    for path in paths:
        for part in path.parts:
            if part.judged.how == how:
                found.setdefault(part.regime, []).append(part.judged.noise)
    told = [f"{_span(found[regime])} {name}" for regime, name in REGIMES.items() if regime in found]
    return f"standard deviation {', '.join(told)}" if told else ""


def _width(share: float) -> str:
    """Beyond the value itself no digit says anything."""
    return percent(share) if share <= 1 else ">100 %"


def _span(widths: Sequence[float]) -> str:
    low, high = _width(min(widths)), _width(max(widths))
    return low if low == high else f"{low.removesuffix(' %')}–{high}"
