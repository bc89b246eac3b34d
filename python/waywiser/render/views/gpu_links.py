"""The links of GPUs to the host, one row for each GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from waywiser.analysis.questions.gpu_links import (
    DIRECTIONS,
    TITLE,
    Link,
    link_sizes,
    link_verdict,
    of_link,
)
from waywiser.curves import SMALL_BYTES, Curve, Group
from waywiser.curves.headline import headline
from waywiser.profile import Profile
from waywiser.render.parts import Section, Sheet, SheetColumn
from waywiser.stats import THRESHOLD
from waywiser.words import format_bytes, format_in_matrix

COLUMNS = (
    SheetColumn(TITLE),
    *(
        column
        for n, each in enumerate(DIRECTIONS)
        for column in (
            SheetColumn(f"{each} GB/s", number=True),
            SheetColumn(f"{each} share", number=True, spared=n + 2),
        )
    ),
    SheetColumn("latency", number=True, spared=1),
    SheetColumn("verdict", folds=True, most=24),
)

Paths = Mapping[Group, Curve]
"""The curves of one GPU from and to the host, by direction."""


def gpu_link_sections(
    profile: Profile, links: Mapping[int, Link], shown: Sequence[Curve]
) -> Iterator[Section]:
    """Both bandwidths of each GPU, their share of the median of the others, or of the bound if it
    has none, the H2D latency, and whether the link is slower. None if fewer than two
    GPUs have such a path."""
    paths = _paths(profile, shown)
    if len(paths) < 2:
        return
    rows = (_row(gpu, own, links.get(gpu, {})) for gpu, own in sorted(paths.items()))
    sheet = Sheet.of(TITLE, COLUMNS, rows, _legend(paths, links)).without_empty_columns()
    yield Section("", "", (sheet,))


def _paths(profile: Profile, shown: Sequence[Curve]) -> dict[int, dict[Group, Curve]]:
    """The paths that have a bandwidth, by GPU: of several from and to one GPU the first."""
    groups = headline(profile.machine, (curve.workload for curve in shown))
    found: dict[int, dict[Group, Curve]] = {}
    for curve in shown:
        group = groups.get(curve.text)
        if group in DIRECTIONS and curve.transfer is not None and curve.rated:
            (gpu,) = (place.index for place in curve.transfer.path.places if place.kind == "gpu")
            found.setdefault(gpu, {}).setdefault(group, curve)
    return found


def _row(gpu: int, paths: Paths, link: Link) -> Iterator[str]:
    yield f"gpu:{gpu}"
    for direction in DIRECTIONS:
        yield from _bandwidth(paths.get(direction), link, direction)
    yield _latency(paths)
    yield link_verdict(link) if link else "no equivalent GPU"


def _bandwidth(curve: Curve | None, link: Link, direction: Group) -> tuple[str, str]:
    """GB/s, and its share: of the median of the others at the largest size that they have too."""
    if direction in link and (result := of_link(link[direction])) is not None:
        return format_in_matrix(result.sizes[-1].a.rate / 1e9), f"{result.decision.ratio:.1%}"
    if curve is None:
        return "", ""
    line = curve.plateau
    if line is None:
        return "", ""
    share = f"{line.of_bound:.0%} of bound" if line.of_bound is not None else ""
    return format_in_matrix(line.rate / 1e9), share


def _latency(paths: Paths) -> str:
    """The time of the smallest H2D copy; empty if it is large, or was not measured."""
    curve = paths.get(DIRECTIONS[0])
    small = curve.measured[0] if curve is not None else None
    if small is None or small.bytes > SMALL_BYTES:
        return ""
    return f"{format_in_matrix(small.seconds * 1e6)} µs"


def _legend(paths: Mapping[int, Paths], links: Mapping[int, Link]) -> str:
    sizes = {curve.measured[0].bytes for own in paths.values() if (curve := own.get(DIRECTIONS[0]))}
    least = min(sizes, default=SMALL_BYTES + 1)
    small = f"; latency: H2D of {format_bytes(least)}" if least <= SMALL_BYTES else ""
    if not links:
        return f"GB/s at the largest size{small}"
    return (
        f"GB/s at {link_sizes(links)}; share: of the median of the others{small}; "
        f"equivalent: within {THRESHOLD:.0%}"
    )
