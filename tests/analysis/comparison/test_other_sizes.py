"""Curves that two sides have measured at different sizes: compared on a plateau, or listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.analysis.comparison import nodes

from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.comparison.other_sizes import PLATEAU
from waywiser.analysis.comparison.path_change import PathChange, ProfileComparison
from waywiser.curves.curve import Point
from waywiser.curves.subject import CROWDED, Subject
from waywiser.notebook.comparison_view import exit_code, failing_status
from waywiser.notebook.verb_result import INCONCLUSIVE
from waywiser.profile.block import BlockSummary
from waywiser.render.views.comparison import comparison_parts
from waywiser.words.records import Failure

MIB = 2**20
H2D, D2H, PEER = nodes.h2d(0), nodes.d2h(0), nodes.peer(0, 1)
LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"
READ = f"{PEER}[api=async,by=destination]"
SURVEY_SIZES = (8, 4096, MIB, 16 * MIB, 32 * MIB, 64 * MIB)


def seconds(size: int, rate: float = 50e9, start: float = 4e-6) -> float:
    return start + size / rate


def curve(path: str, sizes: Sequence[int], factors: Sequence[float] = (1.0, 1.001),
          start: float = 4e-6) -> list[Point]:  # fmt: skip
    return [
        nodes.digest(nodes.workload(*path.split("; "), size=size),
                     [seconds(size, start=start) * factor for factor in factors])
        for size in sizes
    ]  # fmt: skip


def surveyed(*series: Point) -> Subject:
    return replace(nodes.node(1, gpus=2), points=series, links={})


def results(*paths: str, size: int = 512 * MIB, runs: Sequence[float] = (1.0,)) -> Subject:
    """What another tool says: one figure of each run."""
    series = [
        Point.of(
            nodes.workload(*path.split("; "), size=size),
            [BlockSummary(n, seconds(size) * run, count=1) for n, run in enumerate(runs)],
        )
        for path in paths
    ]
    return replace(nodes.node(2, gpus=2), points=tuple(series), links={}, request="",
                   tools=("nvbandwidth 0.8",), created="2026-11-21T03:00:00.000+00:00")  # fmt: skip


def only_path(found: ProfileComparison) -> PathChange:
    (path,) = found.paths
    return path


def shown(found: ProfileComparison) -> str:
    return "\n".join(map(str, comparison_parts(found)))


def test_one_value_beside_a_plateau_shows_the_ratio_and_decides_nothing() -> None:
    found = compare([surveyed(*curve(H2D, SURVEY_SIZES))], [results(H2D, runs=[1.25])])
    path = only_path(found)
    assert path.verdict == "not decided"
    assert path.why == "one value of 512 MiB beside the plateau at 64 MiB"
    assert path.ratio == pytest.approx(1 / 1.25, rel=0.01)
    assert path.size is not None and str(path.size.other_size) == "64 MiB to 512 MiB"
    assert path.size.decision.detectable is None and not path.size.decision.suspected
    assert "1 not decided, of 1 path" in shown(found)
    assert exit_code(found, failing_status("regression")) == INCONCLUSIVE


def test_the_new_survey_can_be_the_side_on_its_plateau() -> None:
    path = only_path(compare([results(H2D)], [surveyed(*curve(H2D, SURVEY_SIZES, [1.25, 1.26]))]))
    assert path.verdict == "not decided"
    assert path.ratio == pytest.approx(1 / 1.255, rel=0.01)


def test_several_runs_beside_a_plateau_are_decided() -> None:
    base = surveyed(*curve(H2D, SURVEY_SIZES, [1.0, 1.001, 0.999, 1.0005]))
    same = compare([base], [results(H2D, runs=[1.0, 1.001, 0.999])])
    assert only_path(same).verdict == "no change"
    slow = compare([base], [results(H2D, runs=[1.25, 1.251, 1.249])])
    assert only_path(slow).verdict == "suspected"
    both = compare([base], [results(H2D, runs=[1.25, 1.251]),
                            results(H2D, runs=[1.249, 1.2503])])  # fmt: skip
    assert only_path(both).verdict == "regression"


def test_several_files_are_several_runs() -> None:
    base = surveyed(*curve(H2D, SURVEY_SIZES, [1.0, 1.001, 0.999, 1.0005]))
    files = [results(H2D, runs=[run]) for run in (1.0, 1.001, 0.9995)]
    assert only_path(compare([base], files)).verdict == "no change"


@pytest.mark.parametrize(
    ("base", "new", "why"),
    [
        # below the plateau
        (
            curve(H2D, SURVEY_SIZES),
            results(H2D, size=2 * MIB),
            "8 B to 64 MiB before, 2 MiB now: run nvbandwidth -b 64",
        ),
        # still growing
        (
            curve(H2D, (16 * MIB, 64 * MIB), start=3e-4),
            results(H2D),
            "16 MiB and 64 MiB before, 512 MiB now: run nvbandwidth -b 64",
        ),
        # nothing shows a plateau
        (
            curve(H2D, (64 * MIB,)),
            results(H2D),
            "64 MiB before, 512 MiB now: run nvbandwidth -b 64",
        ),
        # a cache can hold what is small
        (
            curve(LOCAL, (8, MIB, 64 * MIB)),
            results(LOCAL),
            "8 B, 1 MiB and 64 MiB before, 512 MiB now: run nvbandwidth -b 64",
        ),
        (
            curve(H2D, (4096,)),
            surveyed(*curve(H2D, (MIB,))),
            "4 KiB before, 1 MiB now: survey again with --sizes 1MiB",
        ),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_compared_are_listed(
    base: list[Point], new: Subject, why: str
) -> None:
    path = only_path(compare([surveyed(*base)], [new]))
    assert (path.verdict, path.why) == ("no common size", why)
    checked = check_up(new, [surveyed(*base)])
    assert checked.status == "inconclusive"
    assert f"the survey has no size in common with its baseline: {why}" in checked.undecided


def test_equivalent_paths_and_those_of_a_set_show_a_plateau() -> None:
    other = nodes.h2d(1)
    both = f"{H2D}; {D2H}"
    base = surveyed(
        *curve(H2D, SURVEY_SIZES), *curve(D2H, SURVEY_SIZES),
        *curve(other, (64 * MIB,)), *curve(both, (64 * MIB,)),
    )  # fmt: skip
    found = compare([base], [results(other, both)])
    assert {path.curve for path in found.of("not decided")} == {other, both}


def test_a_large_size_in_common_is_compared_at_that_size() -> None:
    base = surveyed(*curve(H2D, (*SURVEY_SIZES, 512 * MIB)))
    path = only_path(compare([base], [results(H2D)]))
    assert path.size is not None and path.size.other_size is None
    assert (path.verdict, path.why) == ("not decided", "one value of 512 MiB")
    several = compare([base], [results(H2D, runs=[1.0, 1.001])])
    assert only_path(several).verdict == "no change"


def test_reads_say_by_which_methods_the_survey_has_made_the_copy() -> None:
    base = surveyed(*curve(PEER, SURVEY_SIZES), *curve(f"{PEER}[api=async]", SURVEY_SIZES))
    found = compare([base], [results(READ)])
    (path,) = found.of("new")
    assert path.why == (
        "the base has not measured it by copy-engine[api=async,by=destination], but by "
        "copy-engine, copy-engine[api=async]; a survey has no copies that the GPU of the "
        "destination submits"
    )
    (path,) = compare([results(READ)], [base]).of("skipped")
    assert path.why.startswith("the new survey has not measured it by copy-engine[api=async,by=")


def test_reads_by_multiprocessors_join_with_the_copy_of_the_destination() -> None:
    pull = "device@gpu:1 -> device@gpu:0 by sm"
    path = only_path(compare([surveyed(*curve(pull, SURVEY_SIZES))], [results(pull)]))
    assert path.verdict == "not decided"


def test_paths_that_are_not_decided_do_not_make_the_whole_machine_slower() -> None:
    paths = [nodes.h2d(0), nodes.d2h(0), nodes.h2d(1), nodes.d2h(1), nodes.peer(0, 1),
             nodes.peer(1, 0), *(f"{nodes.peer(0, 1)}[api=async]", f"{nodes.h2d(0)}[api=sync]",
             f"{nodes.h2d(1)}[api=sync]", f"{nodes.d2h(0)}[api=sync]")]  # fmt: skip
    base = surveyed(*(each for path in paths for each in curve(path, SURVEY_SIZES)))
    found = compare([base], [results(*paths, runs=[1.2])])
    assert found.counts["not decided"] == len(paths)
    assert "whole machine" not in shown(found)


def test_a_check_names_what_decides_one_value() -> None:
    base = surveyed(*curve(H2D, SURVEY_SIZES), *curve(D2H, SURVEY_SIZES))
    found = check_up(results(H2D, D2H), [base])
    (line,) = [line for line in found.undecided if "one value" in line]
    assert "one value of 512 MiB beside the plateau at 64 MiB; the same for 1 more path" in line
    assert line.endswith(
        "compare several files of nvbandwidth 0.8: waywiser compare BASE... -- NEW..."
    )
    assert "no path in common" not in str(found)


def test_a_host_of_a_fleet_at_another_size_is_not_called_fine() -> None:
    hosts = [nodes.node(seed, f"node{seed}") for seed in range(6)]
    other = nodes.node(9, "node9", sizes=(512 * MIB,))
    fleet = assess_fleet([*hosts, other])
    (host,) = [each for each in fleet.hosts if each.host == "node9"]
    assert host.status == "not determined"
    assert any("no size in common with other hosts" in note for note in host.notes)
    others = [each for each in fleet.hosts if each.host != "node9"]
    assert all(each.status == "fine" and not each.notes for each in others)


# Every path of two profiles has one verdict, with a reason that is true.

PATHS = (H2D, D2H, PEER, LOCAL, f"{H2D}; {D2H}", READ, "pageable@numa:0 -> pageable@numa:0 by cpu")
SIZES = (8, 4096, MIB, 16 * MIB, 48 * MIB, 64 * MIB, 512 * MIB)


@st.composite
def sides(draw: st.DrawFn) -> Subject:
    """A survey or the results of another tool: of some paths some sizes, measured, failed or
    without a visit."""
    series: list[Point] = []
    crowded: list[Point] = []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True)):
        sizes = draw(st.lists(st.sampled_from(SIZES), unique=True, min_size=1))
        start = draw(st.sampled_from((1e-6, 1e-4, 3e-3)))
        level = draw(st.sampled_from((1.0, 1.3)))
        is_crowded = draw(st.integers(0, 9)) == 0
        for size in sizes:
            blocks = draw(st.integers(0, 3))
            factors = [level * (1 + 0.001 * n) for n in range(blocks)]
            (one,) = curve(path, [size], factors, start)
            if not blocks and draw(st.booleans()):
                kind = draw(st.sampled_from(("skipped", "crashed")))
                one = Point.of(one.workload, (), [Failure(kind, "planted")])
            (crowded if is_crowded and blocks else series).append(one)
    tools = draw(st.sampled_from(((), ("nvbandwidth 0.8",))))
    return replace(nodes.node(draw(st.integers(0, 3)), gpus=2), points=tuple(series), links={},
                   crowded=tuple(crowded), tools=tools,
                   request="" if tools else draw(st.sampled_from(("check", "full"))))  # fmt: skip


def times(node: Subject) -> dict[str, dict[int, float]]:
    """The median of each curve by the bytes of each transfer."""
    found: dict[str, dict[int, float]] = {}
    for each in node.points:
        if each.blocks:
            middle = sorted(block.median for block in each.blocks)
            of = middle[(len(middle) - 1) // 2], middle[len(middle) // 2]
            found.setdefault(each.curve, {})[each.workload.size] = sum(of) / 2
    return found


@settings(max_examples=150)
@given(sides(), sides())
def test_each_path_is_in_one_category_and_its_reason_is_true(base: Subject, new: Subject) -> None:
    found = compare([base], [new])
    before, after = times(base), times(new)
    paths = {path.curve: path for path in found.paths}
    crowded = {each.curve for node in (base, new) for each in node.crowded}
    assert len(paths) == len(found.paths)
    assert paths.keys() == before.keys() | after.keys() | crowded
    assert sum(found.counts.values()) == len(found.paths)
    for curve_, path in paths.items():
        was, now = before.get(curve_, {}), after.get(curve_, {})
        check_category(path, was, now, is_crowded=curve_ in crowded)


def check_category(
    path: PathChange, was: Mapping[int, float], now: Mapping[int, float], *, is_crowded: bool
) -> None:
    common = was.keys() & now.keys()
    if path.why.startswith("fails at"):
        assert path.verdict == "missing" and was
        return
    if path.parts:
        assert was and now
        for size in (size for part in path.parts for size in part.sizes):
            check_size(size.bytes // len(path.curve.split("; ")), path, was, now)
    elif path.verdict == "no common size":
        assert was and now and not common
        assert not (reaches(was, now) and "gpu:0 -> device@gpu:0" not in path.curve)
    elif path.verdict == "new" or "the base has not measured it" in path.why:
        assert now and not was
    elif path.why == CROWDED:
        assert is_crowded and not (was and now)
    else:
        assert path.verdict in ("skipped", "missing")
        assert not (was and now)


def check_size(
    size: int, path: PathChange, was: Mapping[int, float], now: Mapping[int, float]
) -> None:
    (change,) = [
        each
        for part in path.parts
        for each in part.sizes
        if each.bytes // len(path.curve.split("; ")) == size
    ]
    other = change.other_size
    if other is None:
        assert change.decision.ratio == pytest.approx(was[size] / now[size])
        return
    assert not any(each >= 16 * MIB for each in was.keys() & now.keys())
    rates = other.before / was[other.before], other.now / now[other.now]
    assert change.decision.ratio == pytest.approx(rates[1] / rates[0])
    own, beside = (
        (other.before, other.now) if other.plateau == "before" else (other.now, other.before)
    )
    sizes = was if other.plateau == "before" else now
    largest = max(sizes)
    assert sizes[own] / own == pytest.approx(sizes[largest] / largest, rel=1.1 * PLATEAU)
    assert beside == size


def reaches(was: Mapping[int, float], now: Mapping[int, float]) -> bool:
    """Whether a side plainly is on a plateau by its own two largest sizes, and the other is
    above."""
    for own, other in ((was, now), (now, was)):
        largest = sorted(own)[-2:]
        if len(largest) == 2 and 2 * largest[0] <= largest[1] <= 4 * largest[0]:
            rates = [size / own[size] for size in largest]
            if abs(rates[1] / rates[0] - 1) < PLATEAU / 4 and max(other) >= largest[1]:
                return True
    return False
