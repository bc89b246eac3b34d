from __future__ import annotations

from waywiser.plan.coverage import EQUAL_ROUNDS, PRINCIPAL_ROUNDS, best_coverage, coverage_order
from waywiser.plan.curves import Curve
from waywiser.plan.point import Point
from waywiser.words import Transfer

MIB = 2**20
SIZES = tuple(2**n for n in range(3, 31))


def points(text: str, *, principal: bool = True, conditional: int = 0) -> list[Point]:
    """A second each; the last ``conditional`` ones under a condition."""
    curve = Curve((Transfer.parse(text),), principal=principal)
    first = len(SIZES) - conditional
    return [
        Point(curve, size, curve.at(size), 2 * size, 1.0, conditional=n >= first)
        for n, size in enumerate(SIZES)
    ]


def kept(of: list[Point], seconds: float) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for point in best_coverage(of, seconds):
        found.setdefault(point.curve.text, []).append(point.size)
    return found


MAIN, BESIDE = "a@numa:0 -> b@gpu:0 by x", "a@numa:0 -> b@gpu:0 by x[p=1]"


def test_a_rate_comes_first_then_a_latency_then_what_is_furthest() -> None:
    assert list(coverage_order(SIZES))[:3] == [16 * MIB, 8, 2**13]
    assert sorted(coverage_order(SIZES)) == list(SIZES)


def test_secondary_curves_get_one_size_for_several_of_a_principal_one() -> None:
    both = [*points(MAIN), *points(BESIDE, principal=False)]
    assert set(kept(both, PRINCIPAL_ROUNDS)) == {MAIN}
    some = kept(both, 2 * PRINCIPAL_ROUNDS + 2)
    assert len(some[BESIDE]) == 1 or len(some[MAIN]) >= PRINCIPAL_ROUNDS * len(some[BESIDE])
    assert kept(both, 56) == {MAIN: list(SIZES), BESIDE: list(SIZES)}


def test_the_certain_sizes_of_all_curves_come_before_conditional_ones() -> None:
    other = MAIN.replace("gpu:0", "gpu:1")
    of = [*points(MAIN), *points(other, conditional=25)]
    assert kept(of, len(SIZES) + 3) == {MAIN: list(SIZES), other: list(SIZES[:3])}


def test_what_is_certain_comes_before_what_is_conditional() -> None:
    of = points(MAIN, conditional=25)
    assert kept(of, 3) == {MAIN: list(SIZES[:3])}
    assert len(kept(of, 10)[MAIN]) == 10


def test_the_first_of_a_class_comes_before_the_others_of_it() -> None:
    first, other = points(MAIN), points(MAIN.replace("gpu:0", "gpu:1"))
    equal = [Point(p.curve, p.size, p.workload, 0, 1.0, like=MAIN) for p in other]
    assert set(kept([*equal, *first], EQUAL_ROUNDS)) == {MAIN}
    assert len(kept([*equal, *first], EQUAL_ROUNDS + 2)) == 2
