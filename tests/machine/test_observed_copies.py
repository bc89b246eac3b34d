"""What was observed of copies, and which copies it is said of."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from seen_copies import COPIES, LOCAL, traits
from waywiser.machine.calls import call_text
from waywiser.machine.traits import DECLARED, Traits, declared_executors
from waywiser.words import Path, Transfer
from waywiser.words.records import WhileOccupied

H100 = traits()
RESULTS: list[WhileOccupied] = ["waited", "ended", "undecided"]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (LOCAL.format(0), "cudaMemcpyAsync, by multiprocessors"),
        (f"{LOCAL.format(1)} of 68719476736", "cudaMemcpyAsync, by multiprocessors"),
        (f"{LOCAL.format(0)}[api=sync]", "cudaMemcpy, by multiprocessors"),
        (
            f"{LOCAL.format(0)} as box[height=256,width=8]",
            "cudaMemcpyAsync, by multiprocessors",
        ),
        (
            "device@gpu:1 -> device@gpu:1 by batch as list[piece=4096]",
            "cudaMemcpyBatchAsync, by multiprocessors",
        ),
    ],
)
def test_what_waited_is_made_by_multiprocessors(text: str, call: str) -> None:
    assert H100.by_multiprocessors(Transfer.parse(text)) == call


@pytest.mark.parametrize(
    "text",
    [
        "pinned@numa:0 -> device@gpu:0 by copy-engine",
        "pinned@numa:1 -> device@gpu:1 by copy-engine",
        # nobody looked at these
        "device@gpu:2 -> device@gpu:2 by copy-engine",
        "device@gpu:0 -> device@gpu:1 by copy-engine",
        "device@gpu:0 -> device@gpu:0 by sm",
        "device@gpu:0 -> device@gpu:0 by copy-engine as list[piece=65536]",
        "device@gpu:0 -> device@gpu:0 by copy-engine[call=2d] as box[height=64,width=2048]",
        "device@gpu:0 -> device@gpu:0 by batch[access=any] as list[piece=65536]",
        "device[from=pool]@gpu:0 -> device@gpu:0 by copy-engine",
        "managed@gpu:0 -> device@gpu:0 by copy-engine",
        "pageable@numa:0 -> pageable@numa:0 by cpu",
    ],
)
def test_of_what_ended_or_nobody_looked_at_nothing_is_said(text: str) -> None:
    transfer = Transfer.parse(text)
    assert H100.by_multiprocessors(transfer) == ""
    assert call_text([transfer], H100) == call_text([transfer], DECLARED)
    assert Traits().by_multiprocessors(transfer) == ""


@given(some.lists(some.sampled_from(RESULTS), min_size=1, max_size=4))
def test_sizes_that_differ_decide_nothing(found: list[WhileOccupied]) -> None:
    sizes = {f"{LOCAL} of {4096 << n}": each for n, each in enumerate(found)}
    found_of_all = traits(sizes).while_occupied(Transfer.parse(LOCAL.format(0)))
    assert found_of_all == (found[0] if len(set(found)) == 1 else "undecided")


@given(some.sampled_from(RESULTS), some.sampled_from(RESULTS))
def test_a_kind_of_path_is_named_by_the_gpus_that_decided(
    one: WhileOccupied, other: WhileOccupied
) -> None:
    both = Traits(
        who_copies=(
            traits({f"{LOCAL} of 4096": one}, 1).who_copies[0],
            traits({f"{LOCAL} of 4096": other}).who_copies[1],
        )
    )
    path = Path.parse("device@gpu:7 -> device@gpu:7 by copy-engine")
    decided = {one, other} - {"undecided"}
    expected = "cudaMemcpyAsync, by multiprocessors" if decided == {"waited"} else ""
    assert both.are_by_multiprocessors(path) == expected
    assert both.are_by_multiprocessors(path.opposite) == expected
    peers = Path.parse("device@gpu:0 -> device@gpu:1 by copy-engine")
    assert both.are_by_multiprocessors(peers) == ""


def test_the_headline_names_the_call() -> None:
    local, to_gpu = (Transfer.parse(text.format(0)) for text in (LOCAL, [*COPIES][-2]))
    assert call_text([local], H100) == "cudaMemcpyAsync, by multiprocessors"
    assert call_text([to_gpu], H100) == "cudaMemcpyAsync, pinned host memory"
    box = Transfer.parse(f"{LOCAL.format(0)} as box[height=64,width=2048]")
    assert call_text([box], H100).startswith("cudaMemcpyAsync, by multiprocessors as box[")


def test_copies_of_the_runtime_declare_that_either_unit_may_make_them() -> None:
    declared = [DECLARED.executor(name) for name in declared_executors()]
    either = {each.name for each in declared if each.either_unit}
    runtime = {each.name for each in declared if each.family == "copies of the runtime"}
    assert either and either <= runtime


def test_traits_without_observations_are_stored_as_before() -> None:
    assert msgspec.json.encode(Traits()) == b"{}"
    stored = msgspec.json.encode(H100)
    assert msgspec.json.decode(stored, type=Traits) == H100
