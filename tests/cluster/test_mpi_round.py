"""Which tests are launched together, after launches that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

import pytest

from waywiser.cluster.transports.mpi_round import MpiRound
from waywiser.words.cluster import PlannedTest


def pair(number: int) -> PlannedTest:
    return PlannedTest("pairs", 1, (f"a{number}", f"b{number}"))


PAIRS = [pair(n) for n in range(8)]

Launch = Callable[[Collection[str]], Collection[str] | None]
"""The nodes to blame of a launch of these nodes, none if it is not known; None if it starts."""


def unable(todo: MpiRound, launch: Launch) -> tuple[list[PlannedTest], int]:
    """The tests that could not be launched, and how many launches there were."""
    found: list[PlannedTest] = []
    launches = 0
    while batch := todo.next():
        launches += 1
        blamed = launch({name for test in batch for name in test.nodes})
        if blamed is None:
            todo.started()
        else:
            unstarted = todo.not_started(batch, blamed)
            assert all(node in (*blamed, "") for node in unstarted.values())
            found += unstarted
        if todo.is_hopeless:
            break
    return found, launches


def test_pairs_are_launched_together_and_a_collective_by_itself() -> None:
    together = PlannedTest("collective", 2, ("a1", "a2", "a3"))
    todo = MpiRound([*PAIRS, together])
    assert [todo.next(), todo.next(), todo.next()] == [PAIRS, [together], []]


def test_the_others_are_launched_without_a_node_to_blame() -> None:
    found, launches = unable(MpiRound(PAIRS), lambda nodes: ["b3"] if "b3" in nodes else None)
    assert (found, launches) == ([PAIRS[3]], 2)


@pytest.mark.parametrize("bad", [0, 5, 7])
def test_a_pair_that_cannot_be_launched_is_found_by_halves(bad: int) -> None:
    found, launches = unable(MpiRound(PAIRS), lambda nodes: [] if f"a{bad}" in nodes else None)
    assert (found, launches) == ([PAIRS[bad]], 7)


def test_a_launcher_that_never_starts_anything_is_given_up() -> None:
    many = [pair(n) for n in range(1000)]
    todo = MpiRound(many)
    _, launches = unable(todo, lambda nodes: [])
    assert todo.is_hopeless
    assert launches < 20
    assert unable(MpiRound(many[:64], is_proven=True), lambda nodes: [])[0] == many[:64]


def test_tests_that_another_one_ended_are_launched_again_but_not_for_ever() -> None:
    todo = MpiRound(PAIRS[:2])
    for _ in range(2):
        assert todo.next() == PAIRS[:2]
        assert todo.lost(PAIRS[:2]) == []
    assert todo.lost(todo.next()) == PAIRS[:2]
    assert todo.next() == []


def late(todo: MpiRound, launch: Callable[[Collection[str]], Collection[str]]) -> dict[str, int]:
    """How often nodes were blamed if ``launch`` returns those that are late, and how many launches
    there were, as of node ""."""
    blamed: Counter[str] = Counter()
    while batch := todo.next():
        blamed[""] += 1
        names = [name for test in batch for name in test.nodes]
        late = launch(names)
        if not late:
            todo.started()
            continue
        known = late if len(late) < len(names) else []
        blamed.update(filter(None, todo.not_started(batch, known, is_late=True).values()))
    return dict(blamed)


def test_many_ranks_that_are_late_beside_others_blame_no_node() -> None:
    """The launch was too large for its time: fewer nodes are fast enough."""
    found = late(MpiRound(PAIRS), lambda names: names[-5:] if len(names) > 12 else [])
    assert found == {"": 3}


def test_nodes_that_are_late_twice_are_to_blame_and_no_other() -> None:
    bad = {"a1", "b4", "a6"}
    found = late(MpiRound(PAIRS), lambda names: [name for name in names if name in bad])
    assert found == {"": 3, "a1": 1, "b4": 1, "a6": 1}


def test_a_node_that_alone_is_late_is_to_blame() -> None:
    found = late(MpiRound(PAIRS), lambda names: [name for name in names if name == "b2"])
    assert found == {"": 2, "b2": 1}


def test_a_collective_of_which_several_nodes_are_late_blames_none() -> None:
    together = PlannedTest("collective", 2, tuple(f"n{n}" for n in range(9)))
    assert late(MpiRound([together]), lambda names: names[:3]) == {"": 1}
