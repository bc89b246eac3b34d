from __future__ import annotations

from waywiser.words.member_lines import MOST, counted, member_lines, merged


def test_few_are_each_reported() -> None:
    few = [f"a@gpu:{n} -> b@gpu:0 by carrier" for n in range(MOST)]
    assert list(member_lines(few)) == few


def test_many_are_reported_by_executor_with_the_first_of_each() -> None:
    pairs = [f"a{n} -> b by carrier" for n in range(MOST)]
    paths = [f"a@gpu:{n} -> b@gpu:0 by cart[wheels=3] of 8 B" for n in range(2)]
    assert list(member_lines([*pairs, *paths, "c -> d by crate", "empty@gpu:0"])) == [
        f"by carrier: {MOST} pairs of memories, as a0 -> b by carrier",
        "by cart: 2 series, as a@gpu:0 -> b@gpu:0 by cart[wheels=3] of 8 B",
        "c -> d by crate",
        "empty@gpu:0",
    ]


def test_what_has_no_executor_is_counted_too() -> None:
    calls = [f"malloc@numa:{n}" for n in range(MOST + 1)]
    assert list(member_lines(calls)) == [f"{MOST + 1} operations, as malloc@numa:0"]


def test_reasons_that_begin_with_a_kind_of_memory_are_one() -> None:
    reasons = {
        "clay memory stays where it is": ["clay -> stone by call", "stone -> clay by call"],
        "nobody comes": ["stone -> stone by call"],
        "stone memory stays where it is": ["stone@numa:0 -> clay@numa:0 by call"],
    }
    assert merged(reasons.items()) == [
        (
            "clay, stone memory stays where it is",
            [
                "clay -> stone by call",
                "stone -> clay by call",
                "stone@numa:0 -> clay@numa:0 by call",
            ],
        ),
        ("nobody comes", ["stone -> stone by call"]),
    ]


def test_visits_are_counted_as_such_and_their_curves_once() -> None:
    visits = [
        f"a@gpu:{n} -> b@gpu:0 by carrier of {size}, block {block}"
        for n in range(2)
        for size in ("8 B", "64 MiB")
        for block in range(3)
    ]
    assert list(member_lines(visits)) == [f"by carrier: 12 visits of 2 curves, as {visits[0]}"]
    calls = ["call@gpu:0, block 0", "call@gpu:0, block 1"]
    assert [
        line.partition(", as")[0] for line in member_lines([*visits[:2], *calls, *visits[2:]])
    ] == [
        "by carrier: 12 visits of 2 curves",
        "2 visits of 1 curve",
    ]


def test_each_sort_of_members_has_its_number() -> None:
    path = "a@gpu:0 -> b@gpu:0 by carrier"
    visits = [f"{path} of {size}, block 0" for size in ("8 B", "64 MiB")]
    assert counted([]) == ""
    assert counted([path]) == "1 path"
    assert counted([path, *visits]) == "2 visits of 1 curve and 1 path"
    assert counted(["a -> b by carrier", "call@gpu:0", path, f"{path} of 8"]) == (
        "1 series, 1 path, 1 pair of memories and 1 operation"
    )


def test_executors_with_as_many_share_a_line() -> None:
    pairs = [f"a -> b{i} by {executor}" for executor in ("cart", "van") for i in range(MOST)]
    assert list(member_lines([*pairs, "a -> c by sledge"])) == [
        f"by cart, van: {MOST} pairs of memories each, as a -> b0 by cart",
        "a -> c by sledge",
    ]
