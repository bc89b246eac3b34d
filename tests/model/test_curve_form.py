"""The form of a curve is chosen by sizes that are held out, of all curves at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from effort import result_and_calls
from waywiser.model.curve_form import CurveForm, forms_of
from waywiser.model.neighbours import between, held_out

MOST_CALLS = 2000
"""Calls for a curve of 26 sizes, at most: a fit for each size that is held out took ten times as
many."""


@given(
    st.lists(st.integers(1, 2**34), min_size=3, max_size=12, unique=True).map(sorted),
    st.data(),
)
def test_neighbours_of_a_size_that_is_held_out_are_those_of_the_others(
    sizes: list[int], data: st.DataObject
) -> None:
    near = st.floats(1e-6, 1.3e-6) | st.floats(1e-7, 1e-3)
    drawn = data.draw(st.lists(near, min_size=len(sizes), max_size=len(sizes)))
    n, t = np.array(sizes, float), np.array(drawn)
    found = held_out(n, t)
    assert np.isnan(found[[0, -1]]).all()
    for k in range(1, len(n) - 1):
        others = np.arange(len(n)) != k
        assert found[k] == between(n[others], t[others], n[k : k + 1]).seconds[0]


def curves(count: int) -> tuple[list[list[int]], list[np.ndarray]]:
    rng = np.random.default_rng(3)
    sizes = [[2**k for k in range(8, 34)] for _ in range(count)]
    switched = np.array([2e-6 + n / 5e9 if n < 2**18 else 3e-5 + n / 2e10 for n in sizes[0]])
    return sizes, [switched * (1 + 0.02 * rng.standard_normal(26)) for _ in range(count)]


def test_forms_of_many_curves_take_few_calls() -> None:
    sizes, seconds = curves(42)
    forms_of(sizes[:1], seconds[:1])  # loads what it needs
    found, calls = result_and_calls(lambda: forms_of(sizes, seconds))
    assert {each.describing[0].high for each in found} == {2**17}
    assert calls < MOST_CALLS * len(sizes), calls / len(sizes)


def test_the_form_of_a_curve_is_its_own_whatever_is_beside_it() -> None:
    sizes, seconds = curves(3)
    sizes += [sizes[0][:9], sizes[0][:2], [4, 4, 4], sizes[0][:9]]
    seconds += [seconds[0][:9], seconds[0][:2], seconds[0][:3], seconds[1][:9]]
    together = forms_of(sizes, seconds)
    for n, t, form in zip(sizes, seconds, together, strict=True):
        (alone,) = forms_of([n], [t])
        assert same(alone, form)
    assert [each.form for each in together[4:6]] == ["neighbours", "neighbours"]


def same(one: CurveForm, other: CurveForm) -> bool:
    return (
        (one.form, one.switches, one.describing) == (other.form, other.switches, other.describing)
        and np.array_equal(one.deviations, other.deviations, equal_nan=True)
    )  # fmt: skip
