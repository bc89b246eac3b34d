"""The link of each GPU to the host, against those of its peers: one row for each GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from waywiser.analysis.questions.curve_pairs import PairResult
from waywiser.analysis.questions.pair_answers import MARKS
from waywiser.analysis.questions.peer_groups import LINK_REGIMES, PeerResult, loosest
from waywiser.curves import (
    NOT_DETERMINED,
    Group,
    Sheet,
    SheetCell,
    Subject,
    hidden_loss,
    percent,
    table,
)
from waywiser.curves.headline import headline
from waywiser.machine import Machine
from waywiser.stats import THRESHOLD, Decision
from waywiser.words import count, format_bytes

DIRECTIONS: tuple[Group, Group] = ("H2D", "D2H")

TITLE = "GPU links to the host"


Link = dict[Group, PeerResult]
"""The paths of one GPU from and to the host, by direction: of several the worst."""


def gpu_links(machine: Machine, peers: Iterable[PeerResult]) -> dict[int, Link]:
    """The link of each GPU whose path from or to the host has peers, by the number of the GPU."""
    known = list(peers)
    groups = headline(machine, (each.curve.workload for each in known))
    rows: dict[int, Link] = {}
    for peer in known:
        group = groups.get(peer.curve.text)
        if group in DIRECTIONS and of_link(peer) is not None:
            (gpu,) = (place.index for place in peer.path.places if place.kind == "gpu")
            own = rows.setdefault(gpu, {})
            own[group] = max((peer, own.get(group, peer)), key=_gravity)
    return dict(sorted(rows.items()))


def link_sizes(links: Mapping[int, Link]) -> str:
    """The size of the bandwidths: ``64 MiB``, or that they differ."""
    found = [result for own in links.values() for each in own.values() if (result := of_link(each))]
    sizes = {result.sizes[-1].bytes for result in found}
    return format_bytes(sizes.pop()) if len(sizes) == 1 else "the largest size that its peers have"


def link_verdict(link: Link) -> str:
    """``slower: H2D −46 %``, ``equivalent``, ``faster: …`` or ``not determined (< 4.2 %)``."""
    cell = _slower(link)
    if cell.mark == MARKS["different"]:
        return f"slower: {cell.text}"
    if cell.mark == MARKS["no change found"]:
        return f"not determined ({cell.text})"
    return cell.text or "equivalent"


def links_text(links: Mapping[int, Link]) -> str:
    """``The links of all 4 GPUs to the host are equivalent within 3%``, or which are slower, or how
    many are not shown to be equivalent; empty without links."""
    if not links:
        return ""
    marks = {gpu: _slower(link).mark for gpu, link in links.items()}
    slow = [f"gpu:{gpu}" for gpu, mark in marks.items() if mark == MARKS["different"]]
    if slow:
        many, verb = ("link", "is") if len(slow) == 1 else ("links", "are")
        return f"The {many} of {', '.join(slow)} to the host {verb} slower than those of the others"
    number = count(len(links), "GPU")
    unknown = sum(mark == MARKS["no change found"] for mark in marks.values())
    found = [each.decision for link in links.values() for each in link.values()]
    single = [each for each in found if each.detectable is None]
    if single:
        return (
            f"Whether the links of {number} to the host are equivalent is not decidable: nothing "
            "replicates their figures; the lowest is "
            f"{percent(1 - min(each.ratio for each in single))} below the median of the others"
        )
    if unknown:
        most = percent(max(each.detectable or 1.0 for each in found))
        return (
            f"No link of {number} to the host was found to be slower; {unknown} of them "
            f"{'is' if unknown == 1 else 'are'} not shown to be equivalent, and up to "
            f"{most} less bandwidth could be missed"
        )
    all_ = "both GPUs" if len(links) == 2 else f"all {number}"
    return f"The links of {all_} to the host are equivalent within {THRESHOLD:.0%}"


def slow_links_text(links: Mapping[int, Link]) -> str:
    """``the link of gpu:2 to the host is slower than those of the others: H2D −9.6 %``, with all
    that are; empty if none is."""
    slow = {gpu: link for gpu, link in links.items() if any(e.is_slow for e in link.values())}
    if not slow:
        return ""
    by = [f"{'' if len(slow) == 1 else f'gpu:{gpu} '}{_slower(link).text}"
          for gpu, link in slow.items()]  # fmt: skip
    text = links_text(links)
    return f"{text[:1].lower()}{text[1:]}: {'; '.join(by)}"


def gpu_link_table(subject: Subject, peers: Iterable[PeerResult]) -> tuple[Sheet, ...]:
    """A row for each GPU whose path from or to the host has peers: both bandwidths, their ratios to
    the median of the peers, and whether the link is slower. No table for a single GPU."""
    rows = gpu_links(subject.machine, peers)
    return table(
        TITLE,
        (
            "GPU",
            "slower",
            *(name for each in DIRECTIONS for name in (f"{each}, GB/s", f"{each} ratio")),
        ),
        (_row(gpu, own) for gpu, own in rows.items()),
        f"GB/s at {link_sizes(rows)}. Ratio: bandwidth over the median of the others, "
        f"with its 95 % interval. yes: slower by more than {THRESHOLD:.0%}, no: equivalent within "
        f"it or faster, {NOT_DETERMINED}.",
    )


def _row(gpu: int, own: Link) -> tuple[SheetCell, ...]:
    cells = [SheetCell(f"gpu:{gpu}"), _slower(own)]
    for direction in DIRECTIONS:
        if (peer := own.get(direction)) and (result := of_link(peer)):
            cells.append(SheetCell(result.sizes[-1].a.rate_text, series=peer.curve.text))
            cells.append(SheetCell(ratio_text(result.decision)))
        else:
            cells += [SheetCell("—"), SheetCell("—")]
    return tuple(cells)


def ratio_text(decision: Decision) -> str:
    """``0.952 (0.948–0.957)``; without an interval the ratio alone."""
    span = decision.interval
    return f"{decision.ratio:.3f}" + (f" ({span.low:.3f}–{span.high:.3f})" if span else "")


def _slower(own: Link) -> SheetCell:
    """Whether any direction is slower; else whether one is not determined, or faster: of two GPUs
    the slower alone differs."""
    slow = [direction for direction in DIRECTIONS if direction in own and own[direction].is_slow]
    if slow:
        return SheetCell(_by(own, slow), MARKS["different"], own[slow[0]].curve.text)
    open_ = [each for each in own.values() if each.outcome == "no change found"]
    if open_:
        worst = loosest(open_)
        return SheetCell(hidden_loss(worst.decision), MARKS["no change found"], worst.curve.text)
    fast = [d for d in DIRECTIONS if d in own and own[d].is_fast and own[d].others > 1]
    return SheetCell(f"faster: {_by(own, fast)}" if fast else "", MARKS["equivalent"])


def _by(own: Link, directions: Sequence[Group]) -> str:
    """``H2D −46 %, D2H −45 % at 64 MiB``: its bandwidth against that of the others."""
    return ", ".join(f"{direction} {own[direction].effect_text}" for direction in directions)


def of_link(peer: PeerResult) -> PairResult | None:
    """What was decided about the largest sizes; None if only small ones were measured."""
    return next((peer.regimes[r] for r in LINK_REGIMES if r in peer.regimes), None)


def _gravity(peer: PeerResult) -> tuple[bool, bool, float]:
    """The order of the paths of a GPU from several nodes: the last is the worst, and is shown."""
    return peer.is_slow, peer.outcome == "no change found", -peer.decision.ratio
