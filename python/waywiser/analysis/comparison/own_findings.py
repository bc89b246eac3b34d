"""Findings of a profile about its own links, in addition to those of a fleet about its host."""

from __future__ import annotations

from waywiser.analysis.questions.slow_links import links_of_gpus
from waywiser.curves import START_BYTES, Group, Point, Subject, group_of
from waywiser.curves.overview import overview
from waywiser.profile import Profile
from waywiser.stats import THRESHOLD, median, survey_median
from waywiser.words import grouped

LEAST = THRESHOLD / 2
"""How much slower than the median of its peers a copy is of which more can be said."""

OVER_LINKS: tuple[Group, ...] = ("H2D", "D2H", "P2P")


def own_findings(node: Subject) -> tuple[str, ...]:
    """The links that are slower than those of the others, as `show` says it; empty if it does not.
    A profile is read again only if its times leave it open. Raises `ProfileError`."""
    if not node.tools and not _may_have_slow_link(node):
        return ()
    with Profile.open(node.file) as profile:
        return links_of_gpus(profile.machine, overview(profile))[1]


def processes_over_links(node: Subject) -> int:
    """How many processes measured one kind of copies over all of several links, the fewest of a
    link; 0 if copies over fewer than two were measured."""
    several = [members for members in _copies_over_links(node) if len(members) > 1]
    return max((min(len(each.blocks) for each in members) for members in several), default=0)


def _copies_over_links(node: Subject) -> list[list[Point]]:
    """The large copies of each group of headline paths and size."""
    copies = (
        ((group, series.workload.bytes), series)
        for series in node.points
        if series.blocks
        and series.bytes >= START_BYTES
        and series.workload.transfer is not None
        and (group := group_of(series.workload, node.machine.traits)) in OVER_LINKS
    )
    return list(grouped(copies).values())


def _may_have_slow_link(node: Subject) -> bool:
    """Whether a copy over one link takes longer than most over the others."""
    for members in _copies_over_links(node):
        if len(members) < 2:
            continue
        times = [
            survey_median(tuple([block.median for block in series.blocks])) for series in members
        ]
        ordered = sorted(times)
        others = ordered[:-1]
        if ordered[-1] > (1 + LEAST) * median(others):
            return True
    return False
