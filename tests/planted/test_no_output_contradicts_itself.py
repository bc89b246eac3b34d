"""No stated detectable effect is smaller than an effect beside it that has no verdict, and nothing
that differs by more than its intervals is said to be one figure: of kept and of planted profiles.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.analysis.questions.machines import host_links, machine, peer_links
from tests.analysis.questions.subjects import of_series, sized, subject

import profiles
from analysis.comparison import nodes
from kept import RESULTS, unpacked
from planted.changes import slow_group, slow_path, survey
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import headline_lines
from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.analysis.questions import efficiency
from waywiser.analysis.questions.all_answers import answers
from waywiser.analysis.questions.placement_answer import placement
from waywiser.curves.answer import Answer
from waywiser.curves.subject import Subject, read_subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.stats.decision import Decision
from waywiser.stats.order import Interval
from waywiser.words.records import SUMMARY, Samples, Series

ROUNDED = 0.006
"""What a share that is written without digits may be off by, and a little."""

FILES = Path(__file__).parents[1] / "exchange" / "imports" / "data"

SURVEYS = (
    ("2026-11-22-check-two-gpus/check-1", "2026-11-22-check-two-gpus/check-2"),
    ("2026-11-22-check-two-gpus/check-2", "2026-11-22-check-two-gpus/check-5"),
    ("2026-11-23-surveys/h100-busy-check-1a", "2026-11-23-surveys/h100-busy-check-1b"),
    ("2026-11-23-surveys/h100-check-1", "2026-11-23-surveys/h100-busy-check-1b"),
    ("2026-11-23-surveys/two-h200-check-1", "2026-11-23-surveys/two-h200-check-3"),
    ("2026-11-23-surveys/two-h200-check-1", "2026-11-22-check-two-gpus/check-1"),
    ("2026-11-20-h200-catalogue/four-gpus/check", "2026-11-20-h200-catalogue/four-gpus-busy/check"),
    ("2026-11-20-h200-catalogue/four-gpus-busy/check-1",
     "2026-11-20-h200-catalogue/four-gpus-busy/check-2"),
    ("2026-11-20-h200-catalogue/four-gpus-busy/check-3",
     "2026-11-20-h200-catalogue/four-gpus-busy/check-4"),
)  # fmt: skip
"""Small ones, of one machine and of two."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


def kept(name: str, folder: Path) -> Path:
    file = folder / f"{name.replace('/', '-')}.wwp"
    return file if file.exists() else unpacked(RESULTS / f"{name}.wwp.xz", file)


def is_consistent(decision: Decision) -> bool:
    """Whether the effect is no larger than what is said to be detectable."""
    if decision.detectable is None or decision.outcome == "different" or decision.suspected:
        return True
    return abs(math.log(decision.ratio)) <= -math.log(1 - decision.detectable) + 1e-9


def share(text: str) -> float:
    return float(text.replace("−", "-").rstrip(" %")) / 100


LINE = re.compile(
    r"(?P<verdict>no change|not decided): (?P<change>[-+][\d.]+)%(?P<at> \([^)]*\))?.*;"
    r" .*?(?:a loss of|losses below) (?P<loss>[\d.]+)%"
)


def contradictions(found: ProfileComparison) -> Iterator[str]:
    for path in found.of("no change"):
        for part in path.parts:
            for each in part.sizes:
                if each.verdict == "no change" and not is_consistent(each.decision):
                    yield f"{each.series}: {each.decision}"
    for line in headline_lines(found):
        said = LINE.search(line)
        if said and not said["at"]:
            change, loss = share(said["change"]), share(said["loss"])
            if abs(change) > loss + ROUNDED / 10:
                yield line


@pytest.mark.parametrize(("before", "after"), SURVEYS)
@pytest.mark.parametrize("reverse", [False, True])
def test_kept_comparisons_are_consistent(
    before: str, after: str, reverse: bool, folder: Path
) -> None:
    sides = [[read_subject(kept(name, folder))] for name in (before, after)]
    assert not list(contradictions(compare(*sides[:: -1 if reverse else 1])))


def planted(seed: int) -> tuple[list[Subject], list[Subject]]:
    rng = random.Random(seed)
    slow: nodes.Slow = rng.choice((
        lambda _: 1.0,
        lambda _: rng.choice((0.9, 1.03, 1.1)),
        slow_path(nodes.h2d(1), rng.choice((0.8, 1.02, 1.05, 1.5))),
        slow_group(rng.choice(("bidirectional", "host-to-all", "P2P")), rng.uniform(0.85, 1.3)),
    ))  # fmt: skip
    count = rng.choice((1, 2, 3, 8))
    number = rng.choice((1, 1, 2, 3))
    base = [survey(10 * seed + n, processes=count) for n in range(number)]
    return base, [survey(10 * seed + 5 + n, slow, processes=count) for n in range(number)]


@pytest.mark.parametrize("seed", range(60))
def test_planted_comparisons_are_consistent(seed: int) -> None:
    assert not list(contradictions(compare(*planted(seed))))


HIDDEN = re.compile(r"< ([\d.]+) ?%")
RATIO = re.compile(r"^(\d\.\d{2,4})(?: \(|$)")
PERCENT = re.compile(r"^([−+-][\d.]+) %")


def of_tables(answer: Answer) -> Iterator[str]:
    """Rows in which what could have been missed is smaller than an effect beside it."""
    for table in answer.tables:
        for row in table.rows:
            texts = [cell.text for cell in row.cells]
            hidden = [share(found) for text in texts for found in HIDDEN.findall(text)]
            if not hidden:
                continue
            effects = [abs(math.log(float(m[1]))) for text in texts if (m := RATIO.match(text))]
            effects += [abs(share(m[1])) for text in texts if (m := PERCENT.match(text))]
            marks = {cell.mark for cell in row.cells}
            if (
                effects
                and "yes" not in marks
                and max(effects) > -math.log1p(-max(hidden)) + ROUNDED
            ):
                yield f"{answer.id}: {' | '.join(texts)}"


ALL_REACH = re.compile(r"All (\d+) such paths reach ([\d.,]+) GB/s")


def of_figures(answer: Answer, measured: Subject) -> Iterator[str]:
    """Sentences that give one figure to paths that differ by more than their intervals."""
    rates = [p.measured.rate for c in measured.curves for p in c.measured if p.measured.rate]
    for text in (answer.summary, *(each.statement + each.detail for each in answer.findings)):
        for number, figure in ALL_REACH.findall(text):
            digits = len(figure.partition(".")[2])
            value, half = float(figure.replace(",", "")), 0.51 * 10**-digits
            ends = (each.interval or Interval(each.value, each.value) for each in rates)
            having = [e for e in ends if e.low / 1e9 - half <= value <= e.high / 1e9 + half]
            if len(having) < int(number):
                yield text


def of_placement(measured: Subject) -> Iterator[str]:
    """Choices and uses whose loss is larger than what would have been found."""
    found = placement(measured)
    shown = [
        *((rank.cost.outcome, abs(rank.cost.loss), rank.cost.detectable) for rank in found.ranks),
        *((use.outcome, 1 - use.share, use.detectable) for use in found.concurrent),
    ]
    for verdict, loss, detectable in shown:
        if verdict == "no change found" and detectable is not None and loss > detectable + ROUNDED:
            yield f"{loss} beside {detectable}"


def check_answers(measured: Subject) -> None:
    assert not list(of_placement(measured))
    for answer in answers(measured):
        assert not list(of_tables(answer))
        assert not list(of_figures(answer, measured))


KEPT = [
    *sorted({name for pair in SURVEYS for name in pair}),
    "2026-11-20-h200-catalogue/one-gpu/check",
]


@pytest.mark.parametrize("name", KEPT)
def test_reports_of_kept_profiles_are_consistent(name: str, folder: Path) -> None:
    with Profile.open(kept(name, folder)) as profile:
        check_answers(Subject.of(profile))


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda file: file.name)
def test_reports_of_imported_files_are_consistent(file: Path, tmp_path: Path) -> None:
    """And a comparison with itself decides nothing that one number per size cannot show."""
    target = tmp_path / "imported.wwp"
    import_files([file], target)
    with Profile.open(target) as profile:
        check_answers(Subject.of(profile))
    node = read_subject(target)
    again = msgspec.structs.replace(node, file="again.wwp", created="2027-01-01T00:00:00.000+00:00")
    assert not list(contradictions(compare([node], [again])))


@pytest.mark.parametrize("seed", range(24))
def test_reports_of_planted_profiles_are_consistent(seed: int) -> None:
    rng = random.Random(seed)
    gpus, blocks = rng.choice((2, 4, 8)), rng.choice((1, 2, 3, 6))
    slow = {rng.randrange(gpus): rng.choice((0.02, 0.04, 0.1, 0.8))}
    noise = rng.choice((0.001, 0.01, 0.05))
    pairs = dict.fromkeys(rng.sample([*itertools.permutations(range(gpus), 2)], 1), 0.1)
    links: Sequence[list] = (
        host_links(gpus, slow, blocks=blocks, between=noise, seed=seed),
        peer_links(gpus, pairs, blocks=blocks, between=noise, seed=seed),
    )
    check_answers(subject(*links, machine=machine(gpus)))


@pytest.mark.parametrize("apart", [0.0, 1e-5, 1e-3, 0.01, 0.08, 0.5])
@pytest.mark.parametrize("base", [12.48e9, 55.3e9, 390e9])
def test_figures_that_differ_are_one_only_if_no_digit_shows_it(base: float, apart: float) -> None:
    """Numbers without an interval: means of another tool."""
    series = []
    for gpu in range(2):
        rate = base / (1 + apart * gpu)
        for path in (nodes.h2d(gpu), nodes.d2h(gpu)):
            what = sized(path, 2**26)
            mean = Samples(
                span=(2**26 / rate,), host=(math.nan,), skew=(0.0,), repetitions=(1,),
                flags=(SUMMARY,), transfers=((2**26 / rate,),),
            )  # fmt: skip
            series.append(Series(what, (profiles.visit(what, 0, mean),)))
    measured = of_series(machine(2), series)
    said = " ".join(each.statement + each.detail for each in efficiency.answer(measured).findings)
    assert "such paths" in said
    assert ("All 2 such paths" in said) == (apart == 0)
    assert not list(of_figures(efficiency.answer(measured), measured))
