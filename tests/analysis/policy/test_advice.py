"""Advice for one copy, from planted curves and from kept profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.subjects import curve, postal, subject

import waywiser
from kept import RESULTS, unpacked
from waywiser import cli
from waywiser.analysis.policy.advice import Advice, CopyRequest, advise
from waywiser.analysis.policy.errors import NotMeasured, PolicyError
from waywiser.curves.subject import Subject
from waywiser.machine.machine import PlacedRank
from waywiser.profile import Profile
from waywiser.render.views.advice import takes_text

PLAIN = "pageable@numa:0 -> device@gpu:0 by copy-engine"
STAGED = "pageable@numa:0 -> device@gpu:0 by staged"
RELAY = "pageable@numa:0 -> device@gpu:0 by relay[relays=1]"
SUBJECT = subject(
    curve(PLAIN, postal(5e-6, 8e9)),
    curve(STAGED, postal(60e-6, 25e9)),
    curve(f"{STAGED}[threads=2]", postal(60e-6, 15e9)),
    curve(RELAY, postal(60e-6, 50e9)),
)
MANY = 2**26

Output = pytest.CaptureFixture[str]


def advice(
    bytes: int | str = MANY,
    source: str = "pageable@numa:0",
    destination: str = "device@gpu:0",
    *,
    count: int = 1,
    peers_idle: bool = False,
    max_threads: int | None = None,
    polite: bool = False,
) -> Advice:
    request = CopyRequest.of(
        source, destination, bytes, count=count, peers_idle=peers_idle,
        max_threads=max_threads, polite=polite,
    )  # fmt: skip
    return advise([SUBJECT], request)


def test_what_runs_beside_a_copy_is_a_collective() -> None:
    with pytest.raises(PolicyError, match="foo is no collective") as error:
        CopyRequest.of("pageable@numa:0", "device@gpu:0", 1, beside="foo")
    assert "allreduce, allgather" in error.value.remedy


@pytest.mark.parametrize(
    ("margin", "text"),
    [(0.17, "takes 17% longer"), (1.0, "takes ×2 the time"), (98.75, "takes ×99.8 the time"),
     (2345.0, "takes ×2346 the time"), (-0.04, "takes 4% less time")],
)  # fmt: skip
def test_what_another_method_takes_is_a_factor_from_twice_the_time_on(
    margin: float, text: str
) -> None:
    assert takes_text(margin) == text


@pytest.mark.parametrize(
    ("source", "destination", "message", "remedy"),
    [
        ("rank:0", "rank:1", "nothing was measured at rank:1 alone", "rank:2"),
        ("rank:0", "rank:9", "the machine has no rank:9", "rank:2"),
        ("rank:0-3", "rank:0-3", "is no copy: measured was alltoall", "--crossovers"),
        ("rank:2", "rank:0", "was not measured", "--ranks 4 --ranks-per-gpu 4 --only"),
    ],
)
def test_ranks_without_messages_differ_from_ranks_that_no_launch_had(
    source: str, destination: str, message: str, remedy: str
) -> None:
    ranks = tuple(PlacedRank(n, (n,), 0, 0) for n in range(4))
    found = subject(
        curve("device@rank:0 -> device@rank:2 by mpi", postal(5e-6, 8e9)),
        curve("device@rank:0-3 -> device@rank:0-3 by alltoall", postal(5e-6, 8e9)),
        machine=msgspec.structs.replace(profiles.machine(), ranks=ranks),
    )
    request = CopyRequest.of(f"device@{source}", f"device@{destination}", "1MiB")
    with pytest.raises(PolicyError, match=message) as error:
        advise([found], request)
    assert remedy in error.value.remedy


def test_a_message_is_not_said_to_take_least_from_others() -> None:
    ranks = tuple(PlacedRank(n, (n,), 0, 0) for n in range(2))
    found = subject(
        curve("device@rank:0 -> device@rank:1 by mpi", postal(5e-6, 8e9)),
        curve("device@rank:0 -> device@rank:1 by mpi-staged", postal(9e-6, 4e9)),
        machine=msgspec.structs.replace(profiles.machine(), ranks=ranks),
    )
    request = CopyRequest.of("device@rank:0", "device@rank:1", "1MiB")
    assert advise([found], request).why == "of 2 measured methods it is the fastest"


def test_the_fastest_method_is_advised_with_its_alternatives() -> None:
    found = advice()
    assert str(found.best.method) == "staged"
    assert 24e9 < found.best.bytes_per_second < 26e9
    assert found.best.low < found.best.bytes_per_second < found.best.high
    assert [str(each.method) for each in found.alternatives] == [
        "staged[threads=2]", "copy-engine"
    ]  # fmt: skip
    assert all(each.margin > 0.3 for each in found.alternatives)
    assert "fastest, by more than the noise" in found.why
    assert [line.code for line in found.code] == ["transfer.copy(dst, src)"]


def test_small_copies_are_plain_with_the_line_of_other_libraries() -> None:
    found = advice("4KiB")
    assert str(found.best.method) == "copy-engine"
    assert {line.library: line.code for line in found.code} == {
        "waywiser.transfer": "transfer.copy(dst, src)",
        "torch": "dst.copy_(src, non_blocking=True)",
        "CUDA": "cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream);",
    }


def test_sizes_between_measured_ones_are_interpolated() -> None:
    found = advice(3 * 2**24)
    assert found.best.time.interpolated
    assert abs(found.best.bytes_per_second / 25e9 - 1) < 0.05


def test_sizes_beyond_the_largest_one_are_estimated() -> None:
    largest = advice(MANY).table.decisions[-1].bytes
    found = advice(4 * largest)
    assert found.best.time.interpolated and str(found.best.method) == "staged"
    assert found.best.low < 25e9 < found.best.high * 1.01
    assert advice(largest).table == advice(MANY).table
    with pytest.raises(NotMeasured, match="not within the measured sizes"):
        advice(32 * largest)


def test_relays_are_advised_only_if_peers_are_idle() -> None:
    assert all(each.method.executor != "relay" for each in advice().alternatives)
    found = advice(peers_idle=True)
    assert found.best.method.executor == "relay"
    assert found.best.time.costs.relays == 1
    assert found.code[0].code == "transfer.Context(relays=[…]).copy(dst, src)"
    back = "device@gpu:0", "pageable@numa:0"
    with pytest.raises(NotMeasured):
        advice(MANY, *back, peers_idle=True)


def test_few_threads_leave_methods_out() -> None:
    found = advice(max_threads=2)
    assert str(found.best.method) == "staged[threads=2]"
    assert found.alternatives[-1].excluded.startswith("takes ")
    assert found.code[0].code == "transfer.Context(threads=2).copy(dst, src)"
    alone = advice(max_threads=0)
    assert str(alone.best.method) == "copy-engine"
    assert alone.code[0].code == "transfer.Context(plain=True).copy(dst, src)"


def test_a_polite_copy_takes_least_from_others() -> None:
    found = advice(polite=True)
    assert str(found.best.method) == "copy-engine"
    assert found.code[0].code == "transfer.Context(plain=True).copy(dst, src)"
    assert found.alternatives[0].margin < -0.5


def test_an_equivalent_gpu_gives_the_answer_and_says_so() -> None:
    found = advice(destination="device@gpu:1")
    assert str(found.best.method) == "staged"
    assert any("numa:0 -> gpu:0, which is equivalent" in note for note in found.notes)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (("device@gpu:0", "device@gpu:1", "1MiB"), "no method was measured"),
        (("pageable@numa:0", "device@gpu:0", "1TiB"), "not within the measured sizes"),
        (("pageable@numa:0", "device@gpu:9", "1MiB"), "the machine has no gpu:9"),
        (("managed@numa:0", "device@gpu:0", "1MiB"), "there is no advice for managed"),
        (("pageable@numa:0", "device@gpu:0", "1MiB", 8), "no advice for lists of pageable"),
        (("pageable[pages=huge]@numa:0", "device@gpu:0", "1MiB"), "there is no advice"),
    ],
)
def test_what_is_not_known_is_said_with_a_remedy(request_: tuple[Any, ...], message: str) -> None:
    source, destination, size, *count = request_
    with pytest.raises(PolicyError, match=message) as error:
        advice(size, source, destination, count=count[0] if count else 1)
    assert error.value.remedy


@pytest.mark.parametrize("wrong", [{"bytes": 0}, {"count": 0}, {"max_threads": -1}])
def test_numbers_that_are_too_small_are_errors(wrong: dict[str, int]) -> None:
    with pytest.raises(PolicyError, match="is no number of"):
        advice(**wrong)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packed = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
    return unpacked(packed, tmp_path_factory.mktemp("kept") / "node.wwp")


@pytest.fixture
def node(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(kept.parent)
    return kept


def test_the_first_line_is_the_method(node: Path, capsys: Output) -> None:
    words = ["advise", "node.wwp", "--from", "pinned@numa:0", "--to", "device@gpu:3"]
    assert cli.run([*words, "--bytes", "28KiB", "--count", "600", "--table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sm"
    assert "GB/s" in lines[1] and "600 pieces of 28 KiB" in lines[1]
    assert any("numa:0 -> gpu:0, which is equivalent" in line for line in lines)
    assert any(line.lstrip().startswith("from") and "because" in line for line in lines)
    assert cli.run([*words, "--bytes", "1GiB", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best"]["method"] == {"executor": "copy-engine", "settings": {}}
    assert found["best"]["bytes_per_second"] > 40e9
    assert cli.run([*words, "--bytes", "lots"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_lists_between_measured_ones_have_times_of_their_own(node: Path) -> None:
    with Profile.open(node) as profile:
        measured = Subject.of(profile)
    for piece in ("28KiB", "64KiB", "200KiB"):
        before = 0.0
        for pieces in (2, 8, 32, 100, 128, 200, 512, 1000):
            request = CopyRequest.of("pinned@numa:0", "device@gpu:0", piece, count=pieces)
            best = advise([measured], request).best
            assert best.time.pieces == pieces
            # No list is faster than the largest plain copy, 55.56 GB/s, and none takes less time
            # than a shorter one.
            assert best.low <= best.bytes_per_second <= 55.6e9
            assert best.time.seconds > before
            before = best.time.seconds


def test_a_list_far_from_what_was_measured_has_no_advice(node: Path, capsys: Output) -> None:
    words = ["advise", "node.wwp", "--from", "pinned@numa:0", "--to", "device@gpu:3"]
    assert cli.run([*words, "--bytes", "64KiB", "--count", "100000"]) == 2
    said = capsys.readouterr().err
    assert "100000 pieces of 64 KiB are too far" in said and said.count("\n") == 1


def test_a_table_of_all_sizes_needs_no_bytes(node: Path, capsys: Output) -> None:
    words = ["advise", "node.wwp", "--from", "pinned@numa:0", "--to", "device@gpu:3", "--table"]
    assert cli.run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pinned -> device"
    assert any("1 GiB" in line and "copy-engine" in line for line in lines)
    assert cli.run([*words, "--count", "600"]) == 0
    assert "lists of" in capsys.readouterr().out.splitlines()[0]
    assert cli.run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"]["source"] == "pinned"
    assert cli.run([*words, "--polite"]) == 2
    assert "--polite has no effect here: a table of all sizes" in capsys.readouterr().err


def test_notebooks_have_advice_and_the_policy(node: Path) -> None:
    view = waywiser.open(node)
    found = view.advise("pinned@numa:0", "device@gpu:0", "64MiB")
    assert found.best.method.executor == "copy-engine"
    policy = view.policy()
    assert policy.measured == "2026-11-20"
    kinds = {(each.source, each.destination, each.relation) for each in policy.classes}
    assert ("device", "device", "peers") in kinds and ("device", "device", "same") in kinds
