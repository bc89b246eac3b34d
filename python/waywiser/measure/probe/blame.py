"""Which of the members that take too long is to blame, by what they answer when they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waywiser.measure.probe.member import Member
from waywiser.measure.probe.protocol import Pong
from waywiser.words import Failure

_SHOWN_MEMBERS = 8
"""Members of which a failure says what each does."""


def blamed_of(waiting: Sequence[Member], pongs: Mapping[int, Pong]) -> Member | None:
    """The member to blame of those of which some answered when they were asked: the first that did
    not, else one that does not wait for another, the one that has done least. None if all wait for
    each other."""
    silent = [member for member in waiting if member.rank not in pongs]
    if silent:
        return silent[0]
    at_work = [member for member in waiting if not pongs[member.rank].waits]
    return min(at_work, key=lambda each: pongs[each.rank].step, default=None)


def failure_of(waiting: Sequence[Member], pongs: Mapping[int, Pong]) -> Failure:
    """The failure of these members: it names the one to blame. Of members that all wait for each
    other it says what each does, of many what some do."""
    blamed = blamed_of(waiting, pongs)
    if blamed is None:
        shown = [f"{each.name}: {pongs[each.rank].stage}" for each in waiting[:_SHOWN_MEMBERS]]
        more = [f"{len(waiting) - len(shown)} more"] if len(waiting) > len(shown) else []
        said = f"; when asked, all wait: {'; '.join([*shown, *more])}"
        return waiting[0].overdue("took too long", said)
    pong = pongs.get(blamed.rank)
    said_last = f"answered: {pong.stage}" if pong else "did not answer"
    return blamed.overdue("took too long", f"; when asked, it {said_last}")
