from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.nccl import read
from waywiser.words.records import SUMMARY

FILE = Path(__file__).parent / "data" / "nccl.json"


def changed(**top: Any) -> Any:
    return json.loads(FILE.read_text()) | top


def test_a_collective_is_the_transfers_that_it_amounts_to() -> None:
    found = detect.read(FILE)[0]
    first = found.measured[0]
    way = "by nccl[collective=all_gather] of 1048576"
    assert str(first.workload) == (
        f"device@gpu:0 -> device@gpu:1 {way}; device@gpu:1 -> device@gpu:0 {way}"
    )
    assert (first.samples.span, first.samples.flags) == (pytest.approx((100e-6,)), (SUMMARY,))
    assert "in-place=yes" in str(found.measured[1].workload)


def test_iterations_are_samples_where_they_are_kept() -> None:
    sample = detect.read(FILE)[0].measured[2].samples
    expected = (149, 150, 151, 152, 150, 150.5, 149.5)
    assert [span * 1e6 for span in sample.span] == pytest.approx(expected)
    assert sample.flags == (0,) * 7


def test_wrong_values_are_a_failure() -> None:
    failure = detect.read(FILE)[0].measured[3].failure
    assert failure is not None and failure.kind == "wrong-bytes"


def test_the_environment_of_the_user_is_not_kept() -> None:
    found = detect.read(FILE)[0]
    assert found.hostname == "node7" and found.version == "NCCL 22703"
    assert "hunter2" not in repr(found)


def test_what_also_adds_is_an_error() -> None:
    found = read(changed(args=["all_reduce_perf"]), "x")
    assert not found.measured
    assert [(each.path, "also computes" in each.reason) for each in found.unsupported_paths] == [
        ("all_reduce", True)
    ]


@pytest.mark.parametrize(
    ("name", "transfers", "size"),
    [("sendrecv", 2, 2097152), ("alltoall", 2, 1048576), ("broadcast", 1, 2097152),
     ("scatter", 1, 1048576), ("gather", 1, 1048576)],
)  # fmt: skip
def test_who_sends_to_whom(name: str, transfers: int, size: int) -> None:
    first = read(changed(args=[f"./build/{name}_perf"]), "x").measured[0].workload
    assert [transfer.bytes for transfer in first.transfers] == [size] * transfers


@pytest.mark.parametrize(
    ("top", "what"),
    [
        ({"results": {}}, "x: results: an object where a list"),
        ({"results": [{}]}, r"x: results\[0\]\.size: null where a number"),
        ({"results": [{"size": 8, "root": "x"}]}, "the root is not a rank"),
        ({"results": [{"size": 2**60}]}, "bytes"),
        ({"config": {"devices": [{"rank": 0}, {"rank": 0}]}}, "rank 0 is named twice"),
    ],
)
def test_what_breaks_the_rules_is_reported_with_its_key(top: dict[str, Any], what: str) -> None:
    with pytest.raises(Malformed, match=what):
        read(changed(**top), "x")
