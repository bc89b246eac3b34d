"""One profile against every reference at hand."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.comparison.checkup import Checkup
from waywiser.analysis.comparison.comparison_text import ran_below
from waywiser.analysis.comparison.errors_counted import errors_of
from waywiser.analysis.comparison.fleet import Fleet
from waywiser.analysis.health.health_check import ReferenceResult
from waywiser.analysis.health.many_hosts import nights_result, peers_result
from waywiser.analysis.history.history import History
from waywiser.analysis.questions.gpu_links import links_text
from waywiser.analysis.questions.slow_links import links_of_gpus
from waywiser.curves.normal import NormalPath, below_findings, verdicts_text
from waywiser.curves.subject import LoadedLink, Subject
from waywiser.machine.machine import Machine
from waywiser.machine.unusable_gpus import lost_text
from waywiser.words import STATUSES, Reason, Status
from waywiser.words.number_format import count

KEEP = "waywiser check --keep measures and keeps a baseline, while the machine is healthy"
NAME_FOLDER = "--fleet FOLDER names profiles of nodes of its kind, and of its own nights"


def host_results(
    node: Subject,
    read: Subject,
    beside: Sequence[NormalPath],
    baseline: Checkup | None = None,
    peers: Fleet | None = None,
    nights: History | None = None,
) -> tuple[ReferenceResult, ...]:
    """What each reference says of ``node``, the best first. ``read`` is the same profile with its
    curves (`Subject.of`); ``beside`` are its headline paths beside those of other machines."""
    return (
        _baseline(baseline),
        nights_result(nights, node.name) or ReferenceResult(
            "nights", "not compared", "no profiles of its former nights", NAME_FOLDER),
        peers_result(peers, node.name) or ReferenceResult(
            "peers", "not compared", "no profiles of nodes of its kind", NAME_FOLDER),
        _devices(node, has_baseline=baseline is not None),
        equal_parts(read.machine, read),
        _other_machines(node.machine, beside),
    )  # fmt: skip


def _baseline(checkup: Checkup | None) -> ReferenceResult:
    if checkup is None:
        return ReferenceResult("baseline", "not compared", "no baseline", KEEP)
    statement = str(checkup).partition(": ")[2]
    return ReferenceResult("baseline", checkup.status, statement)


def equal_parts(machine: Machine, read: Subject) -> ReferenceResult:
    """The links of the GPUs beside one another."""
    links, slow = links_of_gpus(machine, read.overview)
    if slow:
        remedy = "measure again; if it stays, look at the slot and the link (waywiser doctor)"
        return ReferenceResult("equal parts", "slow", "; ".join(slow), remedy)
    if not links:
        gpus = count(len(machine.gpus), "GPU")
        return ReferenceResult("equal parts", "not compared", f"no equal links: {gpus}")
    decided = all(peer.verdict != "no change found" for own in links.values()
                  for peer in own.values())  # fmt: skip
    status: Reason = "ok" if decided else "not decided"
    return ReferenceResult("equal parts", status, links_text(links))


def _other_machines(machine: Machine, beside: Sequence[NormalPath]) -> ReferenceResult:
    said = verdicts_text(beside)
    below = below_findings(machine, beside)
    if below:
        return ReferenceResult("other machines", "below", below[0].statement, below[0].remedy)
    if not any(path.verdict for path in beside):
        why = next((path.why for path in beside if path.why), "")
        text = f"{said}: {why}" if why else said or "no headline path with a GPU"
        return ReferenceResult("other machines", "not compared", text)
    return ReferenceResult("other machines", "normal", said)


def _devices(node: Subject, *, has_baseline: bool) -> ReferenceResult:
    """Lost GPUs, links below their best under load, and errors that were counted meanwhile. With a
    baseline the checkup has looked at links and errors, beside those of former times."""
    machine = node.machine
    grave, _ = errors_of(node)
    below = [
        ran_below(f"gpu:{gpu.index}", text)
        for gpu in machine.gpus
        if (text := node.links.get(gpu.index, LoadedLink()).below(gpu))
    ]
    lost = lost_text(machine)
    faults = [*filter(None, (lost,)), *([] if has_baseline else below), *grave]
    if faults:
        remedy = "see the kernel's log (dmesg) and waywiser doctor; reset or replace the device"
        return ReferenceResult("devices", "failed", "; ".join(faults), remedy)
    if not machine.gpus:
        return ReferenceResult("devices", "not compared", "no GPU")
    tested = [count(len(machine.gpus), "GPU"), "no error counted"] if node.health else [
        count(len(machine.gpus), "GPU"), "error counters not read"]  # fmt: skip
    if node.links and not below:
        tested.append(f"{count(len(node.links), 'link')} at full width and speed under load")
    elif not node.links:
        tested.append("links not read")
    return ReferenceResult("devices", "ok" if node.health or node.links else "not compared",
                           ", ".join(tested))  # fmt: skip


def is_undecided(result: ReferenceResult) -> bool:
    """Whether a measurement may decide what the reference leaves open."""
    return STATUSES[result.status] in (Status.UNDECIDED, Status.SUSPECTED)
