"""A history as a page: a line for each node and path, the worst first, and a chart for each
change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis.history.history import (
    History,
    NodeHistory,
    PathHistory,
)
from waywiser.analysis.history.history_texts import change_text, node_change_text
from waywiser.render.document import made_now
from waywiser.render.figures.nights import nights_picture
from waywiser.render.parts import (
    Assessment,
    Block,
    Document,
    Listing,
    Pictures,
    Section,
    Sheet,
    SheetCell,
    Words,
    numbers,
)
from waywiser.render.views.history import chart, headline, label_text, looked_at
from waywiser.words import Reason, Severity, count, format_rate, severity_of

MOST_CHARTS = 60
"""Charts on a page: of the worst paths."""

MOST_PATHS = 20_000
"""Lines of paths on a page."""

STILL: tuple[Reason, ...] = ("steady", "too few nights")


def history_document(found: History) -> Document:
    """The answer, the paths that changed, their charts; then nodes and all other paths, folded."""
    changed = [path for path in found.paths if path.status not in STILL]
    still = found.of(*STILL)
    shown = {id(path): f"figure-{n}" for n, path in enumerate(changed[:MOST_CHARTS], 1)}
    labels = {node.name: label_text(node) for node in found.nodes}
    chapters = (
        Section("status", "Status", tuple(_status(found))),
        Section(
            "changes",
            "Paths that changed",
            (_paths(changed, labels, shown), *_suspects(found)),
        )
        if changed
        else None,
        Section("charts", "Charts", tuple(_charts(changed))),
        Section("nodes", "Nodes", tuple(_nodes(found.nodes)), folded=len(found.nodes) > 1),
        Section("others", "Paths without a change", (_paths(still, labels, {}),), folded=True)
        if still
        else None,
        _unused(found),
    )
    nights = max((node.nights for node in found.nodes), default=0)
    simulated = " · simulated" if any(node.simulated for node in found.nodes) else ""
    return Document(
        title=f"History of {count(len(found.nodes), 'node')}",
        subtitle=(
            f"up to {count(nights, 'night')}{looked_at(found)} · "
            f"a change counts from {found.threshold:.0%} on{simulated}",
        ),
        sections=tuple(each for each in chapters if each and (each.blocks or each.sections)),
        made=made_now(),
    )


def _status(found: History) -> Iterator[Block]:
    slower, suspected = found.of("slower"), found.of("suspected")
    severity: Severity = "error" if slower else "warning" if suspected else "info"
    nodes = len({path.node for path in slower})
    statement = "Nothing is slower than it was."
    if slower:
        are = "is" if len(slower) == 1 else "are"
        statement = (
            f"{count(len(slower), 'path')} of {count(nodes, 'node')} {are} slower than before."
        )
    elif suspected:
        nodes = len({path.node for path in suspected})
        statement = f"{count(nodes, 'node')} should be measured again."
    elif not found.paths:
        severity, statement = "warning", "There is no path that can be followed."
    yield Assessment(severity, statement, headline(found))
    common = [f"{node.name}: {node_change_text(c)}" for node in found.nodes for c in node.changes]
    if common:
        yield Listing(tuple(common[:MOST_CHARTS]), max(0, len(common) - MOST_CHARTS))


def _paths(paths: Sequence[PathHistory], labels: dict[str, str], links: dict[int, str]) -> Sheet:
    rows = []
    for path in paths[:MOST_PATHS]:
        change = path.last_change
        mark = "" if path.status in STILL else severity_of(path.status)
        rows.append((
            SheetCell(path.node, mark, note=labels[path.node], link=links.get(id(path), "")),
            path.path,
            SheetCell(
                change_text(change) if change else path.status,
                note="; ".join(change.since) if change else "",
            ),
            format_rate(path.rate, path.noise or 0.01),
            chart(path.nights),
            f"{path.noise:.2%}" if path.noise is not None else "",
            f"{path.detectable:.1%}" if path.detectable is not None else "",
        ))  # fmt: skip
    left = len(paths) - MOST_PATHS
    caption = "× slower than at its best; ? suspected."
    return Sheet.of(
        "Paths, the worst first",
        (
            "node",
            "path",
            "last change",
            *numbers("GB/s"),
            "nights",
            *numbers("noise of a night", "smallest change found"),
        ),
        rows,
        f"{caption} {left} more are not shown." if left > 0 else caption,
    )


def _suspects(found: History) -> Iterator[Block]:
    if found.suspects:
        yield Words(f"To measure again: {', '.join(found.suspects)}")


def _charts(changed: Sequence[PathHistory]) -> Iterator[Block]:
    shown = changed[:MOST_CHARTS]
    if shown:
        yield Pictures(tuple(nights_picture(path, n) for n, path in enumerate(shown, 1)))
    if left := len(changed) - len(shown):
        yield Words(f"{count(left, 'more path')} that changed have no chart here.", "note")


def _nodes(nodes: Sequence[NodeHistory]) -> Iterator[Block]:
    rows = [
        (
            SheetCell(node.name, note=label_text(node)),
            node.nights,
            node.surveys,
            node.first[:10],
            node.last[:10],
            "; ".join(node.notes),
        )
        for node in nodes
    ]
    columns = ("node", *numbers("nights", "surveys"), "first", "last", "notes")
    yield Sheet.of("Nodes, the worst first", columns, rows).without_empty_columns()


def _unused(found: History) -> Section | None:
    if not found.unreadable:
        return None
    points = tuple(f"{file}: {why}" for file, why in found.unreadable.items())
    return Section("unused", "Not used", (Listing(points),))
