"""Which profiles are of one node, and which are not used."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from analysis.history.planted_nights import again, planted, uuid_of
from waywiser.analysis.history.night import Night, NightGpu, PathColumns
from waywiser.analysis.history.nodes import named_nodes, nodes_of


def with_gpus(night: Night, *uuids: str) -> Night:
    gpus = tuple(NightGpu(n, uuid, f"0000:{n:02}:00.0") for n, uuid in enumerate(uuids))
    return msgspec.structs.replace(night, gpus=gpus)


def test_a_node_keeps_its_identity_under_another_name() -> None:
    surveys = planted("n1", 4, 1)
    renamed = [msgspec.structs.replace(each, host="node-1") for each in surveys[2:]]
    (node,), unused = nodes_of([*renamed, *surveys[:2]])
    assert (node.host, len(node.surveys), unused) == ("node-1", 4, {})


def test_hosts_with_one_name_and_other_gpus_are_several_nodes() -> None:
    one = planted("vm", 3, 1)
    two = [with_gpus(each, "GPU-a", "GPU-b") for each in planted("vm", 3, 2)]
    nodes, _ = nodes_of([*one, *two])
    assert len(nodes) == 2
    assert len(named_nodes(nodes)) == 2
    assert any("all GPUs of vm are other ones" in note for note in nodes[1].notes)


def test_a_gpu_that_moves_to_another_node_takes_no_node_with_it() -> None:
    a, b = planted("a", 6, 1), planted("b", 6, 2)
    own = [uuid_of("b", 0), uuid_of("a", 1)]
    moved = [
        *(with_gpus(each, uuid_of("a", 0), "GPU-new") for each in a[3:]),
        *(with_gpus(each, *own) for each in b[3:]),
    ]
    nodes, _ = nodes_of([*a[:3], *b[:3], *moved])
    assert sorted((node.host, len(node.surveys)) for node in nodes) == [("a", 6), ("b", 6)]


def test_a_node_whose_gpus_are_lost_stays_that_node() -> None:
    surveys = planted("n1", 4, 1)
    lost = msgspec.structs.replace(surveys[3], gpus=(), paths=PathColumns())
    (node,), _ = nodes_of([*surveys[:3], lost])
    assert len(node.surveys) == 4 and node.uuids == surveys[0].uuids


def test_surveys_within_twelve_hours_are_of_one_night() -> None:
    first, second = planted("n1", 2, 1)
    (node,), _ = nodes_of([first, again(first, 5), again(first, 11), second, again(second, 13)])
    assert [len(each) for each in node.nights()] == [3, 1, 1]


@pytest.mark.parametrize(
    ("created", "first_visit", "why"),
    [
        ("2093-01-01T03:00:00.000+00:00", "", "from the future"),
        ("1970-01-01T00:02:00.000+00:00", "", "was not set"),
        ("2026-09-20T03:00:00.000+00:00", "2026-09-19T22:00:00+00:00", "set meanwhile"),
    ],
)
def test_profiles_of_wrong_clocks_are_not_used(created: str, first_visit: str, why: str) -> None:
    surveys = planted("n1", 3, 1)
    wrong = msgspec.structs.replace(
        surveys[2], file="wrong.wwp", created=created, first_visit=first_visit
    )
    (node,), unused = nodes_of([*surveys[:2], wrong])
    assert len(node.surveys) == 2
    assert why in unused["wrong.wwp"]


def test_a_survey_that_began_just_now_is_used() -> None:
    survey = planted("n1", 1, 1)[0]
    now = datetime.fromisoformat(survey.created) - timedelta(minutes=5)
    assert nodes_of([survey], now)[1] == {}


def test_copies_count_once() -> None:
    surveys = planted("n1", 3, 1)
    copy = msgspec.structs.replace(surveys[1], file="z-copy.wwp")
    (node,), unused = nodes_of([*surveys, copy])
    assert len(node.surveys) == 3
    assert unused == {"z-copy.wwp": f"a copy of {surveys[1].file}"}
