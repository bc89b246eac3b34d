from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import Malformed
from waywiser.exchange.imports.nccl import COLLECTIVES, ROOTED, read, why_not
from waywiser.words.records import SUMMARY

FILE = Path(__file__).parent / "data" / "nccl.json"


def changed(**top: Any) -> Any:
    return json.loads(FILE.read_text()) | top


def test_a_collective_is_one_transfer_of_the_tools_size() -> None:
    found = detect.read(FILE)[0]
    first = found.measured[0]
    assert str(first.workload) == (
        "device@gpu:0-1 -> device@gpu:0-1 by nccl[collective=allgather] of 2097152"
    )
    assert first.workload.kind == "collective"
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


@pytest.mark.parametrize(("name", "word"), COLLECTIVES.items())
def test_every_collective_has_the_size_of_the_tool(name: str, word: str) -> None:
    first = read(changed(args=[f"./build/{name}_perf"]), "x").measured[0].workload
    way = f"device@gpu:0-1 -> device@gpu:0-1 by nccl[collective={word}]"
    assert str(first) == f"{way} of 2097152"


def test_a_sendrecv_is_copies_around_a_ring() -> None:
    first = read(changed(args=["./build/sendrecv_perf"]), "x").measured[0].workload
    way = "by nccl[collective=sendrecv] of 2097152"
    assert str(first) == f"device@gpu:0 -> device@gpu:1 {way}; device@gpu:1 -> device@gpu:0 {way}"


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_root_and_an_operator_are_named_if_they_are_not_the_usual(name: str) -> None:
    value = changed(args=[f"{name}_perf"])
    value["results"] = [value["results"][0] | {"root": "1", "redop": "max"}]
    (first, *_) = read(value, "x").measured
    found = first.workload.transfers[0].parameters
    assert found.get("root") == ("1" if name in ROOTED else None)
    assert found["op"] == "max"


def test_more_ranks_than_a_collective_has_places_are_not_imported() -> None:
    assert "1025 ranks" in why_not("all_reduce", 1025, 1)
    assert "65 ranks" in why_not("sendrecv", 65, 1)
    assert not why_not("all_reduce", 1024, 1)


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


def test_errors_and_wrong_values_of_a_run_are_noted() -> None:
    value = changed(errors=["unhandled system error"], out_of_bounds={"count": 5, "okay": False})
    found = read(value, "x")
    assert "the tool failed: unhandled system error" in repr(found.unsupported_paths)
    assert all("5 wrong values" in " ".join(each.notes) for each in found.measured)


def test_a_time_that_contradicts_its_bandwidth_is_not_imported() -> None:
    value = changed()
    value["results"][0]["out_of_place"]["alg_bw"] *= 1.3
    found = read(value, "x")
    assert len(found.measured) < len(read(changed(), "x").measured)
    assert "so that one of them is wrong" in repr(found.unsupported_paths)
