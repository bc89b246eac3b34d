"""Fleets and histories as JUnit XML: one test for each host, and for each path of each node."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.comparison.fleet import Fleet
from waywiser.analysis.history.history import History
from waywiser.analysis.history.history_texts import change_text, path_text
from waywiser.exchange.exports.junit_file import JunitCase, junit_file, junit_kind

FLEET_JUNIT = junit_kind("fleet")
HISTORY_JUNIT = junit_kind("history")


def fleet_junit(fleet: Fleet) -> bytes:
    """UTF-8. Bad and suspect hosts are failures; hosts with too few peers and files that could not
    be read are skipped, with the reason."""
    return junit_file("fleet", "hosts", _of_hosts(fleet))


def _of_hosts(fleet: Fleet) -> Iterator[JunitCase]:
    for host in fleet.hosts:
        faults = [fault.title for fault in host.faults]
        detail = "\n".join((*faults, *host.own_findings, *host.notes))
        said = f"{host.status}: {faults[0]}" if faults else host.status
        if host.status in ("bad", "suspect"):
            yield JunitCase(host.host, "failure", said, host.status, detail)
        elif host.status == "not determined":
            yield JunitCase(host.host, "skipped", "too few hosts to compare with", detail=detail)
        else:
            yield JunitCase(host.host, "passed", said, detail=detail)
    for file, why in fleet.unreadable.items():
        yield JunitCase(file, "skipped", why)


def history_junit(history: History) -> bytes:
    """UTF-8. Paths that are slower are failures; suspected ones and those of too few nights are
    skipped, and so are files that could not be used."""
    return junit_file("history", "paths", _of_nodes(history))


def _of_nodes(history: History) -> Iterator[JunitCase]:
    for path in history.paths:
        name, said = f"{path.node}: {path.path}", path_text(path)
        detail = "\n".join(change_text(each) for each in path.changes)
        if path.status == "slower":
            yield JunitCase(name, "failure", said, path.status, detail)
        elif path.status in ("suspected", "too few nights"):
            yield JunitCase(name, "skipped", said, detail=detail)
        else:
            yield JunitCase(name, "passed", said, detail=detail)
    for file, why in history.unreadable.items():
        yield JunitCase(file, "skipped", why)
