"""Dealing transfers to ranks and putting together what they found."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from scripted_orders import an_order

from waywiser.measure.probe.protocol import MeasuredVisit
from waywiser.measure.probe.share import ranks_of, share_of, together
from waywiser.words import Operation, Place, Workload
from waywiser.words.records import BufferRecord, Samples


def a_part(*seconds: tuple[float, ...], stop: str = "converged", **fields: object) -> MeasuredVisit:
    """A part with one sample per row of seconds per transfer."""
    n = len(seconds)
    samples = Samples(
        span=tuple(max(row) for row in seconds),
        host=tuple(2 * max(row) for row in seconds),
        skew=(0.0,) * n,
        repetitions=(1,) * n,
        flags=(0,) * n,
        transfers=seconds,
    )
    return MeasuredVisit("device", stop, samples, **fields)  # type: ignore[arg-type]


@given(st.integers(1, 20), st.integers(1, 8))
def test_every_transfer_is_measured_by_one_rank_and_comes_back_in_its_place(
    transfers: int, size: int
) -> None:
    workload = an_order(*({} for _ in range(transfers))).workload
    shares = {rank: share_of(workload, rank, size) for rank in ranks_of(workload, size)}
    assert all(share.transfers for share in shares.values())
    parts = {
        rank: a_part(tuple(float(t.bytes) for t in share.transfers))
        for rank, share in shares.items()
    }
    expected = tuple(float(t.bytes) for t in workload.transfers)
    assert together(parts).samples.transfers == (expected,)


def test_an_operation_belongs_to_the_first_rank() -> None:
    workload = Workload(operation=Operation("empty-interval", Place("gpu", 0)))
    assert list(ranks_of(workload, 3)) == [0]
    assert share_of(workload, 0, 3) == workload
    assert share_of(workload, 1, 3).operation is None


def test_the_share_keeps_the_cache_state() -> None:
    workload = Workload(an_order({}, {}).workload.transfers, cache="flushed")
    assert share_of(workload, 1, 2).cache == "flushed"


def test_one_rank_alone_is_taken_as_it_is() -> None:
    part = a_part((1.0,), notes=("as it is",))
    assert together({0: part}) is part


def test_the_slowest_rank_is_the_span_of_a_sample() -> None:
    whole = together({0: a_part((1.0,), (4.0,)), 1: a_part((3.0,), (2.0,))})
    assert whole.samples.span == (3.0, 4.0)
    assert whole.samples.host == (6.0, 8.0)
    assert whole.samples.transfers == ((1.0, 3.0), (4.0, 2.0))


def test_samples_without_a_partner_are_dropped_and_counted() -> None:
    whole = together({0: a_part((1.0,), (2.0,)), 1: a_part((3.0,))})
    assert len(whole.samples) == len(whole.samples.flags) == 1
    assert whole.notes == ("samples taken: rank 0 2, rank 1 1; the first 1 of each are used",)


def test_together_they_converged_only_if_each_did() -> None:
    assert together({0: a_part((1.0,)), 1: a_part((1.0,), stop="budget")}).stop == "budget"
    assert together({0: a_part((1.0,)), 1: a_part((1.0,))}).stop == "converged"


def test_sizes_add_up_and_times_overlap() -> None:
    buffer = BufferRecord("pageable@numa:0", "verified")
    parts = {
        rank: a_part((1.0,), buffers=(buffer,), buffer_bytes=rank + 1, setup_seconds=rank + 1.0)
        for rank in (1, 0)
    }
    whole = together(parts)
    assert (whole.buffer_bytes, whole.setup_seconds, len(whole.buffers)) == (3, 2.0, 2)


def test_times_of_single_gpus_come_back_in_the_place_of_their_transfer() -> None:
    several = a_part((2.0, 5.0))
    lanes = (((1.0, 2.0), (5.0, 4.0)),)
    samples = msgspec.structs.replace(several.samples, lanes=lanes)
    several = msgspec.structs.replace(several, samples=samples)
    found = together({0: several, 1: a_part((3.0,))}).samples
    assert found.transfers == ((2.0, 3.0, 5.0),)
    assert found.lanes == (((1.0, 2.0), (3.0,), (5.0, 4.0)),)
    assert together({0: a_part((1.0,)), 1: a_part((3.0,))}).samples.lanes == ()
