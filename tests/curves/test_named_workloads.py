"""Workloads by the names that ``--only`` takes."""

from __future__ import annotations

import pytest

from measure.plan.machines import machine
from waywiser.curves.named_workloads import SeveralPaths, has_name, named_workload, with_paths
from waywiser.curves.select import NothingMatches
from waywiser.words import Workload

H2D = "pinned@numa:0 -> device@gpu:3 by copy-engine"
D2H = "device@gpu:3 -> pinned@numa:0 by copy-engine"
EIGHT = machine(gpus=8)
TEXTS = (
    H2D,
    D2H,
    H2D.replace("copy-engine", "sm"),
    H2D.replace("copy-engine", "sm[blocks=4]"),
    H2D.replace("gpu:3", "gpu:5"),
    f"{H2D}; {D2H}",
    "; ".join(H2D.replace("gpu:3", f"gpu:{gpu}") for gpu in range(8)),
)
KNOWN = tuple(map(Workload.parse, TEXTS))


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("h2d gpu:3", H2D),
        ("H2D GPU 3", H2D),
        ("host to device gpu:3", H2D),
        ("d2h gpu:3", D2H),
        ("h2d sm gpu:3", H2D.replace("copy-engine", "sm")),
        (H2D.partition(" by ")[0], H2D),
    ],
)
def test_a_name_means_the_headline_path_or_the_one_without_settings(name: str, curve: str) -> None:
    assert named_workload(name, KNOWN, EIGHT) == Workload.parse(curve)
    assert with_paths(f"{name} of 3MiB", KNOWN, EIGHT) == f"{curve} of 3MiB"


def test_sets_and_flags_keep_their_sizes() -> None:
    text = with_paths("host-to-all of 8 MiB; d2h gpu:3 of 1KiB (flushed)", KNOWN, EIGHT)
    pieces = text.split("; ")
    assert len(pieces) == 9 and {piece.split(" of ")[1] for piece in pieces[:8]} == {"8 MiB"}
    assert pieces[8] == f"{D2H} of 1KiB (flushed)"


def test_what_is_written_in_full_stays() -> None:
    text = f"{H2D} of 4MiB; {D2H}"
    assert not has_name(text) and with_paths(text, (), EIGHT) == text
    assert with_paths(f"{H2D} of 4MiB; d2h gpu:3", KNOWN, EIGHT) == text


def test_a_name_of_several_paths_or_of_none_is_an_error() -> None:
    with pytest.raises(SeveralPaths) as several:
        named_workload("h2d", KNOWN, EIGHT)
    assert "means 2 paths" in several.value.what and H2D in several.value.remedy
    sizes = [Workload.parse(f"{text} of {size}") for text in TEXTS[:5] for size in ("1KiB", "2KiB")]
    with pytest.raises(SeveralPaths) as of_sizes:
        named_workload("h2d", sizes, EIGHT)
    assert "means 2 paths" in of_sizes.value.what and of_sizes.value.remedy.count(H2D) == 1
    with pytest.raises(NothingMatches, match="p2p"):
        with_paths("p2p gpu:3 of 1MiB", KNOWN, EIGHT)
    with pytest.raises(NothingMatches, match="matches no series"):
        with_paths("of 1MiB", KNOWN, EIGHT)
