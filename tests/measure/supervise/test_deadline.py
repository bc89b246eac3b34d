"""A time that is passed on."""

from __future__ import annotations

from math import inf

from waywiser.measure.supervise.deadline import NEVER, Deadline

NOW = [0.0]


def clock() -> float:
    return NOW[0]


def test_what_is_left_of_a_deadline_becomes_less() -> None:
    NOW[0] = 5.0
    deadline = Deadline(2.0, clock)
    assert (deadline.left, deadline.elapsed, deadline.is_over) == (2.0, 0.0, False)
    NOW[0] = 6.5
    assert (deadline.left, deadline.elapsed, deadline.is_over) == (0.5, 1.5, False)
    NOW[0] = 7.0
    assert (deadline.left, deadline.is_over, deadline.seconds) == (0.0, True, 2.0)


def test_one_within_another_is_not_later() -> None:
    NOW[0] = 0.0
    deadline = Deadline(10.0, clock)
    NOW[0] = 7.0
    assert deadline.within(1.0).left == 1.0
    assert deadline.within(5.0).left == 3.0
    assert NEVER.left == inf and not NEVER.is_over


def test_what_holds_at_once_is_seen_after_the_deadline_too() -> None:
    looks = iter([False, False, True])
    assert Deadline(0.0).wait_until(lambda: True)
    assert not Deadline(0.0).wait_until(lambda: False)
    assert NEVER.wait_until(lambda: next(looks), 0.0)
