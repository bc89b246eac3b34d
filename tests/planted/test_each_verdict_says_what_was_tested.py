"""No verdict claims more than was measured: each states how much was compared, and what could have
been missed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest
from tests.model.test_message_strategies import drawn
from tests.model.test_message_strategies import read as read_strategies

from analysis.cluster.stored_clusters import stored_cluster
from analysis.comparison import nodes
from analysis.history import planted_nights
from analysis.policy.test_advice import advice
from kept import RESULTS, unpacked
from planted.changes import slow_path, survey
from verb_output import Said
from waywiser.analysis.comparison.checkup import Checkup, check_up
from waywiser.analysis.comparison.comparison_text import answer_lines, hidden_text
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.history.history import history_of
from waywiser.analysis.history.history_texts import path_text
from waywiser.analysis.questions.all_answers import answers
from waywiser.curves.subject import Subject
from waywiser.fitness.diagnosis import CHECKS
from waywiser.measure.plan.requested_workloads import parse_workload
from waywiser.model.machine_model import fitted_model
from waywiser.model.message_strategies import MessageStrategies
from waywiser.model.prediction import Prediction, Predictor
from waywiser.model.strategy_table import strategy_table
from waywiser.profile import Profile
from waywiser.render.parts import Words
from waywiser.render.views.doctor import finding_parts
from waywiser.render.views.fleet import fleet_parts
from waywiser.render.views.prediction import prediction_parts
from waywiser.render.views.strategies import strategy_parts

COUNTS = re.compile(r"\d+ (regression|suspected|improvement|no change|not decided|missing|skipped)")
HIDDEN = re.compile(r"a loss (below [\d.]+ %|of any size) could hide on a (headline )?path")
LIMITS = re.compile(
    r"would have been found|the noise hides|not decidable|smallest detectable"
    r"|its new surveys do not all show it|one value of"
)


def without_replicates(node: Subject) -> Subject:
    """One process of each series."""
    series = tuple(msgspec.structs.replace(each, blocks=each.blocks[:1]) for each in node.points)
    return msgspec.structs.replace(node, points=series)


def only(node: Subject, *texts: str) -> Subject:
    """The paths with one of the texts."""
    series = tuple(each for each in node.points if any(text in each.text for text in texts))
    return msgspec.structs.replace(node, points=series)


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


def test_each_check_states_the_paths_and_what_could_hide(
    checked: dict[str, Checkup],
) -> None:
    assert {each.status for each in checked.values()} == {"ok", "failed", "inconclusive"}
    for what, each in checked.items():
        first, line = str(each), each.tested
        assert each.reasons or first.endswith(line), (what, first)
        assert each.reasons or len(first) <= 100, (what, first)
        counted = sum(int(number) for number in re.findall(r"\b(\d+) [a-z]", line.split(";")[0]))
        assert counted == len(each.comparison.paths), (what, line)
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


H2D, P2P = "pinned@numa:0 -> device@gpu:{} by copy-engine", "device@gpu:{} -> device@gpu:{} by {}"
ENGINE = "copy-engine"
PREDICTED = (
    *(f"{H2D.format(0)} of {size}" for size in ("8B", "1MiB", "96MiB")),
    *(f"{H2D.format(0)} of {size}; {H2D.format(1)} of {size}" for size in ("64KiB", "64MiB")),
    f"{H2D.format(0)} of 64MiB; device@gpu:1 -> pinned@numa:0 by copy-engine of 64MiB",
    f"{P2P.format(0, 1, ENGINE)} of 64MiB; {P2P.format(1, 0, ENGINE)} of 64MiB",
    f"{P2P.format(0, 0, ENGINE)} of 64MiB; {P2P.format(1, 1, ENGINE)} of 64MiB",
    f"{P2P.format(0, 1, ENGINE)} of 64MiB; {H2D.format(1)} of 4MiB",
)
TWO = "2026-11-20-h200/two-gpus/standard"
SURVEYS = (TWO, "2026-11-20-h200/one-gpu/quick", "2026-11-22-check-two-gpus/check-1")

BASED = re.compile(
    r"Limited by \S.*: [\d.]+ GB/s|Limited by the .*: one transfer runs after another|"
    r"Unknown: the capacit(y|ies) of \S.* not measured|One alone takes|"
    r"Of \d+ resources? (that its transfers share|on its way)"
    r"(, \d+ with a known capacity, none limits it| no capacity is known)|"
    r"The model has no resource (that its transfers share|on its way)"
)
"""What sets the time of a prediction, or of how much it is known that it does not."""


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    file = unpacked(RESULTS / f"{TWO}.wwp.xz", tmp_path_factory.mktemp("two") / "two.wwp")
    with Profile.open(file) as profile:
        return Predictor(fitted_model(profile))


def lines_of(found: Prediction) -> list[str]:
    return [part.text for part in prediction_parts(found) if isinstance(part, Words)]


@pytest.mark.parametrize("text", PREDICTED)
def test_a_prediction_states_what_limits_it_or_of_how_much_that_is_known(
    predictor: Predictor, text: str
) -> None:
    found = predictor.predict(parse_workload(text))
    lines = lines_of(found)
    said = [line for line in lines if BASED.match(line)]
    assert said, lines
    known = re.match(r"Of (\d+) resources?.*, (\d+) with", said[0])
    if known:
        assert 0 < int(known[2]) <= int(known[1]) == found.resources
    assert found.with_capacity <= found.resources
    assert "It rests on measurements of:" in lines and found.rests_on
    interval = r"\(95 %: \S+ \S+ to \S+ \S+\)|or more, since a limit is unknown"
    assert re.search(interval, lines[0])


def test_the_resources_of_a_prediction_are_those_that_several_transfers_share(
    predictor: Predictor,
) -> None:
    """Two copies to two GPUs share the memory of the host, and copies within two GPUs nothing."""
    one, two, apart = (predictor.predict(parse_workload(PREDICTED[n])) for n in (2, 4, 7))
    assert one.resources > two.resources > apart.resources == 0
    assert lines_of(apart)[1].startswith("The model has no resource that its transfers share")


NONE = re.compile(r"\b(no|none|not|nothing|never)\b", re.IGNORECASE)
UNANSWERED = re.compile(r"Not (determined|applicable|measured)")


@cache
def subject_of(name: str, folder: Path) -> Subject:
    file = unpacked(RESULTS / f"{name}.wwp.xz", folder / "kept.wwp")
    with Profile.open(file) as profile:
        return Subject.of(profile)


@pytest.mark.parametrize("name", SURVEYS)
def test_each_answer_of_a_report_that_says_none_says_of_how_many(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = list(answers(subject_of(name, tmp_path_factory.mktemp("kept"))))
    assert len(found) > 5
    for each in found:
        for sentence in re.split(r"(?<=[.;]) ", each.summary):
            if NONE.search(sentence) and not UNANSWERED.match(each.summary):
                assert re.search(r"\d", sentence), (each.question, each.summary)


CLAIM = re.compile(
    r"\b(no (change|difference|effect|warning|error|finding|fault|loss|other|pair|link|path|set)s?"
    r"|none|nothing|never)\b"
)
"""What says that something is not there."""

UNSEEN = re.compile(r"Not determined|would not be seen|nothing known")
"""What says that this is not known."""

TWO_CHECKS = "check-1.wwp", "check-2.wwp"
H2D_ENDS = ("--from", "pinned@numa:0", "--to", "device@gpu:0", "--bytes", "64MiB")
VERBS = (
    *(("show", "two.wwp"), ("show", "quick.wwp"), ("show", "two.wwp", "--all")),
    *(("doctor", "two.wwp"), ("advise", "two.wwp", *H2D_ENDS)),
    ("advise", "two.wwp", "--placement"),
    *(("predict", "two.wwp", "-w", text) for text in PREDICTED[3:6]),
    *(("predict", "two.wwp"), ("advise", "two.wwp")),
    *(("compare", *TWO_CHECKS), ("compare", "quick.wwp", "two.wwp")),
    *(("check", TWO_CHECKS[1], "--baseline", TWO_CHECKS[0]), ("check", *TWO_CHECKS)),
    *(("check", *TWO_CHECKS), ("cluster", "show", "cluster")),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("printed")
    for name, kept in (
        ("two", TWO),
        ("quick", SURVEYS[1]),
        *((f"check-{n}", f"2026-11-22-check-two-gpus/check-{n}") for n in (1, 2)),
    ):
        unpacked(RESULTS / f"{kept}.wwp.xz", made / f"{name}.wwp")
    stored_cluster(made / "cluster")
    return made


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_each_printed_line_that_says_none_has_a_number(said: Said, words: tuple[str, ...]) -> None:
    lines = said(*words).splitlines()
    assert lines
    for line in filter(CLAIM.search, lines):
        assert re.search(r"\d", line) or UNSEEN.search(line), line


def test_a_machine_that_is_fit_is_so_by_a_stated_number_of_checks() -> None:
    for missing in ((), ("load",)):
        *_, last = finding_parts((), missing)
        assert isinstance(last, Words)
        of_profile = " of what the profile stores" if missing else ""
        assert last.text.endswith(f"no findings in {len(CHECKS)} checks{of_profile}")


def leads_of(found: MessageStrategies) -> Sequence[str]:
    parts = strategy_parts(found, strategy_table(found))
    return [part.text for part in parts if isinstance(part, Words) and part.kind == "lead"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_fastest_strategy_is_one_of_a_stated_number(tmp_path: Path, seed: int) -> None:
    found = read_strategies(drawn(seed).write(tmp_path, seed))
    (lead,) = leads_of(found)
    number = re.search(r"the fastest strategy of those \w+.*?, (\d+) in all\. ", lead)
    assert number and int(number[1]) == len(found.measured), lead
