"""No verdict claims more than was measured: each states how much was compared, and what could have
been missed."""

from __future__ import annotations

import random
import re

import msgspec
import pytest

from analysis.comparison import nodes
from analysis.history import planted_nights
from analysis.policy.test_advice import advice
from planted.changes import slow_path, survey
from waywiser.analysis.comparison.checkup import Checkup, check_up
from waywiser.analysis.comparison.comparison_text import answer_lines, hidden_text
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.comparison.node import Node
from waywiser.analysis.history.history import history_of
from waywiser.analysis.history.history_texts import path_text
from waywiser.report.parts import Words
from waywiser.report.views.fleet import fleet_parts

COUNTS = re.compile(r"\d+ (regression|suspected|improvement|no change|not decided|missing|skipped)")
HIDDEN = re.compile(r"\d+ of \d+ not decided, a loss (below [\d.]+ %|of any size) could hide")
LIMITS = re.compile(
    r"would have been found|the noise hides|not decidable|smallest detectable"
    r"|its new surveys do not all show it|one value of"
)


def without_replicates(node: Node) -> Node:
    """One process of each series."""
    series = tuple(msgspec.structs.replace(each, blocks=each.blocks[:1]) for each in node.series)
    return msgspec.structs.replace(node, series=series)


def only(node: Node, *texts: str) -> Node:
    """The paths with one of the texts."""
    series = tuple(each for each in node.series if any(text in each.text for text in texts))
    return msgspec.structs.replace(node, series=series)


def checks() -> dict[str, Checkup]:
    slow = slow_path(nodes.h2d(1), 1.12)
    base = [survey(seed) for seed in range(20, 23)]
    return {
        "healthy, one baseline": check_up(survey(1), base[:1]),
        "healthy, three baselines": check_up(survey(2), base),
        "slow": check_up(survey(3, slow), base[:1]),
        "slow again": check_up(survey(4, slow), base[:1], repeats=[survey(5, slow)]),
        "slow, three baselines": check_up(survey(6, slow), base),
        "one process": check_up(without_replicates(survey(7)), [without_replicates(base[0])]),
        "one path": check_up(only(survey(8), nodes.h2d(0)), [base[0]]),
        "another path": check_up(only(survey(9), nodes.h2d(0)), [only(base[0], nodes.peer(0, 1))]),
        "noisy": check_up(
            nodes.node(1, gpus=2, blocks=8, between_blocks=0.2),
            [nodes.node(2, gpus=2, blocks=8, between_blocks=0.2)],
        ),
        "max hidden": check_up(survey(10), base[:1], max_hidden=0.001),
    }


@pytest.fixture(scope="module")
def checked() -> dict[str, Checkup]:
    return checks()


def test_each_line_of_a_check_states_the_paths_and_what_could_hide(
    checked: dict[str, Checkup],
) -> None:
    assert {each.status for each in checked.values()} == {"ok", "failed", "inconclusive"}
    for what, each in checked.items():
        line = str(each)
        if each.comparison.measured:
            assert COUNTS.search(line), (what, line)
            if each.comparison.may_hide:
                assert HIDDEN.search(line), (what, line)
        else:
            assert "no path in common" in line or "missing" in line, (what, line)
        if each.status == "ok":
            hidden = hidden_text(each.comparison)
            assert hidden and "any size" not in hidden, (what, line)


def test_each_group_of_a_comparison_states_which_loss_would_be_found(
    checked: dict[str, Checkup],
) -> None:
    for what, each in checked.items():
        head, *lines = answer_lines(each.comparison)
        assert "threshold" in f"{head} {' '.join(lines)}", what
        groups = [line for line in lines if re.match(r"  \S.* (no change|not decided): ", line)]
        for line in groups:
            assert LIMITS.search(line), (what, line)


def test_few_surveys_state_the_noise_that_they_do_not_show(checked: dict[str, Checkup]) -> None:
    for what, each in checked.items():
        notes = " ".join(each.notes)
        if "three" in what or not each.comparison.measured:
            assert "noise between surveys" not in notes, what
        elif each.comparison.of("suspected"):
            assert re.search(r"deviate by [\d.]+%.* confirm a loss of [\d.]+%", notes), what
    assert "is assumed to be 1.0%" in " ".join(checked["one path"].notes)


@pytest.mark.parametrize("hosts", [1, 3, 4, 8])
@pytest.mark.parametrize("blocks", [1, 4])
def test_a_fleet_states_what_a_host_that_is_fine_could_hide(hosts: int, blocks: int) -> None:
    rng = random.Random(hosts)
    seeds = rng.sample(range(1000), hosts)
    made = [nodes.node(seed, f"n{at}", gpus=2, blocks=blocks) for at, seed in enumerate(seeds)]
    found = assess_fleet(made)
    text = "\n".join(part.text for part in fleet_parts(found) if isinstance(part, Words))
    assert f"of {hosts} host" in text
    if found.of("fine"):
        assert re.search(r"smallest loss of one host that is found: \d[\d.]* %", text)
    else:
        assert "not determined" in text


@pytest.mark.parametrize("nights", [2, 4, 12])
def test_a_path_without_a_change_states_its_nights_and_which_change_is_found(nights: int) -> None:
    found = history_of(planted_nights.planted("n1", nights, 7))
    steady = [path for path in found.paths if path.last_change is None]
    assert steady
    for path in steady:
        limit = r"changes from [\d.]+ % on are found|how large a change would be found is not known"
        assert re.search(rf"no change in {nights} nights, (and )?({limit})", path_text(path))


@pytest.mark.parametrize("polite", [False, True])
@pytest.mark.parametrize("bytes_", ["4KiB", "64MiB"])
def test_a_method_is_advised_among_so_many(bytes_: str, polite: bool) -> None:
    why = advice(bytes_, polite=polite).why
    assert re.search(r"of \d+ measured methods|takes [\d.]+% less time", why), why
