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

words = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,6})?", fullmatch=True)
settings = st.dictionaries(words, st.from_regex(r"[a-zA-Z0-9.-]{1,8}", fullmatch=True), max_size=3)
places = st.one_of(
    st.builds(Place, st.sampled_from(["numa", "gpu", "rank"]), index=st.integers(0, 999)),
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
