"""A survey counts once, however many files hold it."""

from __future__ import annotations

import msgspec
import nodes

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.curves.subject import without_copies


def test_a_copy_under_another_name_is_skipped_and_said() -> None:
    survey = nodes.node(1, gpus=2)
    copy = msgspec.structs.replace(survey, file="backup.wwp")
    other = nodes.node(2, gpus=2)
    kept, copies = without_copies([survey, copy, other])
    assert kept == [survey, other]
    assert copies == [("backup.wwp", "node0.wwp")]


def test_of_a_survey_that_was_resumed_the_whole_is_kept() -> None:
    whole = nodes.node(1, gpus=2, blocks=2)
    begun = msgspec.structs.replace(whole, points=whole.points[:3], file="begun.wwp")
    for both in ([begun, whole], [whole, begun]):
        assert without_copies(both) == ([whole], [("begun.wwp", "node0.wwp")])


def test_files_without_any_number_are_no_copies() -> None:
    empty = msgspec.structs.replace(nodes.node(1, gpus=2), points=())
    assert without_copies([empty, nodes.node(1, gpus=2)])[1] == []


def test_copies_make_no_block_surer() -> None:
    base, new = nodes.node(1, gpus=2), nodes.node(2, gpus=2, slow=nodes.slow_host_link(1, 1.05))
    once, again = compare([base], [new]), compare([base] * 4, [new] * 4)
    assert again.paths == once.paths
    assert sum("counts once" in note for note in again.notes) == 6


def test_a_copy_confirms_no_suspicion() -> None:
    fleet = [nodes.node(n, f"n{n}", gpus=2) for n in range(12)]
    fleet[3] = nodes.node(3, "n3", gpus=2, slow=nodes.slow_host_link(1, 1.2))
    copy = msgspec.structs.replace(fleet[3], file="n3-copy.wwp")
    found = assess_fleet([*fleet, copy])
    assert found.of("suspect")[0].host == "n3"
    assert found.unreadable == {"n3-copy.wwp": "a copy of n3.wwp"}
