"""The folder of a cluster: nothing finished is lost, and no file gives a traceback."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from damaged_lines import damaged
from tree import ROOT
from waywiser.profile import cluster_files
from waywiser.profile.cluster_folder import (
    NODES,
    PLAN,
    PROFILES,
    TESTS,
    ClusterFolder,
    ClusterResult,
    has_no_result,
    is_cluster_folder,
    profile_path,
    read_cluster,
)
from waywiser.profile.cluster_validation import (
    LONGEST_STORED_TEXT,
    require_valid_node,
    require_valid_plan,
    require_valid_test,
)
from waywiser.profile.errors import (
    DamagedProfile,
    ExistingFile,
    LockedProfile,
    MissingProfile,
    NotAProfile,
    ProfileError,
)
from waywiser.profile.validation import InvalidRecord
from waywiser.words.cluster import (
    ClusterNode,
    ClusterPlan,
    FailedTest,
    FinishedTest,
    Interface,
    PlannedTest,
    Rail,
    RailTime,
)
from waywiser.words.records import Failure

MOMENT = "2026-11-26T08:00:00+00:00"
PLAN_OF_RUN = ClusterPlan("mpi", 7, {"s1": ("n1", "n2")}, "file", 2, 1 << 20)
NODE = ClusterNode(
    "n1",
    address="10.0.0.1",
    rails=(Rail(0, 0, Interface("mlx5_0", "infiniband", 50e9, 0)), Rail(1, 1)),
    versions={"kernel": "6.8"},
    counters={"mlx5_0 symbol_error": 3},
)


def finished(round: int = 0, nodes: tuple[str, str] = ("n1", "n2")) -> FinishedTest:
    times = tuple(
        RailTime(rail, sender, 1e-3, 0.9e-3, 1.1e-3, 20, 1.0) for sender in nodes for rail in (0, 1)
    )
    return FinishedTest(PlannedTest("pairs", round, nodes), "mpi", 1 << 20, MOMENT, 0.1, 0.5, times)


FAILED = replace(
    finished(9),
    times=(),
    failed=FailedTest(Failure("crash", "rank 3 ended"), "n2", 3, "alltoallv, sample 935"),
)

names = st.from_regex(r"[a-z][a-z0-9.-]{0,6}[a-z0-9]", fullmatch=True)
seconds = st.floats(1e-9, 1e3)


@st.composite
def finished_tests(draw: st.DrawFn) -> FinishedTest:
    nodes = tuple(draw(st.lists(names, min_size=2, max_size=2, unique=True)))
    test = PlannedTest(
        draw(st.sampled_from(["hangs", "pairs", "alone"])), draw(st.integers(0, 99)), nodes
    )
    if draw(st.booleans()):
        failure = Failure(draw(st.sampled_from(["crash", "timeout"])), draw(_words))
        failed = FailedTest(failure, draw(st.sampled_from(["", *nodes])), draw(st.integers(-1, 9)))
        return FinishedTest(test, "nccl", draw(st.integers(0, 1 << 40)), MOMENT, failed=failed)
    times = []
    for rail in range(draw(st.integers(1, 3))):
        low, middle, high = sorted(draw(st.tuples(seconds, seconds, seconds)))
        times.append(RailTime(rail, draw(st.sampled_from(nodes)), middle, low, high, 5))
    return FinishedTest(test, "nccl", 1 << 20, MOMENT, 0.5, 1.5, tuple(times))


_words = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=20)


@contextmanager
def folder() -> Iterator[Path]:
    """Hypothesis takes no function-scoped fixtures."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name) / "c"


def written(path: Path, tests: list[FinishedTest]) -> None:
    with ClusterFolder.create(path, PLAN_OF_RUN) as own:
        own.add_node(NODE)
        for test in tests:
            own.add_test(test)


def test_what_is_stored_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "c"
    with ClusterFolder.create(path, PLAN_OF_RUN) as own:
        own.add_node(NODE)
        own.add_node(NODE)
        own.add_node(ClusterNode("n2", "not reached", "it did not join in 60 s"))
        own.add_test(finished())
        assert read_cluster(path).tests == (finished(),)  # while the run goes on
        own.add_test(FAILED)
        own.add_node(replace(NODE, state="lost", reason="its connection ended"))
        own.set_plan(replace(PLAN_OF_RUN, groups_from="times"))
        with own.new_profile("n1") as part:
            part.write_bytes(b"a profile")
        assert own.plan.groups_from == "times"
    found = read_cluster(path)
    assert found == ClusterResult(
        replace(PLAN_OF_RUN, groups_from="times"),
        (
            replace(NODE, state="lost", reason="its connection ended"),
            ClusterNode("n2", "not reached", "it did not join in 60 s"),
        ),
        (finished(), FAILED),
        {"n1": profile_path(path, "n1")},
    )
    assert found.profiles["n1"].read_bytes() == b"a profile"
    assert len((path / NODES).read_text().splitlines()) == 3
    assert is_cluster_folder(path)
    assert not is_cluster_folder(tmp_path)


def test_a_resumed_run_has_all_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [finished(0), finished(1)])
    with ClusterFolder.resume(path) as own:
        assert (own.plan, own.nodes, own.tests) == (
            PLAN_OF_RUN,
            {"n1": NODE},
            [finished(0), finished(1)],
        )
        own.add_test(finished(2))
    assert [test.test.round for test in read_cluster(path).tests] == [0, 1, 2]


@given(st.lists(finished_tests(), max_size=6, unique_by=lambda test: test.test), st.data())
@settings(max_examples=25)
def test_whatever_is_cut_off_only_the_last_test_is_lost(
    tests: list[FinishedTest], data: st.DataObject
) -> None:
    """A run that is killed has written a part of the last line at most."""
    with folder() as path:
        written(path, tests)
        lines = (path / TESTS).read_bytes()
        cut = data.draw(st.integers(0, len(lines)))
        os.truncate(path / TESTS, cut)
        whole = lines[:cut].count(b"\n")
        assert read_cluster(path).tests == tuple(tests[:whole])
        with ClusterFolder.resume(path) as own:
            assert own.tests == tests[:whole]
            for test in tests[whole:]:
                own.add_test(test)
        assert (path / TESTS).read_bytes() == lines
        assert read_cluster(path).tests == tuple(tests)


def test_a_long_torn_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [finished(0)])
    with (path / TESTS).open("ab") as file:
        file.write(b"x" * 3_000_000)
    assert read_cluster(path).tests == (finished(0),)
    with ClusterFolder.resume(path) as own:
        own.add_test(finished(1))
    assert read_cluster(path).tests == (finished(0), finished(1))


KILLED = """
import sys
from pathlib import Path
from msgspec.structs import replace
from waywiser.profile.cluster_folder import ClusterFolder

own = ClusterFolder.resume(Path(sys.argv[1]))
(test,) = own.tests[-1:]
while True:
    test = replace(test, test=replace(test.test, round=test.test.round + 1))
    own.add_test(test)
"""


def test_a_killed_run_loses_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [finished(0)])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    known = 1
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], env=environment) as run:
            while len((path / TESTS).read_bytes().splitlines()) < known + 5:
                pass
            run.kill()
        rounds = [test.test.round for test in read_cluster(path).tests]
        assert rounds == list(range(len(rounds)))
        assert len(rounds) >= known + 4
        known = len(rounds)


def test_one_run_at_a_time_writes(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with (
        ClusterFolder.create(path, PLAN_OF_RUN),
        pytest.raises(LockedProfile, match="another run is writing"),
    ):
        ClusterFolder.resume(path)
    with ClusterFolder.resume(path), pytest.raises(LockedProfile):
        ClusterFolder.resume(path)
    ClusterFolder.resume(path).close()


def test_a_new_folder_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.mkdir()
    written(path, [])  # an empty folder is as good as none
    with pytest.raises(ExistingFile, match="is not empty"):
        ClusterFolder.create(path, PLAN_OF_RUN)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ProfileError):
        ClusterFolder.create(file, PLAN_OF_RUN)
    with pytest.raises(ProfileError):
        ClusterFolder.create(file / "c", PLAN_OF_RUN)


def test_what_is_no_folder_of_a_cluster_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingProfile, match="no such folder"):
        read_cluster(tmp_path / "none")
    with pytest.raises(NotAProfile, match=r"has no plan\.json"):
        read_cluster(tmp_path)
    with pytest.raises(NotAProfile, match=r"has no plan\.json"):
        ClusterFolder.resume(tmp_path)
    file = tmp_path / "node.wwp"
    file.write_bytes(b"SQLite format 3\0")
    with pytest.raises(NotAProfile):
        read_cluster(file)


@pytest.mark.parametrize("name", [PLAN, NODES, TESTS])
def test_files_of_other_kinds_are_not_waited_for(tmp_path: Path, name: str) -> None:
    for number, make in enumerate((os.mkfifo, os.mkdir)):
        path = tmp_path / f"c{number}"
        written(path, [])
        (path / name).unlink()
        make(path / name)
        with pytest.raises(ProfileError):
            read_cluster(path)
        with pytest.raises(ProfileError):
            ClusterFolder.resume(path)


@pytest.mark.parametrize("name", [NODES, TESTS])
@pytest.mark.parametrize(
    "line", [b"x", b"{", b"{}", b"[]", b"null", b"\xff", b"[" * 9000, b'{"name":"../n"}', b"\0\0"]
)
def test_a_line_that_is_no_result_is_skipped_and_named(
    tmp_path: Path, name: str, line: bytes
) -> None:
    path = tmp_path / "c"
    written(path, [finished()])
    whole = (path / name).read_bytes()
    (path / name).write_bytes(line + b"\n" + whole)
    found = read_cluster(path)
    assert (found.nodes, found.tests) == ((NODE,), (finished(),))
    (said,) = found.damaged
    assert f"{path / name}:1: this line is skipped" in said
    assert "\n" not in said
    with ClusterFolder.resume(path) as own:
        assert (own.nodes, own.tests) == ({"n1": NODE}, [finished()])
        assert (own.skipped.first, own.skipped.count) == ([said], 1)
        own.add_test(finished(1))
    assert len(read_cluster(path).tests) == 2


def test_a_line_that_is_too_long_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_files, "_MOST_LINE_BYTES", 3 << 20)
    path = tmp_path / "c"
    written(path, [finished()])
    line = (path / TESTS).read_bytes()
    (path / TESTS).write_bytes(
        line + b"x" * (7 << 20) + b"\n" + line.replace(b'"round":0', b'"round":1')
    )
    found = read_cluster(path)
    assert [test.test.round for test in found.tests] == [0, 1]
    (said,) = found.damaged
    assert f"{path / TESTS}:2:" in said and "more than 3 MiB" in said


def test_blank_and_bad_lines_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [finished()])
    with (path / TESTS).open("ab") as file:
        file.write(b"\n \r\n" * 30_000 + b"{}\n[\n" * 30_000)
    tracemalloc.start()
    found = read_cluster(path)
    with ClusterFolder.resume(path) as own:
        assert own.skipped.count == found.damaged_count == 60_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tests == (finished(),)
    assert len(found.damaged) == 100
    assert f"{path / TESTS}:60002: this line is skipped" in found.damaged[0]
    assert most < 8 << 20


@pytest.mark.parametrize("name", [NODES, TESTS])
def test_a_file_of_blank_lines_is_as_an_empty_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c"
    written(path, [finished()])
    (path / name).write_bytes(b"\n" * 10 + b"\t \n")
    found = read_cluster(path)
    assert len(found.nodes) + len(found.tests) == 1 and not found.damaged


def node_with(**fields: object) -> ClusterNode:
    return replace(NODE, **fields)


@pytest.mark.parametrize(
    "node",
    [
        node_with(rails=(Rail(0), Rail(-3))),
        node_with(rails=(Rail(1024),)),
        node_with(rails=tuple(map(Rail, range(1025)))),
        node_with(counters={"eth0 rx_errors": 10**400}),
        node_with(counters={"x" * 300: 1}),
        node_with(versions={"kernel": "6" * 300}),
        node_with(address="10.0.0.1\0"),
        node_with(new_errors={"eth0 rx_errors": -1}),
    ],
)
def test_a_node_that_cannot_be_read_is_stored_as_excluded(
    tmp_path: Path, node: ClusterNode
) -> None:
    path = tmp_path / "c"
    written(path, [])
    with ClusterFolder.resume(path) as own:
        own.add_node(node)
    found = read_cluster(path)
    assert found.damaged == ()
    assert found.nodes[0].state == "excluded"
    assert "impossible" in found.nodes[0].reason


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(max_examples=10)
def test_long_reasons_are_stored_short(first: int, second: int) -> None:
    failed = FailedTest(Failure("crash", "r" * first), doing="d" * second)
    with folder() as path:
        written(path, [replace(FAILED, failed=failed)])
        with ClusterFolder.resume(path) as own:
            own.add_node(replace(NODE, state="lost", reason="r" * first))
        found = read_cluster(path)
    assert found.damaged == () and found.tests[0].failed is not None
    assert len(found.tests[0].failed.failure.reason) == len(found.nodes[0].reason)
    assert len(found.nodes[0].reason) <= min(first, LONGEST_STORED_TEXT + 3)


@pytest.mark.parametrize(
    "made", [(), (TESTS,), (TESTS, ".plan.json.ab1.part"), (TESTS, PROFILES, PLAN), (PLAN, NODES)]
)
def test_a_run_that_was_killed_before_its_first_node_can_be_started_again(
    tmp_path: Path, made: tuple[str, ...]
) -> None:
    path = tmp_path / "c"
    path.mkdir()
    for name in made:
        (path / name).mkdir() if name == PROFILES else (path / name).touch()
    assert has_no_result(path)
    with ClusterFolder.create(path, PLAN_OF_RUN) as own:
        own.add_test(finished())
    assert read_cluster(path).tests == (finished(),)
    assert sorted(os.listdir(path)) == [PROFILES, NODES, PLAN, TESTS]


@pytest.mark.parametrize(
    "made", ["notes.txt", ".plan.json", "nodes/n1.wwp", "nodes/.n1.wwp.x.part"]
)
def test_a_folder_with_anything_else_is_kept(tmp_path: Path, made: str) -> None:
    path = tmp_path / "c"
    (path / PROFILES).mkdir(parents=True)
    (path / made).touch()
    with pytest.raises(ExistingFile, match="is not empty"):
        ClusterFolder.create(path, PLAN_OF_RUN)
    assert (path / made).exists() and not (path / TESTS).exists()


@pytest.mark.parametrize("name", [NODES, TESTS])
def test_a_file_without_any_result_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c"
    written(path, [finished()])
    (path / name).write_bytes(b"\0\0\n{}\n")
    for read in (read_cluster, ClusterFolder.resume):
        with pytest.raises(DamagedProfile, match="no line of this file can be read") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_what_a_killed_run_was_writing_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [finished()])
    for name in (".plan.json.a_b1.part", "nodes/.n1.wwp.x.part", "nodes/n2.wwp", ".mine.part"):
        (path / name).write_bytes(b"half")
    ClusterFolder.resume(path).close()
    assert sorted(os.listdir(path)) == [".mine.part", PROFILES, NODES, PLAN, TESTS]
    assert os.listdir(path / PROFILES) == ["n2.wwp"]


def test_a_run_that_has_just_begun_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with ClusterFolder.create(path, PLAN_OF_RUN), pytest.raises(LockedProfile):
        ClusterFolder.create(path, replace(PLAN_OF_RUN, seed=9))
    assert read_cluster(path).plan == PLAN_OF_RUN


def test_a_result_that_is_impossible_is_stored_as_failed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    time = replace(finished().times[0], seconds=math.nan)
    written(path, [replace(finished(), times=(time,))])
    (test,) = read_cluster(path).tests
    assert test.failed is not None
    assert test.failed.failure.kind == "protocol"
    assert "impossible" in test.failed.failure.reason


@pytest.mark.parametrize(
    "test",
    [
        replace(finished(), bytes=-1),
        replace(finished(), started="yesterday"),
        replace(finished(), times=()),
        replace(finished(), elapsed_seconds=math.inf),
        replace(finished(), failed=FAILED.failed),
        replace(finished(), test=PlannedTest("pairs", 0, ("n1", "n1"))),
        replace(finished(), test=PlannedTest("pairs", 0, ("n1", "../n2"))),
        replace(finished(), test=PlannedTest("pairs", 0, ("n1",))),
        replace(finished(), test=PlannedTest("pairs", -1, ("n1", "n2"))),
        replace(finished(), test=PlannedTest("collective", 0, ())),
        replace(finished(), times=(replace(finished().times[0], sender="n3"),)),
        replace(finished(), times=(replace(finished().times[0], low=2e-3),)),
        replace(finished(), times=(replace(finished().times[0], n=0),)),
        replace(finished(), times=(replace(finished().times[0], crossed=-0.5),)),
        replace(FAILED, failed=replace(FAILED.failed, node="n3")),
    ],
)
def test_impossible_tests(test: FinishedTest) -> None:
    with pytest.raises(InvalidRecord):
        require_valid_test(test)


@pytest.mark.parametrize(
    "node",
    [
        ClusterNode(""),
        ClusterNode("a/b"),
        ClusterNode(".."),
        ClusterNode("n1\n"),
        ClusterNode("n1", rails=(Rail(0), Rail(0))),
        ClusterNode("n1", rails=(Rail(-1),)),
        ClusterNode("n1", rails=(Rail(0, interface=Interface("e", "ethernet", -1.0)),)),
        ClusterNode("n1", counters={"x": -1}),
    ],
)
def test_impossible_nodes(node: ClusterNode) -> None:
    with pytest.raises(InvalidRecord):
        require_valid_node(node)


def test_text_of_a_folder_does_not_steer_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [])
    with ClusterFolder.resume(path) as own:
        own.add_node(ClusterNode("n2", "lost", "red \x1b[31m\nand more\u202e"))
    assert read_cluster(path).nodes[1].reason == "red [31m and more"


def test_damaged_folders_give_results_or_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "c"
    written(path, [finished(0), FAILED, finished(1)])
    whole = {name: (path / name).read_bytes() for name in (PLAN, NODES, TESTS)}
    generator = random.Random(31)
    outcomes = set()
    for number in range(400):
        name = generator.choice(list(whole))
        for each, content in whole.items():
            (path / each).write_bytes(damaged(content, generator) if each == name else content)
        try:
            found = read_cluster(path)
            if number % 10 == 0:  # it syncs files, which takes long on some machines
                with ClusterFolder.resume(path) as own:
                    own.add_test(finished(5))
        except ProfileError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 2000
            outcomes.add("error")
            continue
        outcomes.add("result")
        require_valid_plan(found.plan)
        for node in found.nodes:
            require_valid_node(node)
        for test in found.tests:
            require_valid_test(test)
        assert all(file.parent == path / PROFILES for file in found.profiles.values())
        assert read_cluster(path).tests[: len(found.tests)] == found.tests
    assert outcomes == {"error", "result"}
