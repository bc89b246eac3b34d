"""Several machines side by side."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from tests.analysis.questions.machines import host_links, machine
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.analysis.questions.across import alternatives, names_of, tables
from waywiser.curves.answer import Sheet
from waywiser.curves.subject import Subject

H2D, D2H = (
    "pinned@numa:0 -> device@gpu:0 by copy-engine",
    "device@gpu:0 -> pinned@numa:0 by copy-engine",
)
BIG = (2**26, 2**28)


def named(name: str, seen: Subject) -> Subject:
    return msgspec.structs.replace(seen, name=name)


def by_title(found: tuple[Sheet, ...]) -> dict[str, dict[str, list[str]]]:
    """Marks and texts by table and row."""
    return {
        table.title: {
            row.cells[0].text: [f"{c.mark} {c.text}".strip() for c in row.cells[1:]]
            for row in table.rows
        }
        for table in found
    }


def test_a_table_has_a_column_for_each_machine_and_a_dash_for_what_it_lacks() -> None:
    even = named("even", subject(host_links(8), machine=machine()))
    slow = named("slow", subject(host_links(8, {3: 0.06}, back={}), machine=machine()))
    lone = named("lone", subject(curve(H2D, postal(0, 50e9), BIG)))
    found = tables([even, slow, lone])
    titles = [table.title for table in found]
    assert titles == ["Anisotropy", "Differences between equivalent paths"]
    links = by_title(found)["Differences between equivalent paths"]
    assert found[1].names == ("transfer", "even", "slow", "lone")
    there, back = links["pinned -> GPU by copy-engine"], links["GPU -> pinned by copy-engine"]
    assert (there[0], there[2]) == ("no", "—")
    assert there[1].startswith("yes −5")
    assert there[1].endswith("(1 of 8)")
    assert back == ["no", "no", "—"]
    assert found[1].rows[0].cells[2].series == "pinned@numa:0 -> device@gpu:3 by copy-engine"


def test_profiles_of_one_machine_are_named_by_their_files_or_else_by_the_time() -> None:
    one = subject(host_links(2), machine=machine(2))
    other = named("other", one)
    names = names_of([one, other, one], ["a/monday.wwp", "b.wwp", "a/friday.wwp"])
    assert names == ["node7, monday", "other", "node7, friday"]
    assert tables([one, one], names[::2])[0].names == ("transfer", *names[::2])
    runs = [[RunAt("2026-11-20T12:24:31Z")], [RunAt("2026-11-21T08:00:00Z")]]
    both = [
        msgspec.structs.replace(one, seen=msgspec.structs.replace(one.overview, runs=run))
        for run in runs
    ]
    times = names_of(both, ["a/check.wwp", "b/check.wwp"])
    assert times == ["node7, 2026-11-20 12:24", "node7, 2026-11-21 08:00"]


class RunAt(NamedTuple):
    """What a run says of its start."""

    started: str


def test_anisotropy_says_which_way_is_slower_and_by_how_much() -> None:
    seen = subject(curve(H2D, postal(0, 55e9), BIG), curve(D2H, postal(0, 50e9), BIG))
    (row,) = by_title(tables([seen]))["Anisotropy"].values()
    assert row[0].startswith("yes <- −9.")
    slow_start = subject(curve(H2D, postal(5e-6, 50e9)), curve(D2H, postal(8e-6, 50e9)))
    (row,) = by_title(tables([slow_start]))["Anisotropy"].values()
    assert row == ["no medium differs"]


def test_affinity_is_reported_by_kind() -> None:
    texts = {
        f"pinned@numa:{node} -> device@gpu:{gpu} by copy-engine": 50e9 if node == gpu else 40e9
        for node in range(2)
        for gpu in range(2)
    }
    seen = subject(
        *(curve(text, postal(0, rate), BIG) for text, rate in texts.items()), machine=machine(2, 2)
    )
    (row,) = by_title(tables([seen]))["Affinity"].values()
    assert row[0].startswith("yes −20")


def test_choices_show_which_is_faster_and_how_many_times() -> None:
    rates = {
        H2D: 55e9,
        "pageable@numa:0 -> device@gpu:0 by copy-engine": 11e9,
        "pinned@numa:0 -> device@gpu:0 by sm": 50e9,
        "device@gpu:0 -> device@gpu:1 by copy-engine": 390e9,
        "device@gpu:0 -> device@gpu:1 by copy-engine[peer=off]": 39e9,
        "managed@gpu:0 -> managed@numa:0 by page-fault": 5e9,
        "managed@gpu:0 -> managed@numa:0 by prefetch": 20e9,
    }
    seen = subject(*(curve(text, postal(0, rate), BIG) for text, rate in rates.items()))
    found = by_title(tables([seen]))
    for title, direction, result, times in (
        ("Pageable or pinned memory", "host -> GPU", "pinned", 5.0),
        ("Peer access on or off", "GPU -> GPU", "on", 10.0),
        ("Managed memory on demand or prefetched", "GPU -> host", "prefetched", 4.0),
        ("Host memory by kernels in place or by copy engines", "host -> GPU", "copied", 1.1),
    ):
        ((row, (text,)),) = found[title].items()
        assert row == direction
        assert text.startswith(f"yes {result} ×")
        assert float(text.split("×")[1].split()[0]) == pytest.approx(times, rel=0.02)
    assert len(list(alternatives(seen))) == 4


def test_what_no_machine_shows_has_no_table() -> None:
    assert tables([subject(curve(H2D, postal(0, 50e9), BIG))]) == ()
