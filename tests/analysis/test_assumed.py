"""What verdicts stand on, in the notes of a comparison."""

from __future__ import annotations

import pytest

from waywiser.analysis.assumed import assumed
from waywiser.analysis.compared import Part, PathVerdict
from waywiser.analysis.verdict import Judged
from waywiser.stats.order import Interval


def path(noise: float) -> PathVerdict:
    judged = Judged("unclear", 1.0, Interval(0.1, 10.0), 1.0, "others", (1, 1), noise)
    return PathVerdict(
        "a -> b by c", "a -> b by c", "unclear", "", parts=(Part("rate", judged, ()),)
    )


@pytest.mark.parametrize(
    ("noises", "told"),
    [
        ((0.003, 0.2), "(standard deviation 0.30–20 % from 16 MiB on)"),
        ((0.2, 1.05e13), "(standard deviation 20–>100 % from 16 MiB on)"),
        ((3.0, 1.05e13), "(standard deviation >100 % from 16 MiB on)"),
    ],
)
def test_a_width_beyond_the_value_itself_has_no_digits(
    noises: tuple[float, ...], told: str
) -> None:
    (note,) = assumed((), [path(noise) for noise in noises])
    assert told in note
