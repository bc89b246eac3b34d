"""Cells of a matrix are of one method, or marked with theirs."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.render.parts import Sheet
from waywiser.render.rates import between_places
from waywiser.render.views.pairs import MARKS, entered, methods_note, pair_sections, rate_of

SIZES = (2**8, 2**28)
HOST = ("pinned@{} -> device@{} by copy-engine", "managed@{} -> managed@{} by page-fault",
        "managed@{} -> managed@{} by prefetch", "pinned@{} -> device@{} by sm[cus=all]",
        "pageable@{} -> device@{} by copy-engine[api=sync]")  # fmt: skip
PEERS = ("device@{} -> device@{} by copy-engine", "device@{} -> device@{} by sm",
         "device@{} -> device@{} by copy-engine[peer=off,submit=0]",
         "managed@{} -> managed@{} by page-fault")  # fmt: skip


def paths_of(seed: int, gpus: int = 3) -> list[str]:
    """Each pair by one to three methods of all, and some by none."""
    chance = random.Random(seed)
    places = ["numa:0", *(f"gpu:{n}" for n in range(gpus))]
    found = []
    for source, destination in permutations(places, 2):
        known = PEERS if "numa" not in source + destination else HOST
        for text in chance.sample(known, chance.choice([0, 1, 1, 2, 3])):
            host, device, by = text.replace("->", "by").split(" by ")
            if source.startswith("gpu") and destination.startswith("numa"):
                host, device = device, host
            found.append(f"{host.format(source)} -> {device.format(destination)} by {by}")
    return found


@pytest.mark.parametrize("seed", range(30))
def test_cells_without_a_mark_are_of_one_method_for_each_class(seed: int) -> None:
    made = machine(3)
    texts = paths_of(seed)
    curves = subject(
        *(curve(t, postal(5e-6, (n + 1) * 1e9), SIZES) for n, t in enumerate(texts)), machine=made
    ).curves
    measured = between_places(curves, made.traits)
    assert set(measured) == {tuple(map(str, c.first_transfer.path.places)) for c in curves}
    cells = entered(made, measured, rate_of)
    note = methods_note(cells)
    usual: dict[tuple[str, ...], set[str]] = {}
    for pair, cell in cells.items():
        own = measured[pair]
        if cell.text[-1] in MARKS:
            assert f"{cell.text[-1]} " in note and own.method in note and not cell.is_compared
        else:
            usual.setdefault(own.pair_class, set()).add(own.method)
    assert all(len(methods) == 1 for methods in usual.values())
    assert bool(note) == any(cell.text[-1] in MARKS for cell in cells.values())


def test_a_direction_of_page_faults_does_not_stand_beside_one_of_copies_unmarked() -> None:
    """Copies are what is compared, where there are any, whatever is faster."""
    texts = ["managed@numa:0 -> managed@gpu:{} by page-fault",
             "pinned@numa:0 -> device@gpu:{} by copy-engine",
             "managed@gpu:{} -> managed@numa:0 by page-fault"]  # fmt: skip
    made = [text.format(gpu) for gpu in range(2) for text in texts]
    made += ["device@gpu:0 -> device@gpu:1 by copy-engine"]
    rates = {text: (90e9 if "page-fault" in text else 50e9) for text in made}
    curves = subject(
        *(curve(t, postal(5e-6, rate), SIZES) for t, rate in rates.items()), machine=machine(2)
    ).curves
    first = next(pair_sections(machine(2), curves))
    (sheet,) = first.blocks
    assert isinstance(sheet, Sheet)
    cells = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in sheet.rows}
    assert [float(text) for text in cells["numa:0"][1:]] == pytest.approx([50, 50], rel=0.02)
    for gpu in ("gpu:0", "gpu:1"):
        assert cells[gpu][0].endswith("¹")
        assert float(cells[gpu][0][:-1]) == pytest.approx(90, rel=0.02)
    assert sheet.caption == "¹ managed by page-fault"
    assert first.title.endswith(", by copy-engine")
