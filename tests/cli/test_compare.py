"""``compare``: sides, exit codes, tables, JSON, JUnit."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from rich.console import Console

import profiles
from analysis.comparison import nodes
from damaging import reseal
from effort import result_and_calls
from kept import RESULTS, unpacked
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import changed_alone, figures_before_and_now
from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.cli import run
from waywiser.cli.app import USUAL_THRESHOLD
from waywiser.cli.compare import (
    SEPARATOR,
    CompareError,
    sides_of,
)
from waywiser.cli.compare import (
    compare as verb,
)
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject, read_subject
from waywiser.exchange.exports.junit import junit_xml
from waywiser.profile import ExistingFile, NotWritable
from waywiser.profile.block import STANDARD_ERRORS, BlockSummary
from waywiser.profile.writable import write_profile
from waywiser.render.terminal import print_parts
from waywiser.render.views.comparison import _span, comparison_parts
from waywiser.stats.decision import THRESHOLD
from waywiser.stats.order import Interval
from waywiser.words import WordError
from waywiser.words.numbers import parse_fraction
from waywiser.words.records import Failure, Visit
from waywiser.words.status import Status

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("compare")
    slow = nodes.slow_host_link(1, 1.08)
    made = {
        "base": nodes.node(1, gpus=2, blocks=4),
        "same": nodes.node(2, gpus=2, blocks=4),
        "slow": nodes.node(3, gpus=2, blocks=4, slow=slow),
        "again": nodes.node(8, gpus=2, blocks=4, slow=slow),
        "cured": nodes.node(2, gpus=2, blocks=4),
        "loud": nodes.node(4, gpus=2, blocks=4, between_blocks=0.2),
        "once": nodes.node(6, gpus=2),
        "once-slow": nodes.node(7, gpus=2, slow=slow),
        "less": nodes.node(5, gpus=1, blocks=4),
    }
    return {name: str(nodes.stored(node, folder / f"{name}.wwp")) for name, node in made.items()}


def test_no_change_is_clean_and_a_slower_link_is_a_finding(
    files: dict[str, str], capsys: Output
) -> None:
    assert run(["compare", files["base"], files["same"]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "10 no change, of 10 paths, at a threshold of 3 %"
    assert any(line.split()[0] == "H2D" and "; a loss of 3." in line for line in lines)
    assert run(regressed(files)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("5 regressions, 5 no change, of 10 paths, at a threshold of 3 %")
    first = next(line for line in lines if line.startswith("regression"))
    assert "-7." in first and " MiB " in first and "GB/s" in first


def regressed(files: dict[str, str]) -> list[str]:
    return ["compare", files["base"], files["slow"], "--repeat", files["again"]]


def test_a_loss_in_one_survey_is_suspected_and_the_commands_that_decide_it_work(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("again.wwp").touch()
    slow = ["compare", files["base"], files["slow"]]
    assert run([*slow, "--fail-on", "suspected"]) == 1
    capsys.readouterr()
    assert run([*slow, "--threshold", "5%", "--only", "H2D"]) == 3
    said = capsys.readouterr().out.splitlines()
    at = said.index("  to confirm or refute what is suspected, on node0:")
    assert said[at - 1] == "suspected, since one new survey alone shows it: 1 path"
    survey, again = (shlex.split(line) for line in said[at + 1 :])
    assert survey == ["waywiser", "survey", "--preset", "check", "--only", nodes.h2d(1),
                      "-o", "again-2.wwp"]  # fmt: skip
    shutil.copy(files["again"], "again-2.wwp")
    assert run(again[1:]) == 1
    assert capsys.readouterr().out.startswith("1 regression, ")
    assert run(["compare", files["base"], "--", files["slow"], files["again"]]) == 1
    assert run([*slow, "--repeat", files["cured"]]) == 0
    assert "in the survey, and not when measured again" in capsys.readouterr().out


def test_a_repeat_of_one_process_is_made_in_several(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    new = nodes.node(9, gpus=2, slow=nodes.slow_host_link(1, 1.3))
    quick = nodes.stored(msgspec.structs.replace(new, request="quick"), tmp_path / "quick.wwp")
    assert run(["compare", files["once"], str(quick)]) == 3
    assert "    waywiser survey --preset standard --only " in capsys.readouterr().out


def test_one_process_a_side_is_inconclusive(files: dict[str, str], capsys: Output) -> None:
    assert run(["compare", files["once"], files["once-slow"]]) == 3
    said = capsys.readouterr().out
    assert "5 suspected, 5 not decided, of 10 paths" in said and " not known " in said
    assert "the noise is not known" in said
    assert run(["compare", files["once"], files["once-slow"], "--fail-on", "suspected"]) == 1


def test_all_paths_are_listed_when_asked_for(files: dict[str, str], capsys: Output) -> None:
    assert run(["compare", files["base"], files["same"], "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("no change") for line in lines) == 10


def test_paths_that_changed_by_their_own_interval_alone_are_counted_and_listed() -> None:
    base, new = (nodes.node(seed, blocks=4, between_blocks=0.03) for seed in (28, 128))
    found = compare([base], [new])
    assert len(found.changed_alone) == 2
    for path in found.changed_alone:
        assert path.verdict == "no change" and path.decision is not None
        decision = path.decision
        assert decision.interval is not None and decision.interval.low > 1
        assert decision.p_corrected is not None and decision.p_corrected > 0.025

    def printed(everything: bool) -> str:
        paper = io.StringIO()
        print_parts(Console(file=paper, width=200), comparison_parts(found, everything=everything))
        return paper.getvalue()

    said = (
        "note: 2 of 82 paths changed by more than the threshold, each tested alone (2 faster); "
        "tested with all others they are not significant: among so many paths some seem to change "
        "by chance; a second survey shows which do again"
    )
    assert f"{said}; --all lists them\n" in printed(False)
    assert f"{said}\n" in printed(True)
    assert printed(True).count("changed if tested alone") == 2
    assert "changed if tested alone" not in printed(False)


def test_a_narrow_terminal_has_lines_and_no_table_in_pieces(files: dict[str, str]) -> None:
    found = compare(
        [read_subject(files["base"])], [read_subject(files[n]) for n in ("slow", "again")]
    )
    paper = io.StringIO()
    print_parts(Console(file=paper, width=80), comparison_parts(found))
    lines = paper.getvalue().splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("regression"))
    assert lines[first].endswith("by copy-engine")
    assert (
        "before " in lines[first + 1]
        and " GB/s; now " in lines[first + 1]
        and "-7." in lines[first + 1]
    )


def test_one_file_alone_is_said_to_have_no_other() -> None:
    with pytest.raises(CompareError, match="one file has nothing to be compared with"):
        sides_of(["a.wwp"])


def test_a_reader_who_leaves_changes_no_exit_code(files: dict[str, str]) -> None:
    for new, code in (("same", 0), ("slow", 3)):
        reading, writing_end = os.pipe()
        os.close(reading)
        words = [sys.executable, "-m", "waywiser", "compare", files["base"], files[new]]
        try:
            done = subprocess.run(words, stdout=writing_end, stderr=subprocess.PIPE, check=False)
        finally:
            os.close(writing_end)
        assert (done.returncode, done.stderr) == (code, b"")


def test_sides_may_have_several_files_and_options_may_follow(files: dict[str, str]) -> None:
    arguments = ["compare", files["base"], files["same"], "--", files["slow"], files["again"]]
    assert run(arguments) == 1
    assert run([*arguments, "--threshold", "10%"]) == 0
    assert run(["compare", files["base"], files["same"], files["slow"]]) == 2
    assert run(["compare", files["base"], "--"]) == 2
    assert sides_of(["a", "b", SEPARATOR, "c"]) == (["a", "b"], ["c"])
    assert sides_of(["a", "b"]) == (["a"], ["b"])
    for words in (["a"], [SEPARATOR, "a"], ["a", SEPARATOR, "b", SEPARATOR, "c"]):
        with pytest.raises(CompareError):
            sides_of(words)


def test_what_is_a_finding_can_be_said(files: dict[str, str], capsys: Output) -> None:
    less = ["compare", files["base"], files["less"]]
    assert run(less) == 1  # a GPU is gone
    assert run([*less, "--fail-on", "never"]) == 0
    nothing = [*less, "--only", "device@gpu:1"]
    assert run(nothing) == 1
    assert run([*nothing, "--fail-on", "never"]) == 0
    once = ["compare", files["once"], files["once-slow"]]
    assert [run([*once, "--fail-on", each]) for each in ("regression", "never")] == [3, 0]
    capsys.readouterr()
    assert run([*less, "--fail-on", "nonsense"]) == 2
    assert "regression or suspected or never" in capsys.readouterr().err


def test_headline_names_choose_their_paths(files: dict[str, str], capsys: Output) -> None:
    expected = {"H2D": 2, "d2h": 2, "P2P": 2, "bidirectional": 2, "host-to-all": 1}
    for name, paths in expected.items():
        assert run(["compare", files["base"], files["same"], "--only", name]) == 0
        assert capsys.readouterr().out.startswith(f"{paths} no change, of {paths} path")
    assert run(["compare", files["base"], files["same"], "--only", "pageable H2D"]) == 2


def test_one_document_goes_to_standard_output(files: dict[str, str], capsys: Output) -> None:
    both = regressed(files)
    assert run([*both, "--junit", "-"]) == 1
    said = capsys.readouterr()
    check_junit(ElementTree.fromstring(said.out))
    assert said.err.startswith("5 regressions")
    assert run([*both, "--junit", "-", "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--json and --junit - both write to standard output" in said.err


def test_an_output_is_asked_for_before_profiles_are_read(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    for target in (tmp_path / "no" / "r.xml", tmp_path, Path(files["base"])):
        assert run(["compare", "none.wwp", "none.wwp", "--junit", str(target)]) == 2
        assert capsys.readouterr().err.startswith(f"waywiser: error: {target}: ")


def test_a_file_that_is_none_is_one_line(files: dict[str, str], capsys: Output) -> None:
    assert run(["compare", files["base"], __file__]) == 2
    assert "is not a profile" in capsys.readouterr().err


def test_a_gpu_that_is_gone_is_said_in_a_few_lines(files: dict[str, str], capsys: Output) -> None:
    run(["compare", files["base"], files["less"]])
    said = capsys.readouterr().out
    assert "note: gpu:1 (0000:02:00.0, GPU-node0-1) is gone" in said
    assert "missing  device@gpu:1 -> pinned@numa:0 by copy-engine: gpu:1 is gone" in said


def test_json_has_everything(files: dict[str, str], capsys: Output) -> None:
    assert run([*regressed(files), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = msgspec.convert(document, ProfileComparison)
    assert found.counts["regression"] == 5
    worst = document["paths"][0]
    assert worst["verdict"] == "regression"
    decision = worst["parts"][0]["decision"]
    assert decision["interval"]["low"] < decision["ratio"] < decision["interval"]["high"]
    assert 0 < decision["deviation"] < 0.01 and decision["freedom"] > 5
    assert decision["p_corrected"] < 0.01 and 0 < decision["detectable"] < 0.05
    assert worst["parts"][0]["processes"] == [4, 8]
    assert all(0 < side["deviation"] < 0.01 for side in worst["parts"][0]["noise"])
    assert worst["parts"][0]["verdict"] == "regression"
    assert document["repeats"] == [files["again"]]
    assert worst["devices"][0]["uuid"].startswith("GPU-node0-")


def hostile() -> ProfileComparison:
    """Paths whose words are of no XML."""
    text = "file:/a<b>&\"'\x00\x1b\ud7ff]]> -> x"
    base = nodes.node(1, gpus=2, blocks=4)
    name = nodes.h2d(0)

    def broken(digest: Point) -> Point:
        if digest.curve != name:
            return digest
        return msgspec.structs.replace(digest, blocks=(), failures=(Failure("gpu", text),))

    again = nodes.node(3, gpus=2, blocks=4, slow=nodes.slow_host_link(1, 1.08))
    return compare(
        [base], [msgspec.structs.replace(again, points=tuple(map(broken, again.points)))]
    )


def test_junit_is_a_test_case_per_path() -> None:
    found = hostile()
    assert found.of("suspected")
    root = ElementTree.fromstring(junit_xml(found, Status.FAILED))
    check_junit(root)
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert set(cases) == {path.curve for path in found.paths}
    for path in found.paths:
        failure = cases[path.curve].find("failure")
        assert (failure is not None) == (path.verdict in ("regression", "missing"))
        if failure is not None:
            assert failure.get("type") == path.verdict
        skip = cases[path.curve].find("skipped")
        if path.verdict == "suspected":
            message = (skip.get("message") or "") if skip is not None else ""
            assert "; one new survey alone shows it" in message
        if path.parts:
            figures = "".join(cases[path.curve].itertext())
            for what in (
                "standard error",
                "degrees of freedom",
                "(corrected ",
                "processes 4 before",
            ):
                assert what in figures
    lost = cases[nodes.h2d(0)].find("failure")
    assert lost is not None
    message = lost.get("message") or ""
    assert "file:/a<b>&\"'" in message and "\x1b" not in message
    quiet = ElementTree.fromstring(junit_xml(found, None))
    skipped = {
        case.get("name") for case in quiet.iter("testcase") if case.find("skipped") is not None
    }
    assert nodes.h2d(0) in skipped


def test_junit_skips_paths_that_are_not_decided_and_gives_the_losses_that_noise_hides() -> None:
    base, loud = (nodes.node(n, gpus=2, blocks=4, between_blocks=n * 0.05) for n in (1, 4))
    found = compare([base], [loud])
    undecided = [path for path in found.paths if not found.is_decided(path)]
    assert undecided
    root = ElementTree.fromstring(junit_xml(found, Status.FAILED))
    cases = {case.get("name"): case for case in root.iter("testcase")}
    for path in undecided:
        assert path.verdict == "no change"
        skipped = cases[path.curve].find("skipped")
        assert skipped is not None
        message = skipped.get("message") or ""
        assert message.startswith("not decided: ") and "no change" not in message
        hidden = re.search(r"the noise hides losses below ([\d.]+)%", message)
        assert hidden is not None and float(hidden[1]) / 100 > found.most_hidden


def check_junit(root: ElementTree.Element) -> None:
    """What the schemas of JUnit's readers have in common."""
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite" and suite.get("name")
        cases = list(suite)
        counts = {
            "tests": len(cases),
            "failures": sum(case.find("failure") is not None for case in cases),
            "skipped": sum(case.find("skipped") is not None for case in cases),
            "errors": 0,
        }
        for element in (root, suite):
            assert {name: int(element.get(name) or -1) for name in counts} == counts
        for case in cases:
            assert case.tag == "testcase"
            assert case.get("name") and case.get("classname")
            assert float(case.get("time") or -1) >= 0
            assert {child.tag for child in case} <= {"failure", "skipped", "system-out"}
            assert len(list(case)) <= 1
            for child in case:
                assert child.tag == "system-out" or child.get("message")


def test_junit_is_written_over_a_former_one_and_whole(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    target = tmp_path / "r.xml"
    for _ in range(2):
        assert verb([files["base"], files["slow"]], junit=str(target)) == 3
    check_junit(ElementTree.parse(target).getroot())
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(NotWritable, match="cannot be written"):
        verb([files["base"], files["slow"]], junit=str(tmp_path / "no" / "r.xml"))


def test_junit_overwrites_no_profile_and_no_device(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    profile = tmp_path / "kept.wwp"
    profile.write_bytes(Path(files["base"]).read_bytes())
    with pytest.raises(ExistingFile, match="is no JUnit file of waywiser compare"):
        verb([files["base"], files["same"]], junit=str(profile))
    assert profile.read_bytes() == Path(files["base"]).read_bytes()
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.xml", tmp_path / "target.xml"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert verb([files["base"], files["same"]], junit=str(pipe)) == 0
    assert os.read(reading, 4).startswith(b"<")
    os.close(reading)
    assert pipe.is_fifo()
    link.symlink_to(target)
    target.write_text("precious")
    for existing in (target, link):
        with pytest.raises(ExistingFile, match="is no JUnit file of waywiser compare"):
            verb(["none.wwp", "none.wwp"], junit=str(existing))
    assert target.read_text() == "precious"
    target.write_text("")
    assert verb([files["base"], files["same"]], junit=str(link)) == 0
    assert link.is_symlink()
    check_junit(ElementTree.parse(target).getroot())


def test_the_usual_threshold_is_that_of_decisions() -> None:
    assert parse_fraction(USUAL_THRESHOLD, "threshold") == THRESHOLD


def test_a_threshold_is_a_fraction() -> None:
    assert parse_fraction("3%", "threshold") == parse_fraction(" 0.03 ", "threshold") == 0.03
    assert parse_fraction("0", "threshold") == parse_fraction("0%", "threshold") == 0
    for text in ("", "-1%", "-0.1", "100%", "1", "3", "1e9", "nan", "inf", "three", "3%%"):
        with pytest.raises(WordError, match=re.escape(f"{text!r} is no threshold")) as error:
            parse_fraction(text, "threshold")
        assert error.value.remedy == "write 3% or 0.03: from 0 to less than 100%"


def test_a_threshold_is_a_change_of_time(files: dict[str, str], tmp_path: Path) -> None:
    """A time that is 8 % longer is a regression at 7 % and none at 9 %. At 0 every significant
    change is one, however small."""
    slow = [*regressed(files), "--threshold"]
    assert [run([*slow, each]) for each in ("0", "7%", "9%", "50%", "99.9%")] == [1, 1, 0, 0, 0]
    base, *little = (
        nodes.node(n, gpus=2, blocks=8, between_blocks=0.0002, slow=lambda _, s=slower: s)
        for n, slower in ((9, 1.0), (8, 1.005), (10, 1.005))
    )
    assert compare([base], little, 0.0).counts["regression"] == 10
    assert compare([base], little).counts["regression"] == 0


def test_two_full_profiles_of_eight_gpus_are_compared_at_once(
    tmp_path: Path, capsys: Output
) -> None:
    """1296 series of six blocks take 1.4 million calls. One call for each pair of series would be
    1.7 million more."""
    files = [full(tmp_path / f"{seed}.wwp", seed) for seed in (1, 2)]
    assert verb([str(files[0]), str(files[0])]) == 0  # the modules are loaded from here on
    code, calls = result_and_calls(lambda: verb([str(file) for file in files]))
    assert code == 0
    assert calls < 2_700_000
    assert "no change" in capsys.readouterr().out


def full(path: Path, seed: int) -> Path:
    import math
    import random

    rng = random.Random(seed)
    chunks = range(1, 7)
    workloads = [
        nodes.workload(f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine[chunks={n}]", size=2**s)
        for gpu in range(8) for n in chunks for s in range(3, 30)
    ]  # fmt: skip

    def visits() -> Iterator[Visit]:
        for block in range(6):
            for what in workloads:
                seconds = profiles.seconds(what.bytes) * math.exp(rng.gauss(0, 0.002))
                known = BlockSummary(block, seconds, 0.001 / STANDARD_ERRORS, 30, True)
                yield Visit(what, block, "converged", profiles.STARTED, mode="device",
                            samples=nodes.samples_of(known))  # fmt: skip

    write_profile(path, nodes.machine(), {}, visits())
    return path


def test_what_an_unfinished_survey_has_not_measured_is_one_line(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    killed = tmp_path / "killed.wwp"
    killed.write_bytes(Path(files["same"]).read_bytes())
    with sqlite3.connect(killed) as connection:
        connection.execute("DELETE FROM visit WHERE visit > 4")
        connection.execute("UPDATE run SET ended = NULL")
        connection.execute("UPDATE meta SET value = '4' WHERE key = 'rows in visit'")
        reseal(connection)
    connection.close()
    assert run(["compare", files["base"], str(killed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"note: {killed} is unfinished") for line in lines)
    (line,) = [line for line in lines if line.endswith(": the new survey is unfinished")]
    assert line.startswith("skipped  9 paths")


def test_an_interval_is_a_change_in_percent() -> None:
    assert _span(Interval(0.951, 1.0432), of_time=False) == "-4.9% to +4.3%"
    assert _span(Interval(0.8, 0.9), of_time=True) == "+11.1% to +25.0%"
    assert _span(Interval(0.5, 4e7), of_time=False) == "-50.0% to +9900.0%"
    assert _span(None, of_time=False) == ""


@pytest.mark.parametrize(
    ("slower", "faster", "why"),
    [
        (80, 1, "most are slower: the whole machine may be slower"),
        (1, 30, "most are faster: the whole machine may be faster"),
        (8, 5, "some seem to change by chance"),
        (4, 0, "some seem to change by chance"),
    ],
)
def test_chance_does_not_explain_that_nearly_all_are_slower(
    slower: int, faster: int, why: str
) -> None:
    paths = [SimpleNamespace(ratio=ratio) for ratio in [0.9] * slower + [1.1] * faster]
    found: Any = SimpleNamespace(changed_alone=paths, measured=[None] * 500)
    assert why in changed_alone(found)


def test_a_comparison_that_decides_nothing_is_not_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two surveys by one process each, as they were recorded: their noise is not known."""
    folder = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus-busy"
    before, now = (
        str(unpacked(folder / f"check-{n}.wwp.xz", tmp_path / f"{n}.wwp")) for n in (1, 2)
    )
    assert run(["compare", before, now]) == 3
    assert "29 not decided, of 29 paths" in capsys.readouterr().out
    assert run(["compare", before, now, "--fail-on", "never"]) == 0
    capsys.readouterr()
    assert run(["compare", before, now, "--fail-on", "suspected"]) == 3


@pytest.mark.parametrize("change", [-0.0004, 0.01, -0.05, 0.3])
def test_both_sides_have_digits_that_show_their_change(change: float) -> None:
    """Also if it is within the noise: 230 and 210 GB/s are no change of 5 %."""
    curve = nodes.h2d(0)

    def survey(factor: float) -> Subject:
        return nodes.node(
            1, gpus=1, blocks=4, between_blocks=0.08,
            slow=lambda what: factor if what.curve == curve else 1.0,
        )  # fmt: skip

    found = compare([survey(1.0)], [survey(1 / (1 + change))])
    path = next(each for each in found.paths if each.curve == curve)
    assert path.size is not None
    before, now = (float(text.split()[0]) for text in figures_before_and_now(path.size))
    exact = path.size.seconds_before / path.size.seconds_now
    assert now / before == pytest.approx(exact, rel=max(0.3 * abs(exact - 1), 0.0011))
