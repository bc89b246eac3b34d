"""Two curves, size by size."""

from __future__ import annotations

import pytest
from tests import profiles
from tests.analysis.subjects import SIZES, curve, postal, subject

from waywiser.analysis.related import Related, relate

QUIET, BACK = profiles.H2D, profiles.D2H


def related(a: object, b: object, **how: object) -> Related:
    """Of a curve that takes ``a`` to one that takes ``b``."""
    found = subject(curve(QUIET, a, **how), curve(BACK, b, **how))  # type: ignore[arg-type]
    return relate(*found.curves)


def test_five_percent_are_found_at_the_sizes_where_they_are() -> None:
    found = related(postal(5e-6, 50e9), postal(5e-6, 50e9 * 1.05))
    assert found.verdict == "different"
    assert found.rates.verdict == "different"
    assert (found.small.verdict, found.medium.verdict) == ("same", "different")
    assert found.worst is not None
    assert found.worst.effect == pytest.approx(0.05, abs=0.01)
    assert found.ranges.endswith("to 1 GiB")


def test_equal_curves_are_told_to_be_the_same() -> None:
    found = related(postal(5e-6, 50e9), postal(5e-6, 50e9))
    assert (found.verdict, found.different, found.ranges, found.worst) == ("same", (), "", None)


def test_a_difference_within_the_margin_is_none() -> None:
    found = related(postal(5e-6, 50e9), postal(5e-6, 50.5e9))
    assert found.verdict == "same"


@pytest.mark.parametrize("between", [0.01, 0.05, 0.3])
def test_equal_curves_with_noisy_blocks_are_hardly_ever_told_to_differ(between: float) -> None:
    false = 0
    for seed in range(40):
        found = related(
            postal(5e-6, 50e9), postal(5e-6, 50e9), sizes=SIZES[::2], between=between, seed=seed
        )
        false += found.verdict == "different"
    assert false <= 1


def test_one_size_alone_does_not_count_where_it_has_neighbours() -> None:
    def bump(size: int) -> float:
        return (5e-6 + size / 50e9) * (1.2 if size == 2**20 else 1.0)

    assert related(bump, postal(5e-6, 50e9)).verdict == "same"
    alone = related(bump, postal(5e-6, 50e9), sizes=(2**20,))
    assert alone.verdict == "different"


def test_a_far_size_says_nothing_against_another() -> None:
    """As of a path that ought to be like others, where little but 64 MiB tells of the rate."""
    found = related(postal(9e-6, 390e9), postal(9e-6, 414e9), sizes=(8, 2**20, 2**26))
    assert [at.bytes for at in found.different] == [2**26]


def test_many_sizes_do_not_hide_what_six_blocks_show() -> None:
    """By ranks alone the smallest p-value of six blocks and six is 0.2 %."""
    found = related(postal(5e-6, 50e9), postal(5e-6, 50e9 * 1.1), blocks=6)
    assert len(found.sizes) == 28
    assert found.rates.verdict == "different"


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "same"), (1.08, "different")])
def test_single_blocks_are_judged_by_what_is_within(ratio: float, verdict: str) -> None:
    found = related(postal(0, 50e9 / ratio), postal(0, 50e9), sizes=(2**26,), blocks=1)
    assert found.verdict == verdict
    assert found.sizes[0].comparison.how == "within blocks"


def test_only_sizes_that_both_have_are_compared() -> None:
    found = subject(curve(QUIET, postal(0, 1e9), (8, 64)), curve(BACK, postal(0, 1e9), (64, 512)))
    assert [each.bytes for each in relate(*found.curves).sizes] == [64]


@pytest.mark.parametrize(
    ("path", "ratio", "verdict"),
    [
        ("pinned@numa:0 -> device@gpu:0 by sm", 1.06, "different"),
        ("pageable@numa:0 -> device@gpu:0 by copy-engine", 1.06, "unclear"),
        ("pageable@numa:0 -> device@gpu:0 by copy-engine", 1.4, "different"),
    ],
)
def test_one_block_of_a_noisy_path_tells_only_what_is_far_off(
    path: str, ratio: float, verdict: str
) -> None:
    twin = path.replace("gpu:0", "gpu:1")
    found = subject(
        curve(path, postal(0, 50e9 / ratio), (2**26,), blocks=1),
        curve(twin, postal(0, 50e9), (2**26,), blocks=1),
    )
    assert relate(*found.curves).verdict == verdict
