"""What JUnit XML says of hosts beside their peers, and of paths over their nights."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.comparison.fleet import Fleet
from waywiser.analysis.history.history import History
from waywiser.analysis.history.history_texts import change_text, path_text
from waywiser.exchange.exports.junit_file import JunitCase


def host_lines(fleet: Fleet, host: str) -> tuple[str, ...]:
    """The faults and the notes of a host."""
    own = next((each for each in fleet.hosts if each.host == host), None)
    if own is None:
        return ()
    return (*(fault.title for fault in own.faults), *own.own_findings, *own.notes)


def nights_cases(history: History) -> Iterator[JunitCase]:
    """Paths that are slower are failures; suspected ones and those of too few nights are
    skipped."""
    for path in history.paths:
        name, said = f"{path.node}: {path.path}", path_text(path)
        detail = "\n".join(change_text(each) for each in path.changes)
        if path.status == "slower":
            yield JunitCase(name, "failure", said, path.status, detail)
        elif path.status in ("suspected", "too few nights"):
            yield JunitCase(name, "skipped", said, detail=detail)
        else:
            yield JunitCase(name, "passed", said, detail=detail)
