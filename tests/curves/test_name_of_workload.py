from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.curves.name import SETS, label_of, name_of
from waywiser.curves.select import matches_any, texts_of
from waywiser.words import Transfer, Workload

H2D = "pinned@numa:{} -> device@gpu:{} by copy-engine"
D2H = "device@gpu:{1} -> pinned@numa:{0} by copy-engine"
PEER = "device@gpu:{} -> device@gpu:{} by sm"


def workload(transfers: Sequence[str], suffix: str = "") -> Workload:
    return Workload.parse("; ".join(transfers) + suffix)


def between(*pairs: tuple[int, int]) -> list[str]:
    return [PEER.format(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("transfers", "name"),
    [
        (
            [H2D.format(0, g) for g in range(8)],
            "host-to-all pinned@numa:0 -> device@gpu:0-7 by copy-engine",
        ),
        (
            [D2H.format(g // 4, g) for g in range(8)],
            "all-to-host device@gpu:0-7 -> pinned@numa:0,1 by copy-engine",
        ),
        (
            [H2D.format(0, g) for g in (0, 1)] + [D2H.format(0, g) for g in (0, 1)],
            "host-and-all pinned@numa:0 <-> device@gpu:0,1 by copy-engine",
        ),
        (between((0, 1), (0, 2), (0, 5)), "one-to-all device@gpu:0 -> device@gpu:1,2,5 by sm"),
        (between((1, 0), (2, 0)), "all-to-one device@gpu:1,2 -> device@gpu:0 by sm"),
        (
            between((3, 0), (3, 1), (0, 3), (1, 3)),
            "one-and-all device@gpu:3 <-> device@gpu:0,1 by sm",
        ),
        (between((0, 1), (2, 3)), "pairs-unidirectional device@gpu:0,2 -> device@gpu:1,3 by sm"),
        (
            between((0, 1), (1, 0), (2, 3), (3, 2)),
            "pairs-bidirectional device@gpu:0,2 <-> device@gpu:1,3 by sm",
        ),
        (between((0, 1), (1, 2), (2, 0)), "ring device@gpu:0-2 -> device@gpu:0-2 by sm"),
        (
            between((0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)),
            "all-to-all device@gpu:0-2 -> device@gpu:0-2 by sm",
        ),
        (between((0, 1), (1, 0)), "device@gpu:0 <-> device@gpu:1 by sm"),
        (between((0, 1)), "device@gpu:0 -> device@gpu:1 by sm"),
    ],
)
def test_sets_have_short_names(transfers: list[str], name: str) -> None:
    assert name_of(workload(transfers)) == name


@pytest.mark.parametrize(
    "transfers",
    [
        between((0, 1), (2, 3), (2, 4)),
        between((0, 1), (1, 0), (2, 3), (3, 2), (4, 5)),
        between((0, 1), (1, 2), (2, 0), (3, 4), (4, 3)),
        between((0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (0, 2)),
        between((0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 0)),
        [*between((0, 1), (1, 0), (1, 2), (2, 1), (2, 0)), H2D.format(0, 2)],
        between((0, 1), (0, 1)),
        between((0, 0), (0, 0)),
        [*between((0, 1)), H2D.format(0, 2)],
        [H2D.format(0, 0), H2D.format(0, 1).replace("pinned", "pageable")],
        [H2D.format(0, 0), f"{H2D.format(0, 1)}[api=sync]"],
        [H2D.format(0, 0), f"{H2D.format(0, 1)} as list[piece=64]"],
    ],
)
def test_other_transfers_keep_their_text(transfers: list[str]) -> None:
    found = workload(transfers)
    assert name_of(found) == found.curve
    assert label_of(found) == str(found)


def test_parameters_layout_variants_and_states_are_part_of_a_name() -> None:
    way = "pinned[pages=huge]@numa:0 -> device@gpu:{} by batch[a=b] as list[piece=64]"
    found = workload([way.format(g) for g in range(3)], " (flushed) (shared)")
    assert name_of(found) == (
        "host-to-all pinned[pages=huge]@numa:0 -> device@gpu:0-2 by batch[a=b] as list[piece=64]"
        " (flushed) (shared)"
    )


def test_a_label_has_the_size_of_each_transfer() -> None:
    sized = workload([f"{H2D.format(0, g)} of 1MiB" for g in range(2)])
    assert label_of(sized) == "host-to-all pinned@numa:0 -> device@gpu:0,1 by copy-engine of 1 MiB"
    mixed = workload([f"{H2D.format(0, g)} of {g + 1}MiB" for g in range(2)])
    assert label_of(mixed) == str(mixed)


def test_a_pattern_may_mean_the_name_the_transfers_or_both() -> None:
    texts = texts_of(workload([H2D.format(0, g) for g in range(8)]))
    assert matches_any(texts, ["host-to-all"]) and matches_any(texts, ["HOST-to-all gpu:3"])
    assert matches_any(texts, ["pinned -> device"]) and matches_any(texts, ["host-to-all*"])
    assert not matches_any(texts, ["all-to-host"]) and not matches_any(texts, ["gpu:8"])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6))
def test_a_name_shows_every_gpu_and_begins_with_a_known_set(
    pairs: list[tuple[int, int]],
) -> None:
    found = Workload(tuple(Transfer.parse(text) for text in between(*pairs)))
    name = name_of(found)
    word = name.split()[0]
    assert name == found.curve or word in SETS or "<->" in name
    if word in SETS:
        assert {"one-to-all": 1, "all-to-one": 1}.get(word, 2) <= len({a for a, _ in pairs}) or (
            len({b for _, b in pairs}) >= 2
        )
        assert len(set(pairs)) == len(pairs)
