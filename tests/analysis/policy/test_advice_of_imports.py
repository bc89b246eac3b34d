"""Advice from what other tools measured: a copy that was measured is never "not measured"."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.analysis.policy.advice import Advice, CopyRequest, advise
from waywiser.analysis.policy.build import decision_tables
from waywiser.analysis.policy.errors import NotMeasured, PolicyError
from waywiser.analysis.questions.crossovers import answer as crossovers
from waywiser.curves.curve import Curve
from waywiser.curves.headlines import headline_rows
from waywiser.curves.methods import is_copy
from waywiser.curves.subject import Subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile

DATA = Path(__file__).parents[2] / "exchange" / "imports" / "data"
COLLECTIVES = ("nccl.json", "nccl.txt", "rccl.csv")
"""Files without a copy between two places."""
SETS = ("benchpress_maxrate.out", "benchpress_memcpy_mult.out", "benchpress_mult_pong.out",
        "benchpress_node_pong.out")  # fmt: skip
"""Files of several transfers at once."""

FILES = sorted(file.name for file in DATA.iterdir() if file.name not in (*COLLECTIVES, *SETS))
KINDS = {"device", "pageable", "pinned"}

IMPORTED = {"imported": [{"tool": "a tool", "version": "1"}]}
SETTINGS = ("api=sync", "api=async", "side=push", "cus=304", "parts=2", "by=destination",
            "api=sync,submit=1", "grid=paper", "threads=all", "unheard=of")  # fmt: skip


def imported(name: str, folder: Path) -> Subject:
    target = folder / "made.wwp"
    import_files([DATA / name], target, machine="m")
    with Profile.open(target) as profile:
        return Subject.of(profile)


def advised(known: Subject, source: str, destination: str, size: int) -> Advice:
    return advise([known], CopyRequest.of(source, destination, size))


@pytest.mark.parametrize("name", FILES)
def test_every_copy_of_every_program_is_advised_upon(name: str, tmp_path: Path) -> None:
    known = imported(name, tmp_path)
    copies = [
        each
        for each in filter(is_copy, known.curves)
        if {end.variant.get("from", "") for end in each.first_transfer.path.ends} == {""}
        and {end.kind for end in each.first_transfer.path.ends} <= KINDS
    ]
    assert copies
    for each in copies:
        path, size = each.first_transfer.path, each.measured[-1].bytes
        found = advised(known, str(path.source), str(path.destination), size)
        own = {other.method.executor for other in (found.best, *found.alternatives)}
        assert path.executor in own or found.measured != " -> ".join(map(str, path.places))
        assert found.best.bytes_per_second > 0


@pytest.mark.parametrize("name", FILES)
def test_every_program_has_headlines(name: str, tmp_path: Path) -> None:
    known = imported(name, tmp_path)
    rows = headline_rows(known.machine, known.curves)
    measured = {
        each.family
        for each in filter(is_copy, known.curves)
        if each.first_transfer.path.executor == "copy-engine" and is_of_links(each)
    }
    assert rows and measured <= {row.first.family for row in rows}


def is_of_links(curve: Curve) -> bool:
    path = curve.first_transfer.path
    return path.is_plain and {end.kind for end in path.ends} <= {"device", "pinned"}


@pytest.mark.parametrize(
    ("settings", "cache", "way"),
    list(product(SETTINGS, ("", " (dirtied)", " (flushed)"),
                 ("pinned@numa:0 -> device@gpu:0", "device@gpu:1 -> pageable@numa:0"))),
)  # fmt: skip
def test_whatever_settings_and_caches_a_tool_had_its_copy_is_a_method(
    settings: str, cache: str, way: str
) -> None:
    text = f"{way} by copy-engine[{settings}]{cache}"
    known = subject(curve(text, postal(5e-6, 20e9)), environment=IMPORTED)
    source, _, destination = way.partition(" -> ")
    found = advised(known, source, destination, 2**24)
    shown = dict(each.split("=") for each in settings.split(","))
    if cache:
        shown["cache"] = cache.strip(" ()")
    assert found.best.method.settings == shown
    assert 18e9 < found.best.bytes_per_second < 21e9
    assert all(each.library != "waywiser.transfer" for each in found.code)
    assert any("no policy can install" in note for note in found.notes)
    assert "transfer library" not in found.why
    assert decision_tables([known]) == ()  # of policies, which the library must be able to follow
    (row,) = headline_rows(known.machine, known.curves)
    assert row.first.text == known.curves[0].text


@pytest.mark.parametrize("executor", ["copy-engine", "mpi", "sm[cus=16]"])
@pytest.mark.parametrize("task", ["test=shared", "test=bw,window=64", "unique=half"])
@pytest.mark.parametrize("faster", [0.7, 1.3])
def test_the_test_of_a_benchmark_is_no_method(executor: str, task: str, faster: float) -> None:
    tested = f"{executor}[{task}]".replace("][", ",")
    way = "pinned@numa:0 -> device@gpu:0 by"
    known = subject(curve(f"{way} {tested}", postal(5e-6, faster * 20e9)),
                    curve(f"{way} {executor}", postal(5e-6, 20e9)),
                    environment=IMPORTED)  # fmt: skip
    found = advised(known, "pinned@numa:0", "device@gpu:0", 2**24)
    assert str(found.best.method) == executor and found.alternatives == ()
    assert 18e9 < found.best.bytes_per_second < 21e9
    assert "by more than" not in found.why
    assert not any(task in note for note in found.notes)
    assert not crossovers(known).answered


def test_a_benchmark_that_has_no_other_test_is_advised_upon_with_its_name() -> None:
    way = "device@gpu:0 -> device@gpu:1 by mpi"
    small, large = [2**n for n in range(3, 14)], [2**n for n in range(3, 24)]
    known = subject(curve(f"{way}[test=latency]", postal(2e-6, 9e9), sizes=small),
                    curve(f"{way}[test=bw]", postal(1e-7, 10e9), sizes=large),
                    environment=IMPORTED)  # fmt: skip
    for size, least, most in ((2**12, 2.2e-6, 5e-6), (2**22, 4e-4, 5e-4)):
        found = advised(known, "device@gpu:0", "device@gpu:1", size)
        assert str(found.best.method) == "mpi" and found.alternatives == ()
        assert least < size / found.best.bytes_per_second < most
    notes = [note for note in found.notes if note.startswith("the times of")]
    assert notes == ["the times of mpi at 8 B to 8 KiB are those of test=latency",
                     "the times of mpi at 16 KiB to 8 MiB are those of test=bw"]  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_survey_has_the_methods_of_the_library_alone(settings: str) -> None:
    text = f"pinned@numa:0 -> device@gpu:0 by copy-engine[{settings}]"
    with pytest.raises(NotMeasured, match="no method was measured"):
        advised(subject(curve(text, postal(5e-6, 20e9))), "pinned@numa:0", "device@gpu:0", 2**24)


def test_what_a_tool_did_not_measure_asks_for_no_survey() -> None:
    known = subject(curve("pinned@numa:0 -> device@gpu:0 by sm", postal(5e-6, 20e9)),
                    environment=IMPORTED)  # fmt: skip
    for source, size in (("pageable@numa:0", 2**20), ("pinned@numa:0", 2**50)):
        with pytest.raises(NotMeasured) as caught:
            advised(known, source, "device@gpu:0", size)
        assert "survey" not in str(caught.value) and "a tool 1" in str(caught.value)


def test_peer_access_that_is_off_is_another_method_where_no_gpu_says_more() -> None:
    way = "device@gpu:0 -> device@gpu:1 by copy-engine"
    known = subject(curve(f"{way}[api=sync]", postal(5e-6, 18e9)),
                    curve(f"{way}[api=sync,peer=off]", postal(5e-6, 10e9)),
                    environment=IMPORTED)  # fmt: skip
    found = advised(known, "device@gpu:0", "device@gpu:1", 2**26)
    names = [str(found.best.method), *(str(each.method) for each in found.alternatives)]
    assert names[0] == "copy-engine[api=sync]"


def test_threads_that_a_tool_states_are_counted() -> None:
    known = subject(curve("pinned@numa:0 -> device@gpu:0 by cpu[threads=4]", postal(5e-6, 9e9)),
                    environment=IMPORTED)  # fmt: skip
    request = CopyRequest.of("pinned@numa:0", "device@gpu:0", 2**24, max_threads=2)
    with pytest.raises(PolicyError, match="more than 2 threads"):
        advise([known], request)
