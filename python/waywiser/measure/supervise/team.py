"""Members that end together."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Generic, Protocol, TypeVar

from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Closeable


class TeamMember(Protocol):
    """A worker, a rank, a launcher, or the agent of a node."""

    def leave(self, deadline: Deadline) -> None:
        """Lets it end by itself; does not wait for that."""

    def await_end(self, deadline: Deadline) -> bool:
        """Whether it has ended by then."""

    def close(self) -> None:
        """Ends it by force if it runs, and gives back what is held for it. May be called twice."""


_Member = TypeVar("_Member", bound=TeamMember)


class Team(Closeable, Generic[_Member]):
    """Members in their order, none of which is left in the end."""

    def __init__(self, members: Iterable[_Member] = ()) -> None:
        self.members = list(members)

    def end(self, deadline: Deadline) -> None:
        """Lets all leave before any is waited for, since they may wait for each other; then closes
        them."""
        with self:
            for member in self.members:
                member.leave(deadline)
            for member in self.members:
                member.await_end(deadline)

    def close(self) -> None:
        """Ends all by force; what one raises comes after the end of all."""
        with ExitStack() as stack:
            for member in self.members:
                stack.callback(member.close)
