"""Workloads by the names that ``--only`` takes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept import RESULTS, unpacked
from measure.plan.machines import machine
from waywiser.curves.curve import by_family
from waywiser.curves.headline import group_of, headline_label, headline_title
from waywiser.curves.headlines import headline_rows
from waywiser.curves.name import name_of
from waywiser.curves.named_workloads import SeveralPaths, has_name, named_workload, with_paths
from waywiser.curves.select import NothingMatches, require_match, texts_of
from waywiser.curves.subject import read_subject
from waywiser.measure.plan.requested_workloads import WorkloadError, parse_workload
from waywiser.words import Workload
from waywiser.words.sizes_in_text import size_of, with_units

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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("host-to-all pinned@numa:0 -> device@gpu:0-7 by copy-engine of 8 × 16 MiB", range(8)),
        ("host-to-all pinned@numa:0 -> device@gpu:1,4-6 by copy-engine of 16MiB", (1, 4, 5, 6)),
        ("pinned@numa:0 -> device@gpu:* by copy-engine of 16MiB", (3, 5)),
    ],
)
def test_sets_are_named_as_tables_print_them(name: str, expected: Iterable[int]) -> None:
    """Also sets that were not measured, and all known paths between places at once."""
    assert has_name(name)
    workload = parse_workload(with_paths(name, KNOWN, EIGHT))
    assert workload == Workload.parse(
        "; ".join(f"{H2D.replace('gpu:3', f'gpu:{gpu}')} of 16MiB" for gpu in expected)
    )


def test_a_size_of_each_is_that_of_so_many_transfers() -> None:
    both = "pinned@numa:0 <-> device@gpu:3 by copy-engine of 2 × 4 MiB"
    assert [each.bytes for each in parse_workload(both).transfers] == [2**22, 2**22]
    for wrong in ("3 × 4 MiB", "1 × 4 MiB"):
        with pytest.raises(WorkloadError, match="is not a size"):
            parse_workload(both.replace("2 × 4 MiB", wrong))


def test_a_part_with_a_star_is_answered_with_names_that_are_taken() -> None:
    with pytest.raises(SeveralPaths, match=r"'gpu:\*' means 3 paths") as several:
        with_paths("gpu:* of 1MiB", KNOWN, EIGHT)
    for named in several.value.remedy.removeprefix("name one of them: ").split("; "):
        assert len(parse_workload(with_paths(named, KNOWN, EIGHT)).transfers) == 1


def test_what_is_wrong_in_a_transfer_is_said_by_the_grammar() -> None:
    for text in ("pinned@numa:0 -> device@gpu:0,1 by copy-engine", "a -> b by c", f"{H2D} of 1XB"):
        assert not has_name(text)


SETS_OF_GPUS = st.builds(
    lambda gpus, kind, by: (sorted(gpus), kind, by),
    st.sets(st.integers(0, 11), min_size=2, max_size=8),
    st.sampled_from(("to", "from", "both", "ring", "one", "every")),
    st.sampled_from(("copy-engine", "sm[blocks=4]", "copy-engine as list[piece=4096]")),
)


@given(SETS_OF_GPUS)
def test_the_name_of_a_set_is_the_set(drawn: tuple[list[int], str, str]) -> None:
    gpus, kind, by = drawn
    to = [("pinned@numa:1", f"device@gpu:{gpu}") for gpu in gpus]
    back = [(b, a) for a, b in to]
    devices = [f"device@gpu:{gpu}" for gpu in gpus]
    pairs = {
        "to": to,
        "from": back,
        "both": [end for pair in zip(to, back, strict=True) for end in pair],
        "ring": list(zip(devices, [*devices[1:], devices[0]], strict=True)),
        "one": [(devices[0], other) for other in devices[1:]],
        "every": [(a, b) for a in devices for b in devices if a != b],
    }[kind]
    workload = Workload.parse("; ".join(f"{a} -> {b} by {by} of 4096" for a, b in pairs))
    name = name_of(workload)
    found = parse_workload(with_paths(f"{name} of 4 KiB", (), EIGHT))
    assert sorted(map(str, found.transfers)) == sorted(map(str, workload.transfers))


SURVEYS = RESULTS / "2026-11-23-surveys"
KEPT = (
    RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz",
    SURVEYS / "h200-standard-1.wwp.xz",
    SURVEYS / "two-h200-check-1.wwp.xz",
    RESULTS / "2026-11-25-ranks-and-nccl" / "nvlink.wwp.xz",
)


@pytest.mark.parametrize("packed", KEPT, ids=lambda path: path.parent.name + path.name)
def test_every_printed_path_is_taken(packed: Path, tmp_path: Path) -> None:
    """By ``predict`` and ``survey --workload`` with its size, and by ``--only``."""
    node = read_subject(unpacked(packed, tmp_path / "kept.wwp"))
    machine, curves = node.machine, [each for each in node.curves if each.workload.transfers]
    known = [point.workload for point in node.points]
    printed = {}
    for each in curves:
        name = name_of(each.workload)
        if ";" in name:  # sets without a name are printed as their transfers
            continue
        shown = {with_units(name), name}
        if (group := group_of(each.workload, machine.traits)) is not None:
            shown.add(headline_label(group, name))
        printed |= dict.fromkeys(shown, (each, size_of(each.measured[-1].text)))
    for row in headline_rows(machine, by_family(curves)):
        if row.large is not None:
            title = headline_title(row.group, row.first.workload)
            printed[title] = row.first, size_of(row.large.text)
            if row.first.transfer is None and len(row.first.workload.transfers) > 1:
                assert title != row.group, "a set without its places is no path"
    assert len(printed) > 3
    for text, (curve, size) in printed.items():
        # states follow the size, as in the grammar
        path, _, states = text.partition(" (")
        sized = f"{path} of {size}" + (f" ({states}" if states else "")
        found = parse_workload(with_paths(sized, known, machine))
        assert found.curve == curve.text, sized
        assert all(each.bytes for each in found.transfers), sized
        require_match([text], texts_of(curve.workload, machine))


@pytest.mark.parametrize(
    ("printed", "path"),
    [
        ("host copy, all cores", "pageable@numa:1 -> pageable@numa:1 by cpu[threads=2]"),
        (
            "host copy, all cores, within numa:1",
            "pageable@numa:1 -> pageable@numa:1 by cpu[threads=2]",
        ),
        (
            "between nodes, all cores, numa:0 -> numa:1",
            "pageable@numa:0 -> pageable@numa:1 by cpu[threads=2]",
        ),
        ("host copy, within numa:1", "pageable@numa:1 -> pageable@numa:1 by cpu"),
    ],
)
def test_the_rows_of_a_machine_without_gpus_are_taken(printed: str, path: str) -> None:
    paths = (
        "pageable@numa:1 -> pageable@numa:1 by cpu",
        "pageable@numa:1 -> pageable@numa:1 by cpu[threads=2]",
        "pageable@numa:0 -> pageable@numa:1 by cpu[threads=2]",
    )
    known = [Workload.parse(each) for each in paths]
    two = machine(nodes=2)
    assert parse_workload(with_paths(f"{printed} of 2MiB", known, two)).curve == path
