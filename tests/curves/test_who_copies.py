"""Who copies, in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seen_copies import COPIES, LOCAL, seen, traits
from waywiser.curves.name import name_of, shown_workload
from waywiser.curves.who_copies import who_copies_sentences
from waywiser.machine.traits import Traits
from waywiser.words import Workload
from waywiser.words.records import Failure, WhileOccupied, WhoCopies

RESULTS: list[WhileOccupied] = ["waited", "ended", "undecided"]


def test_each_result_has_a_sentence() -> None:
    assert who_copies_sentences(seen()) == [
        "copies by multiprocessors: device -> device within a GPU by copy-engine and batch",
        "copies by copy engines: pinned -> device, device -> pinned by copy-engine",
    ]
    assert who_copies_sentences(()) == []


def test_a_layout_that_differs_is_named() -> None:
    copies = {**COPIES, f"{LOCAL} as list[piece=65536] of 1048576": RESULTS[1]}
    first, second = who_copies_sentences(seen(copies))
    assert "by copy-engine (contiguous, box) and batch" in first
    assert "device -> device within a GPU by copy-engine (list)" in second


@given(some.lists(some.sampled_from(RESULTS), min_size=1, max_size=5))
def test_what_differs_is_said_to_be_undecided(found: list[WhileOccupied]) -> None:
    sizes = {f"{LOCAL} of {4096 << n}": each for n, each in enumerate(found)}
    (sentence,) = who_copies_sentences(seen(sizes))
    decided = set(found) - {"undecided"}
    start = {
        frozenset({"waited"}): "copies by multiprocessors: ",
        frozenset({"ended"}): "copies by copy engines: ",
    }.get(frozenset(decided), "copies not decided: ")
    assert sentence.startswith(start)
    if not decided:
        assert sentence.endswith(": other work")


def test_a_gpu_that_was_not_observed_has_its_reason() -> None:
    failure = Failure("skipped", "other processes use it: 17 python")
    failed = WhoCopies(3, "2026-11-25T12:00:00+00:00", failure=failure)
    assert who_copies_sentences([failed]) == [
        "who copies on gpu:3 is not known: other processes use it: 17 python"
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            LOCAL.format(0),
            "device@gpu:0 -> device@gpu:0 by cudaMemcpyAsync, by multiprocessors",
        ),
        (
            f"{LOCAL.format(0)} as box[height=8,width=64]",
            "device@gpu:0 -> device@gpu:0 by cudaMemcpyAsync, by multiprocessors "
            "as box[height=8,width=64]",
        ),
        (
            "pinned@numa:0 -> device@gpu:0 by copy-engine",
            "pinned@numa:0 -> device@gpu:0 by copy-engine",
        ),
        (
            f"{LOCAL.format(0)} of 4096; {LOCAL.format(1)} of 4096",
            "device@gpu:0 -> device@gpu:0 by cudaMemcpyAsync, by multiprocessors; "
            "device@gpu:1 -> device@gpu:1 by cudaMemcpyAsync, by multiprocessors",
        ),
    ],
)
def test_names_show_the_call_and_identities_stay(text: str, name: str) -> None:
    workload = Workload.parse(text)
    identity = workload.identity
    assert name_of(shown_workload(workload, traits())) == name
    assert workload.identity == identity
    assert shown_workload(workload, Traits()) is workload
