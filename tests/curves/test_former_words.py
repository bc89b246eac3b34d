"""Collectives that an earlier version imported as copies, and messages of imported ranks, in the
words of today."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from waywiser.curves.former_words import in_words_of_today
from waywiser.words import Workload

PAIRS = {
    "all_gather": lambda n, root: [(a, b) for a in range(n) for b in range(n) if a != b],
    "alltoall": lambda n, root: [(a, b) for a in range(n) for b in range(n) if a != b],
    "broadcast": lambda n, root: [(root, b) for b in range(n) if b != root],
    "scatter": lambda n, root: [(root, b) for b in range(n) if b != root],
    "gather": lambda n, root: [(a, root) for a in range(n) if a != root],
    "sendrecv": lambda n, root: [(a, (a + 1) % n) for a in range(n)],
}


def former(name: str, ranks: int, root: int, size: int, more: str = "") -> Workload:
    """As imports wrote it: one copy for each pair."""
    each = size if name in ("broadcast", "sendrecv") else size // ranks
    way = f"by nccl[collective={name}{more}] of {each}"
    pairs = PAIRS[name](ranks, root)
    return Workload.parse("; ".join(f"device@gpu:{a} -> device@gpu:{b} {way}" for a, b in pairs))


@pytest.mark.parametrize("more", ["", ",in-place=yes", ",type=half"])
@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("name", [name for name in PAIRS if name != "sendrecv"])
def test_a_collective_of_copies_is_one_transfer(name: str, ranks: int, more: str) -> None:
    word = {"all_gather": "allgather"}.get(name, name)
    root = ranks - 1 if name in ("broadcast", "scatter", "gather") else 0
    named = f",root={root}" if root else ""
    expected = Workload.parse(
        f"device@gpu:0-{ranks - 1} -> device@gpu:0-{ranks - 1} by "
        f"nccl[collective={word}{more}{named}] of {ranks * 4096}"
    )
    found = in_words_of_today(former(name, ranks, root, ranks * 4096, more))
    assert found == expected and found.identity == expected.identity


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_not_the_whole_collective_stays(name: str) -> None:
    whole = former(name, 4, 0, 2**20)
    rng = random.Random(name)
    dropped = rng.randrange(len(whole.transfers))
    partial = whole.transfers[:dropped] + whole.transfers[dropped + 1 :]
    larger = (replace(whole.transfers[0], bytes=8), *whole.transfers[1:])
    for transfers in (larger, whole.transfers + whole.transfers[:1]):
        workload = replace(whole, transfers=transfers)
        assert in_words_of_today(workload) is workload
    if name in ("all_gather", "alltoall"):  # a broadcast to fewer is one of fewer
        workload = replace(whole, transfers=partial)
        assert in_words_of_today(workload) is workload


@pytest.mark.parametrize(
    "text",
    ["device@gpu:0 -> device@gpu:1 by nccl of 64",
     "pinned@numa:0 -> device@gpu:0 by copy-engine of 64; "
     "pinned@numa:0 -> device@gpu:1 by copy-engine of 64",
     "device@gpu:0-3 -> device@gpu:0-3 by nccl[collective=alltoall] of 64"],
)  # fmt: skip
def test_everything_else_is_in_the_words_of_today(text: str) -> None:
    workload = Workload.parse(text)
    assert in_words_of_today(workload) is workload
    assert in_words_of_today(ring := former("sendrecv", 4, 0, 64)) is ring


def test_a_collective_that_names_nothing_is_an_allreduce() -> None:
    text = "device@gpu:0-3 -> device@gpu:0-3 by nccl{} of 64"
    named = Workload.parse(text.format("[collective=allreduce]"))
    assert in_words_of_today(Workload.parse(text.format(""))) == named


AT = {"pageable": "numa", "device": "gpu", "managed": "gpu"}


@pytest.mark.parametrize(
    ("settings", "today"),
    [
        ("[test=latency]", ""),
        ("[test=bw]", "[test=bw]"),
        ("[test=bw,window=16]", "[test=bw,window=16]"),
        ("[datatype=MPI_INT,test=latency]", "[datatype=MPI_INT]"),
    ],
)
@pytest.mark.parametrize("source", AT)
@pytest.mark.parametrize("destination", AT)
def test_messages_of_imported_ranks_are_those_of_a_survey(
    source: str, destination: str, settings: str, today: str
) -> None:
    ranks = random.Random(source + destination + settings).sample(range(9), 2)
    ends = [f"{kind}@{AT[kind]}:{n}" for kind, n in zip((source, destination), ranks, strict=True)]
    found = in_words_of_today(Workload.parse(f"{ends[0]} -> {ends[1]} by mpi{settings} of 64"))
    text = f"{source}@rank:{ranks[0]} -> {destination}@rank:{ranks[1]} by mpi{today} of 64"
    assert found == Workload.parse(text) and found.identity == Workload.parse(text).identity
    assert in_words_of_today(found) is found


def test_both_directions_of_imported_ranks_stay_together() -> None:
    both = "device@{0}:0 -> device@{0}:1 by mpi[test=bibw] of 8; device@{0}:1 -> device@{0}:0"
    text = f"{both} by mpi[test=bibw] of 8"
    found = in_words_of_today(Workload.parse(text.format("gpu")))
    assert found == Workload.parse(text.format("rank"))


@pytest.mark.parametrize(
    "text",
    [
        "device@gpu:0 -> device@gpu:1 by mpi of 64",
        "pinned@rank:0 -> pinned@rank:1 by mpi[test=ping-pong] of 64",
        "pinned@numa:0 -> device@gpu:1 by copy-engine of 64",
    ],
)
def test_other_messages_stay(text: str) -> None:
    workload = Workload.parse(text)
    assert in_words_of_today(workload) is workload
