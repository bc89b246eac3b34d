"""What pairs of a kind show together, in words."""

from __future__ import annotations

import pytest
from tests.analysis.subjects import SIZES, Seconds, curve, postal, subject

from waywiser.analysis.grouped import Grouped, at_most, named, of_pairs, percent, unclear
from waywiser.analysis.related import Related, relate
from waywiser.stats.order import Interval

EVEN = postal(0, 50e9)


def pair(seconds: Seconds, gpu: int = 0, *, between: float = 0.002, blocks: int = 2) -> Related:
    """A path that takes so long, in relation to one at 50 GB/s."""
    paths = (f"pinned@numa:0 -> device@gpu:{gpu} by sm", f"device@gpu:{gpu} -> pinned@numa:0 by sm")
    series = [
        curve(path, truth, SIZES[12::2], between=between, blocks=blocks)
        for path, truth in zip(paths, (seconds, EVEN), strict=True)
    ]
    return relate(*subject(*series).curves)


def test_most_pairs_decide() -> None:
    slow, even = postal(0, 40e9), EVEN
    most = Grouped("a", (pair(slow), pair(slow, 1), pair(even, 2)))
    assert (most.verdict, most.mark, len(most.differing)) == ("different", "yes", 2)
    few = Grouped("a", (pair(slow), pair(even, 1), pair(even, 2)))
    assert (few.verdict, few.mark, len(few.differing)) == ("same", "no", 1)
    assert Grouped("a", ()).mark == ""


def test_the_one_with_the_middle_effect_stands_for_those_that_differ() -> None:
    group = Grouped(
        "a", tuple(pair(postal(0, rate), n) for n, rate in enumerate((40e9, 30e9, 45e9)))
    )
    _, at = group.typical
    assert at.effect == pytest.approx(0.25, abs=0.01)
    with pytest.raises(ValueError, match="no pair of a differs"):
        _ = Grouped("a", (pair(EVEN),)).typical


def test_the_largest_effect_is_told_where_it_is_far_more() -> None:
    def bump(size: int) -> float:
        return EVEN(size) * (2.0 if 2**20 <= size <= 2**24 else 1.1)

    assert at_most(Grouped("a", (pair(bump),))).startswith(", at most 1")
    assert at_most(Grouped("a", (pair(postal(0, 40e9)),))) == ""


def test_why_nothing_can_be_told_is_told_once_for_all() -> None:
    noisy = Grouped("a", (pair(EVEN, between=0.3),)), Grouped("b", (pair(EVEN, 1, between=0.3),))
    assert list(unclear(noisy)) == [
        "blocks scatter too much, or are too few, to say within 2.5%: a, b"
    ]
    assert list(unclear([Grouped("a", (pair(EVEN),)), Grouped("b", ())])) == []


@pytest.mark.parametrize(
    ("effect", "interval", "text"),
    [
        (0.0512, None, "5.1 %"),
        (-0.0512, Interval(-0.06, -0.04), "5.1 % (4.0–6.0)"),
        (0.42, Interval(0.4, 0.45), "42 % (40–45)"),
        (0.0012, Interval(-0.001, 0.003), "0.12 % (0.00–0.30)"),
    ],
)
def test_percent(effect: float, interval: Interval | None, text: str) -> None:
    assert percent(effect, interval) == text


def test_counts_in_words() -> None:
    assert of_pairs(1, 1, "pair") == "the only pair"
    assert of_pairs(8, 8, "GPU") == "all 8 GPUs"
    assert of_pairs(3, 8, "GPU") == "3 of 8 GPUs"
    assert named(["a", "b"]) == "a, b"
    assert named([str(n) for n in range(10)]).endswith("7 and 2 more")
