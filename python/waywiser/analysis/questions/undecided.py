"""Paths that may be slow: below their equals by more than the threshold, by figures that nothing
replicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.questions.gpu_links import gpu_links, links_text, of_link
from waywiser.analysis.questions.peer_groups import PeerResult
from waywiser.curves import MOST_EXHIBITS, UNDECIDED, Exhibit, Finding, Subject, percent
from waywiser.stats import THRESHOLD
from waywiser.words import count

BROKEN = 0.20
"""A link that is slower by this has lost lanes or a generation, or takes another route."""


def undecided(subject: Subject, groups: Sequence[Sequence[PeerResult]]) -> Iterator[Finding]:
    """One finding for all paths over links, of groups without a slow path: those are reported. It
    is a warning only if a path is as slow as a broken link: of a healthy machine with one process,
    some path is often a little below its equals."""
    known = [peers for peers in groups if not any(each.is_slow for each in peers)]
    low = sorted(
        (each for peers in known for each in peers if _is_low(each)),
        key=lambda each: each.decision.ratio,
    )
    if not low:
        return
    worst = low[0]
    yield Finding(
        id=UNDECIDED,
        severity="warning" if 1 - worst.decision.ratio >= BROKEN else "info",
        statement=_statement(subject, low, [each for peers in groups for each in peers]),
        effect=1 - worst.decision.ratio,
        interval=None,
        devices=subject.gpus(place for each in low for place in each.path.places),
        exhibits=tuple(
            Exhibit(
                each.curve.text,
                "bandwidth over that of its equivalents",
                each.decision.ratio,
                "ratio",
                each.decision.interval,
            )
            for each in low[:MOST_EXHIBITS]
        ),
        remedy=subject.again(*(each.curve.text for each in low[:MOST_EXHIBITS])),
    )


def _is_low(peer: PeerResult) -> bool:
    """Whether nothing replicates the figure: where the noise is known, it alone makes some of many
    paths as low as that."""
    is_open = peer.outcome == "no change found" and of_link(peer) is not None
    is_open = is_open and peer.decision.detectable is None
    return is_open and peer.kind.is_quiet and 1 - peer.decision.ratio > THRESHOLD


def _statement(subject: Subject, low: Sequence[PeerResult], peers: Sequence[PeerResult]) -> str:
    """What is said of the links of GPUs if the lowest path is one of them."""
    worst = low[0]
    links = gpu_links(subject.machine, peers)
    if any(worst in link.values() for link in links.values()):
        text = links_text(links)
        return f"{text[:1].lower()}{text[1:]}"
    loss = percent(1 - worst.decision.ratio)
    more = f"; so {count(len(low) - 1, 'other path')} may be" if len(low) > 1 else ""
    return (
        f"whether {worst.curve.text} is slow is not decidable: it is {loss} below the median of "
        f"the others, and nothing replicates its figures{more}"
    )
