"""Members that end together."""

from __future__ import annotations

import pytest

from waywiser.measure.supervise.deadline import NEVER, Deadline
from waywiser.measure.supervise.team import Team


class Noting:
    """A member that notes what is done with it."""

    def __init__(self, name: str, done: list[str], *, closes: bool = True) -> None:
        self._name, self._done, self._closes = name, done, closes

    def leave(self, deadline: Deadline) -> None:
        self._done.append(f"{self._name} leaves")

    def await_end(self, deadline: Deadline) -> bool:
        self._done.append(f"wait for {self._name}")
        return True

    def close(self) -> None:
        self._done.append(f"close {self._name}")
        if not self._closes:
            raise RuntimeError(f"{self._name} does not end")


def test_all_leave_before_any_is_waited_for() -> None:
    done: list[str] = []
    Team([Noting("a", done), Noting("b", done)]).end(NEVER)
    assert done[:4] == ["a leaves", "b leaves", "wait for a", "wait for b"]
    assert sorted(done[4:]) == ["close a", "close b"]


@pytest.mark.parametrize("stuck", ["a", "b"])
def test_a_member_that_does_not_end_keeps_no_other_from_it(stuck: str) -> None:
    done: list[str] = []
    members = [Noting(name, done, closes=name != stuck) for name in ("a", "b")]
    with pytest.raises(RuntimeError, match=f"{stuck} does not end"):
        Team(members).close()
    assert sorted(done) == ["close a", "close b"]
