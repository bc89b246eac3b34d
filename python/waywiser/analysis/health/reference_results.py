"""What each reference says of one host."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.comparison.checkup import Checkup
from waywiser.analysis.comparison.comparison_text import ran_below
from waywiser.analysis.comparison.fleet import Fleet, HostVerdict
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.analysis.comparison.own_findings import processes_over_links
from waywiser.analysis.health.health_check import ReferenceResult
from waywiser.analysis.history.history import History, NodeHistory, PathHistory
from waywiser.analysis.history.history_texts import change_text
from waywiser.analysis.questions.gpu_links import links_text
from waywiser.analysis.questions.slow_links import links_of_gpus
from waywiser.curves import LoadedLink, NormalPath, Subject, below_findings, percent, verdicts_text
from waywiser.machine import LOST_REMEDY, Machine, lost_text
from waywiser.profile import Profile, errors_of
from waywiser.stats import THRESHOLD
from waywiser.words import STATUSES, Reason, Status, count

KEEP = "waywiser check --keep measures and keeps a baseline, while the machine is healthy"
NAME_FOLDER = "--baseline FOLDER names profiles of nodes of its kind, and of its own nights"
MEASURE_AGAIN = "measure again; if it stays, look at the slot and the link (waywiser doctor)"
FEWEST_PROCESSES = 2
"""Processes without which the whole profile is read to see whether links are equal."""

SEE_CHANGES = "see what else changed then (below), and measure again"


def host_results(
    node: Subject,
    read: Subject,
    beside: Sequence[NormalPath],
    baseline: Checkup | None = None,
    peers: Fleet | None = None,
    nights: History | None = None,
    threshold: float = THRESHOLD,
    expect_gpus: int = 0,
) -> tuple[ReferenceResult, ...]:
    """What each reference says of ``node``, the best first. ``read`` is the same profile with its
    curves (`Subject.of`); ``beside`` are its headline paths beside those of other machines;
    ``peers`` and ``nights`` are of this host alone."""
    return (
        _baseline(baseline),
        (nights and nights_result(nights.paths, nights.nodes)) or ReferenceResult(
            "nights", "not compared", "no profiles of its former nights", NAME_FOLDER),
        peers_result(peers.hosts[0], peers) if peers is not None and peers.hosts
        else ReferenceResult(
            "peers", "not compared", "no profiles of nodes of its kind", NAME_FOLDER),
        devices_result(node, has_baseline=baseline is not None, expect_gpus=expect_gpus),
        equal_parts(read, threshold),
        other_machines(node.machine, beside),
    )  # fmt: skip


def _baseline(checkup: Checkup | None) -> ReferenceResult:
    if checkup is None:
        return ReferenceResult("baseline", "not compared", "no baseline", KEEP)
    statement = str(checkup).partition(": ")[2]
    return ReferenceResult("baseline", checkup.status, statement)


def nights_result(
    paths: Sequence[PathHistory], nodes: Sequence[NodeHistory]
) -> ReferenceResult | None:
    """What the nights of a host say of it, whose ``paths`` and ``nodes`` these are; None without a
    path. A loss that lasts since a day before the first one that is listed is a loss."""
    if not paths:
        return None
    worst = max(paths, key=lambda path: (STATUSES[_reason(path)], -path.ratio))
    reason, most = _reason(worst), count(max(node.nights for node in nodes), "night")
    alike = sum(_reason(path) == reason for path in paths)
    said = f"{alike} of {count(len(paths), 'path')} {reason} in {most}"
    if reason == "too few nights":
        said = f"{most}, too few to follow a path"
    change = f": {worst.path}, {change_text(worst.last_change)}" if worst.last_change else ""
    remedy = SEE_CHANGES if STATUSES[reason] >= Status.SUSPECTED else ""
    return ReferenceResult("nights", reason, f"{said}{change}", remedy)


def _reason(path: PathHistory) -> Reason:
    return "slower" if path.slower_before else path.status


def peers_result(host: HostVerdict, peers: Fleet) -> ReferenceResult:
    """What the peers of a host say of it."""
    alike = next((each.hosts for each in peers.classes if each.name == host.hardware), 1)
    if host.faults:
        first, more = host.faults[0], len(host.faults) - 1
        others = f" and {more} more" if more else ""
        return ReferenceResult("peers", host.status, f"{first.title}{others}", first.remedy)
    if host.status == "not determined":
        known = f"{count(alike, 'host')} of its kind"
        if alike < FEWEST_HOSTS:
            return ReferenceResult(
                "peers", "not compared", f"{known}, {FEWEST_HOSTS} are the fewest"
            )
        return ReferenceResult("peers", host.status, f"other sizes than the {known}")
    return ReferenceResult("peers", host.status, f"like {count(alike - 1, 'other host')}")


def devices_result(node: Subject, *, has_baseline: bool, expect_gpus: int = 0) -> ReferenceResult:
    """Missing and lost GPUs, links below their best under load, and errors that were counted
    meanwhile. With a baseline the checkup has looked at links and errors, beside those of former
    times."""
    machine = node.machine
    grave, _ = errors_of(node.health)
    below = [
        ran_below(f"gpu:{gpu.index}", text)
        for gpu in machine.gpus
        if (text := node.links.get(gpu.index, LoadedLink()).below(gpu))
    ]
    missing = ""
    if len(machine.gpus) < expect_gpus:
        missing = f"{len(machine.gpus)} of {count(expect_gpus, 'GPU')} that are expected"
    faults = [
        *filter(None, (missing, lost_text(machine))),
        *([] if has_baseline else below),
        *grave,
    ]
    if faults:
        return ReferenceResult("devices", "failed", "; ".join(faults), LOST_REMEDY)
    if not machine.gpus:
        return ReferenceResult("devices", "not compared", "no GPU")
    tested = [count(len(machine.gpus), "GPU")]
    tested.append("no error counted" if node.health else "error counters not read")
    if node.links and not below:
        tested.append(f"{count(len(node.links), 'link')} at full width and speed under load")
    elif not node.links:
        tested.append("links not read")
    status: Reason = "ok" if node.health or node.links else "not compared"
    return ReferenceResult("devices", status, ", ".join(tested))


def equal_parts(read: Subject, threshold: float = THRESHOLD) -> ReferenceResult:
    """The links of the GPUs beside one another, of a profile with its curves."""
    links, slow = links_of_gpus(read.machine, read.overview)
    peers = [peer for own in links.values() for peer in own.values()]
    if slow and any(peer.is_slow for peer in peers):
        most = max(1 - peer.decision.ratio for peer in peers if peer.is_slow)
        if most <= threshold and not slow[1:]:
            said = f"{links_text(links)}, by at most {percent(most)}: less than the threshold"
            return ReferenceResult("equal parts", "ok", said)
    if slow:
        return ReferenceResult("equal parts", "slow", "; ".join(slow), MEASURE_AGAIN)
    if not links:
        gpus = count(len(read.machine.gpus), "GPU")
        return ReferenceResult("equal parts", "not compared", f"no equal links: {gpus}")
    decided = all(peer.outcome != "no change found" for peer in peers)
    status: Reason = "ok" if decided else "not decided"
    return ReferenceResult("equal parts", status, links_text(links))


def equal_parts_of(node: Subject) -> ReferenceResult:
    """The same of one of many profiles, by what is quickly read of it."""
    if 0 < processes_over_links(node) < FEWEST_PROCESSES and not node.own_findings:
        with Profile.open(node.file) as profile:
            return equal_parts(Subject.of(profile))
    return equal_parts_recorded(node)


def equal_parts_recorded(node: Subject) -> ReferenceResult:
    """The same by what was read already: of one process nothing is known."""
    if node.own_findings:
        return ReferenceResult("equal parts", "slow", "; ".join(node.own_findings), MEASURE_AGAIN)
    gpus = count(len(node.machine.gpus), "GPU")
    processes = processes_over_links(node)
    if not processes:
        return ReferenceResult("equal parts", "not compared", f"no equal links: {gpus}")
    if processes < FEWEST_PROCESSES:
        return ReferenceResult("equal parts", "not compared", "one process, no profile here")
    return ReferenceResult("equal parts", "ok", f"no link is slow among those of {gpus}")


def other_machines(machine: Machine, beside: Sequence[NormalPath]) -> ReferenceResult:
    """Headline paths beside those of other machines."""
    said = verdicts_text(beside)
    if below := below_findings(machine, beside):
        return ReferenceResult("other machines", "below", below[0].statement, below[0].remedy)
    if not any(path.verdict for path in beside):
        why = next((path.why for path in beside if path.why), "")
        text = f"{said}: {why}" if why else said or "no headline path with a GPU"
        return ReferenceResult("other machines", "not compared", text)
    return ReferenceResult("other machines", "normal", said)
