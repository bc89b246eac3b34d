"""A loss of all paths together is the first thing said, and a healthy machine shows none."""

from __future__ import annotations

import pytest

from planted.changes import survey
from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import answer_lines, whole_machine


@pytest.mark.parametrize("loss", [0.03, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_a_loss_of_all_paths_is_the_first_line(seed: int, loss: float) -> None:
    base = survey(1000 + seed)
    slow = survey(2000 + seed, lambda _: 1 / (1 - loss))
    first = next(iter(answer_lines(compare([base], [slow]))))
    assert first.startswith("the whole machine is ") and "% slower: " in first
    amount = float(first.removeprefix("the whole machine is ").partition(" %")[0])
    assert amount == pytest.approx(100 * loss, abs=1.0)
    assert "the whole machine is" in str(check_up(slow, [base]))


@pytest.mark.parametrize("seed", range(30))
def test_a_healthy_machine_shows_none(seed: int) -> None:
    base, again = survey(3000 + 2 * seed), survey(3001 + 2 * seed)
    assert whole_machine(compare([base], [again])) == ""


def test_one_slow_link_is_not_the_whole_machine() -> None:
    base = survey(1)
    slow = survey(2, lambda what: 1.3 if "gpu:1" in str(what) else 1.0)
    assert whole_machine(compare([base], [slow])) == ""
