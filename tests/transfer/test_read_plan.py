"""Plans of reads bring every byte once to its tensor, with few transfers."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from waywiser.transfer.read_plan import SMALL_BYTES, SPAN_BYTES, PlannedRead, plan_reads
from waywiser.transfer.safetensors_header import TensorEntry


def entries_of(sizes: list[tuple[int, int]]) -> list[TensorEntry]:
    """Tensors of so many bytes, each after a gap of so many bytes."""
    entries, reached = [], 1000
    for number, (gap, nbytes) in enumerate(sizes):
        reached += gap
        entries.append(TensorEntry(str(number), "U8", (nbytes,), reached, nbytes))
        reached += nbytes
    return entries


def planned(*sizes: int) -> list[PlannedRead]:
    return list(plan_reads(entries_of([(0, size) for size in sizes])))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20)), max_size=30),
    st.integers(0, 12),
    st.integers(1, 40),
    st.integers(0, 4),
)
@example([(0, 1), (1, 0), (1, 1)], 1, 4, 1)  # two gaps around an empty tensor
@settings(deadline=None)
def test_every_tensor_is_brought_once_and_bounds_hold(
    sizes: list[tuple[int, int]], small: int, span: int, gap: int
) -> None:
    entries = entries_of(sizes)
    reads = list(plan_reads(entries, small=small, span=span, gap=gap))
    assert [entry for read in reads for entry in read.entries] == entries
    for read in reads:
        filled = [entry for entry in read.entries if entry.nbytes]
        pieces = read.pieces()
        assert sum(nbytes for nbytes, _ in pieces) == read.nbytes
        assert [entry for _, entry in pieces if entry is not None] == filled
        at = read.offset
        for nbytes, entry in pieces:
            assert nbytes > 0
            if entry is not None:
                assert (at, nbytes) == (entry.offset, entry.nbytes)
            at += nbytes
        if len(filled) > 1:
            assert read.nbytes <= span
            assert all(entry.nbytes <= small for entry in filled)
            assert all(nbytes <= gap for nbytes, entry in pieces if entry is None)
        assert read.direct == (len(filled) <= 1)


def test_large_tensors_are_read_alone_and_in_place() -> None:
    reads = planned(SMALL_BYTES + 1, 100, SMALL_BYTES + 1, SMALL_BYTES + 1)
    assert [len(read.entries) for read in reads] == [1, 1, 1, 1]
    assert all(read.direct for read in reads)


def test_a_thousand_small_tensors_take_few_transfers() -> None:
    reads = planned(*[4096] * 10_000)
    assert len(reads) == -(-10_000 * 4096 // SPAN_BYTES)
    assert not any(read.direct for read in reads)


def test_neighbours_that_are_not_asked_for_are_skipped_or_dropped() -> None:
    near, far = entries_of([(0, 100), (1000, 100)]), entries_of([(0, 100), (10**6, 100)])
    assert len(list(plan_reads(near))) == 1
    assert len(list(plan_reads(far))) == 2


def test_empty_tensors_need_no_bytes() -> None:
    assert [(read.nbytes, read.direct) for read in planned(0, 0)] == [(0, True)]
    (read,) = planned(0, 7, 0)
    assert read.nbytes == 7
    assert read.direct
    assert planned() == []
