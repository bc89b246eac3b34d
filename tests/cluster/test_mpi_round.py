"""Which tests are launched together, after launches that failed."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from waywiser.cluster.mpi_round import MpiRound
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
            found += todo.not_started(batch, blamed)
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
