"""The grammar of the words, and identities that outlive new fields."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.words import (
    Layout,
    Memory,
    Operation,
    Path,
    Place,
    Transfer,
    WaywiserError,
    WordError,
    Workload,
    canonical_json,
    format_bytes,
    format_settings,
    parse_bytes,
    parse_settings,
    ranges_of,
)
from waywiser.words.numbers import MOST_BYTES

MOST_RATES = {"allreduce": 1.75, "allgather": 0.875, "reduce-scatter": 0.875, "alltoall": 0.875,
              "gather": 0.875, "scatter": 0.875, "broadcast": 1.0, "reduce": 1.0}  # fmt: skip
"""Bus bandwidth over algorithm bandwidth of 8 GPUs."""

words = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,6})?", fullmatch=True)
settings = st.dictionaries(words, st.from_regex(r"[a-zA-Z0-9.-]{1,8}", fullmatch=True), max_size=3)
places = st.one_of(
    st.builds(Place, st.sampled_from(["numa", "gpu", "rank"]), index=st.integers(0, 999)),
    st.builds(
        Place, st.sampled_from(["gpu", "rank"]), index=st.integers(0, 9), last=st.integers(10, 999)
    ),
    st.from_regex(r"/[a-z0-9./]{0,20}", fullmatch=True).map(lambda f: Place("file", file=f)),
)
memories = st.builds(Memory, words, places, settings)
paths = st.builds(Path, memories, memories, words)
transfers = st.builds(Transfer, paths, st.integers(1, 2**50), settings)
workloads = st.builds(
    Workload,
    st.lists(transfers, min_size=1, max_size=3).map(tuple),
    cache=st.sampled_from(["warm", "dirtied", "flushed"]),
)


@given(workloads)
def test_a_workload_is_read_back_from_its_text_and_its_json(workload: Workload) -> None:
    assert Workload.parse(str(workload)) == workload
    assert msgspec.json.decode(canonical_json(workload), type=Workload) == workload


@given(paths)
def test_the_opposite_of_the_opposite_is_the_path(path: Path) -> None:
    assert path.opposite.opposite == path
    assert Path.parse(str(path)) == path


@given(settings)
def test_settings_are_reported_sorted_and_read_back(chosen: dict[str, str]) -> None:
    text = format_settings(chosen)
    assert parse_settings(text) == chosen
    assert text == format_settings(dict(reversed(chosen.items())))


@given(st.integers(0, MOST_BYTES))
def test_a_size_is_read_back_from_its_text(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [("8", 8), ("64KiB", 2**16), ("1.5 GiB", 3 * 2**29), ("2m", 2**21), ("1 g", 2**30)],
)
def test_sizes_take_binary_units(text: str, size: int) -> None:
    assert parse_bytes(text) == size


def test_a_large_size_keeps_every_digit() -> None:
    assert parse_bytes(str(MOST_BYTES - 1)) == MOST_BYTES - 1


@pytest.mark.parametrize(
    "text", ["", "KiB", "-8", "1.3", "0.3KiB", "8 bytes", "1e9", "٣", "9" * 5000, "8388608TiB"]
)
def test_what_is_no_size_is_an_error(text: str) -> None:
    with pytest.raises(WordError):
        parse_bytes(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pinned",
        "pinned@numa",
        "pinned@numa:x -> device@gpu:0 by copy-engine",
        "pinned@numa:-1 -> device@gpu:0 by copy-engine",
        "pinned@numa:0 -> device@gpu:0",
        "pinned@numa:0 by copy-engine",
        "pinned@numa:0 -> device@gpu:0 by copy-engine[api]",
        "pinned@numa:0 -> device@gpu:0 by copy-engine[a=1,a=2]",
        "pinned@numa:0 -> device@gpu:0 by copy-engine of many",
        "Pinned@numa:0 -> device@gpu:0 by copy-engine",
    ],
)
def test_what_is_no_workload_is_one_line_with_a_remedy(text: str) -> None:
    with pytest.raises(WaywiserError) as result:
        Workload.parse(text)
    assert "\n" not in str(result.value)
    assert result.value.exit_code == 2


def test_a_path_has_no_parameters_and_no_size() -> None:
    with pytest.raises(WordError):
        Path.parse("pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync]")


def test_several_gpus_are_one_place_of_a_memory() -> None:
    text = "device@gpu:0-7 -> device@gpu:0-7 by nccl[collective=allreduce] of 1048576"
    workload = Workload.parse(text)
    assert str(workload) == text and workload.kind == "collective" and workload.transfer is None
    (place, other) = workload.transfers[0].path.places
    assert place == other == Place("gpu", 0, last=7) and place.is_several
    assert place.each == tuple(Place("gpu", index) for index in range(8))
    assert set(workload.places) == set(place.each)
    assert msgspec.json.decode(msgspec.json.encode(workload), type=Workload) == workload


@pytest.mark.parametrize("text", ["gpu:1-1", "gpu:2-1", "gpu:-1", "gpu:0-", "gpu:0-1-2", "gpu:0-x",
                                  "gpu:0-5000", "numa:0-1", "rank:1-1"])  # fmt: skip
def test_what_is_no_range_of_gpus_is_an_error(text: str) -> None:
    with pytest.raises(WordError):
        Place.parse(text)


@pytest.mark.parametrize("json", ['{"kind":"gpu","index":3,"file":"","last":3}',
                                  '{"kind":"numa","index":0,"file":"","last":1}',
                                  '{"kind":"gpu","index":0,"file":"","last":4000}'])  # fmt: skip
def test_a_range_from_a_file_is_checked(json: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json, type=Place)


# Recorded profiles hold these: a change here orphans every one of them.
@pytest.mark.parametrize(
    ("workload", "identity"),
    [
        (
            Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine of 1MiB"),
            "9fdfa63b947805f746acbe3c",
        ),
        (
            Workload.parse(
                "pageable[pages=huge]@numa:1 -> pageable@numa:0 by cpu[threads=4] of 64 (flushed)"
            ),
            "f4f2f5ae466b0cea80cf79be",
        ),
        (
            Workload(operation=Operation("empty-interval", Place("gpu", 3))),
            "10d8fa4387ac1c455878416e",
        ),
    ],
)
def test_identities_stay_what_they_are(workload: Workload, identity: str) -> None:
    assert workload.identity == identity


@given(workloads)
def test_equal_workloads_have_equal_identities(workload: Workload) -> None:
    again = msgspec.json.decode(msgspec.json.encode(workload), type=Workload)
    assert again.identity == workload.identity
    bigger = tuple(
        msgspec.structs.replace(transfer, bytes=transfer.bytes + 1)
        for transfer in workload.transfers
    )
    other = msgspec.structs.replace(workload, transfers=bigger)
    assert other.identity != workload.identity
    assert other.curve == workload.curve


def test_layouts_are_written_and_read_back() -> None:
    text = (
        "pinned@numa:0 -> device@gpu:0 by batch[access=any] as list[piece=28672] of 57344 (shared)"
    )
    workload = Workload.parse(text)
    assert str(workload) == text
    assert workload.shared
    transfer = workload.transfers[0]
    assert transfer.layout is not None
    assert (transfer.layout.run, transfer.layout.unit) == (28672, 28672)
    box = Transfer.parse("device@gpu:0 -> device@gpu:1 by sm as box[height=64,width=1KiB] of 64MiB")
    assert box.layout is not None
    assert box.layout.settings == {"height": "64", "width": "1024"}
    assert box.layout.unit == 64 * 1024


@pytest.mark.parametrize("layout", ["heap", "list[piece=]", "list[piece=1.3]", "box[[", "list of"])
def test_layouts_that_are_none_are_errors(layout: str) -> None:
    with pytest.raises(WordError):
        Transfer.parse(f"pinned@numa:0 -> device@gpu:0 by sm as {layout} of 64")


def test_a_layout_changes_the_identity() -> None:
    plain = Transfer.parse("pinned@numa:0 -> device@gpu:0 by sm of 64")
    listed = msgspec.structs.replace(plain, layout=Layout("list", {"piece": "8"}))
    assert Workload((plain,)).identity != Workload((listed,)).identity


@given(st.sets(st.integers(0, 40)))
def test_ranges_hold_the_numbers_and_no_two_of_them_touch(numbers: set[int]) -> None:
    found = ranges_of(numbers)
    assert [n for first, last in found for n in range(first, last + 1)] == sorted(numbers)
    assert all(after > last + 1 for (_, last), (after, _) in pairwise(found))


def test_a_sparse_touch_has_a_time_and_no_rate() -> None:
    """How much moves is the driver's to decide, so nobody knows the bytes."""
    way = "managed@numa:0 -> managed@gpu:0 by page-fault[stride=65536{}] of 1MiB"
    sparse, dense = (Workload.parse(way.format(chunk)) for chunk in ("", ",chunk=65536"))
    assert (sparse.bytes, sparse.rated_bytes, sparse.quantity.unit) == (2**20, 0, "s")
    assert (dense.rated_bytes, dense.quantity.unit) == (2**20, "GB/s")


def test_a_collective_is_over_several_memories() -> None:
    text = "device@gpu:0-7 -> device@gpu:0-7 by nccl[collective=allgather] of 1048576"
    found = Workload.parse(text)
    assert str(found) == text and found.kind == "collective"
    assert (found.size, found.bytes, found.rated_bytes) == (2**20,) * 3
    assert found.copies == () and found.transfer is None
    assert set(found.places) == {Place("gpu", n) for n in range(8)}
    assert found.methods == {"nccl"}
    assert not found.is_sustained


def test_a_set_with_a_collective_is_sustained_and_has_no_rate() -> None:
    collective = "device@gpu:0-1 -> device@gpu:0-1 by nccl[collective=allreduce] of 1048576"
    copy = "device@gpu:0 -> pinned@numa:0 by copy-engine of 4096"
    found = Workload.parse(f"{collective}; {copy}")
    assert found.is_sustained and found.kind == "set"
    assert (found.rated_bytes, found.quantity.unit) == (0, "s")
    assert not Workload.parse(f"{copy}; {copy}").is_sustained


@pytest.mark.parametrize(("collective", "factor"), MOST_RATES.items())
def test_the_bus_bandwidth_of_a_collective(collective: str, factor: float) -> None:
    text = f"device@gpu:0-7 -> device@gpu:0-7 by nccl[collective={collective}] of 64"
    (transfer,) = Workload.parse(text).transfers
    assert transfer.bus_factor == pytest.approx(factor)


@pytest.mark.parametrize(
    ("executor", "collective"),
    [("nccl", "allreduce"), ("alltoall[strategy=direct]", "alltoall"), ("alltoallv", "alltoallv")],
)
def test_an_executor_says_what_several_memories_do_if_nothing_is_named(
    executor: str, collective: str
) -> None:
    text = f"device@rank:2-3 -> device@rank:2-3 by {executor} of 64"
    (transfer,) = Workload.parse(text).transfers
    assert transfer.collective == collective
    assert transfer.bus_factor == (0.5 if collective == "alltoall" else 1.0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("pinned@numa:0 -> device@gpu:0 by sm", "copy"),
     ("pinned@numa:0 -> device@gpu:0 by sm; pinned@numa:0 -> device@gpu:1 by sm", "set"),
     ("device@gpu:0-3 -> device@gpu:0-3 by nccl", "collective"),
     ("device@gpu:0-3 -> device@gpu:0-3 by nccl; pinned@numa:0 -> device@gpu:1 by sm", "set")],
)  # fmt: skip
def test_what_a_workload_is(text: str, kind: str) -> None:
    found = Workload.parse(text)
    assert found.kind == kind
    assert found.copies == (() if "nccl" in text else found.transfers)


def test_an_operation_is_neither() -> None:
    found = Workload(operation=Operation.parse("malloc@numa:0"))
    assert (found.kind, found.copies, found.size) == ("operation", (), 0)
    assert found.methods == {"malloc"}


@pytest.mark.parametrize(
    "text", ["gpu:3-3", "gpu:3-2", "gpu:0-1024", "gpu:0-", "gpu:-3", "gpu:0-7-9", "numa:0-1",
             "gpu:0,2", "gpu:0--3"]
)  # fmt: skip
def test_what_is_no_range_of_places(text: str) -> None:
    with pytest.raises(WordError, match="is not a place"):
        Place.parse(text)


def test_an_operation_is_at_one_place_or_at_several_ranks() -> None:
    skew = Operation.parse("barrier-skew@rank:0-2")
    assert [place.index for place in Workload(operation=skew).places] == [0, 1, 2]
    assert str(skew) == "barrier-skew@rank:0-2"
    with pytest.raises(WordError, match="is at several places"):
        Operation.parse("launch@gpu:0-3")


def test_identities_of_single_memories_do_not_know_of_several() -> None:
    copy = Workload.parse("device@gpu:0 -> device@gpu:1 by nccl of 1MiB")
    assert copy.identity == "641d64168eb39f888c0f989e"
    both = Workload.parse("device@gpu:0-1 -> device@gpu:0-1 by nccl of 1MiB")
    assert both.identity != copy.identity
