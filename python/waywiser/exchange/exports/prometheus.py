"""A check as Prometheus' text exposition, for the textfile collector of a node exporter.

Names and labels are stable. A path's labels are its curve's text and its size; devices are named by
``gpu``, ``uuid`` and ``pci``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from waywiser.analysis.comparison.checkup import Checkup
from waywiser.analysis.comparison.node import Node
from waywiser.analysis.comparison.path_change import WORST_FIRST
from waywiser.profile.health import readings
from waywiser.profile.output_file import OutputKind
from waywiser.stats.decision import Decision
from waywiser.words.visible import visible

STATUS = "waywiser_check_status"
"""The metric in every file."""

METRICS_FILE = OutputKind("file of metrics of waywiser check", STATUS)

_STATUSES = ("ok", "failed", "inconclusive")

_Sample = tuple[Mapping[str, str], float]


def exposition(checkup: Checkup, node: Node) -> str:
    """All metrics, each with HELP and TYPE, in version 0.0.4 of the format."""
    host = {"host": node.name}
    families = (
        (STATUS, "gauge", "1 for the verdict of the check.",
         [({**host, "status": each}, float(checkup.status == each)) for each in _STATUSES]),
        ("waywiser_check_findings", "gauge", "Findings that made the check fail.",
         [(host, float(len(checkup.findings)))]),
        ("waywiser_check_measured_timestamp_seconds", "gauge",
         "When the checked profile was begun.", list(_measured(node, host))),
        ("waywiser_gpus", "gauge", "GPUs that were found.",
         [(host, float(len(node.machine.gpus)))]),
        ("waywiser_gpus_missing", "gauge", "GPUs that the baseline has and this node has not.",
         [(host, float(len(checkup.comparison.missing_gpus)))]),
        ("waywiser_path_rate_bytes_per_second", "gauge", "Bytes over median time.",
         list(_rates(checkup, host))),
        ("waywiser_path_ratio", "gauge",
         "Rate now over rate in the baseline, of the part of the path that its verdict is about.",
         list(_ratios(checkup, host))),
        ("waywiser_path_detectable_loss", "gauge",
         "Smallest relative loss of bandwidth that would have been found.",
         list(_detectable(checkup, host))),
        ("waywiser_path_deviation", "gauge",
         "Standard error of the logarithm of the ratio; a lower limit without replicates.",
         list(_figures(checkup, host, lambda decision: decision.deviation))),
        ("waywiser_path_degrees_of_freedom", "gauge", "Degrees of freedom of the deviation.",
         list(_figures(checkup, host, lambda decision: decision.freedom))),
        ("waywiser_path_p_corrected", "gauge",
         "Chance of such a ratio without a change, among all that was tested.",
         list(_figures(checkup, host, lambda decision: decision.p_corrected))),
        ("waywiser_path_processes", "gauge", "Processes that measured the path now.",
         list(_processes(checkup, host, 1))),
        ("waywiser_path_baseline_processes", "gauge",
         "Processes that measured the path in the baseline.",
         list(_processes(checkup, host, 0))),
        ("waywiser_path_process_deviation", "gauge", "Relative deviation between processes, now.",
         list(_noise(checkup, host, 1))),
        ("waywiser_path_baseline_process_deviation", "gauge",
         "Relative deviation between processes, in the baseline.",
         list(_noise(checkup, host, 0))),
        ("waywiser_path_verdict", "gauge", "1 where the path has this verdict.",
         list(_verdicts(checkup, host))),
        ("waywiser_gpu_pcie_width_lanes", "gauge", "PCIe lanes in use under load.",
         list(_links(node, host, "width"))),
        ("waywiser_gpu_pcie_generation", "gauge", "PCIe generation under load.",
         list(_links(node, host, "generation"))),
        ("waywiser_gpu_errors_total", "counter", "Error counters of GPUs and their links.",
         list(_errors(node, host))),
    )  # fmt: skip
    return "".join(_family(*family) for family in families if family[3])


def _family(name: str, kind: str, help: str, samples: list[_Sample]) -> str:
    lines = [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        written = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{written}}} {value:.17g}")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A label's value, as the format wants it, and nothing that a terminal obeys."""
    return visible(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _measured(node: Node, host: Mapping[str, str]) -> Iterator[_Sample]:
    yield host, datetime.fromisoformat(node.created).timestamp()


def _rates(checkup: Checkup, host: Mapping[str, str]) -> Iterator[_Sample]:
    for path in checkup.comparison.paths:
        for part in path.parts:
            for size in part.sizes:
                if size.bytes and size.rated_bytes:
                    labels = {**host, "path": path.curve, "bytes": str(size.bytes)}
                    yield labels, size.rated_bytes / size.seconds_now


def _ratios(checkup: Checkup, host: Mapping[str, str]) -> Iterator[_Sample]:
    for path in checkup.comparison.paths:
        if path.parts:
            yield {**host, "path": path.curve}, path.ratio


def _detectable(checkup: Checkup, host: Mapping[str, str]) -> Iterator[_Sample]:
    for path in checkup.comparison.paths:
        if path.detectable is not None:
            yield {**host, "path": path.curve}, path.detectable


def _figures(
    checkup: Checkup, host: Mapping[str, str], figure: Callable[[Decision], float | None]
) -> Iterator[_Sample]:
    """A figure of the decision that the path's verdict is about."""
    for path in checkup.comparison.paths:
        value = figure(path.decision) if path.decision else None
        if value is not None:
            yield {**host, "path": path.curve}, value


def _processes(checkup: Checkup, host: Mapping[str, str], side: int) -> Iterator[_Sample]:
    for path in checkup.comparison.measured:
        yield {**host, "path": path.curve}, float(path.parts[-1].processes[side])


def _noise(checkup: Checkup, host: Mapping[str, str], side: int) -> Iterator[_Sample]:
    for path in checkup.comparison.measured:
        deviation = path.parts[-1].noise[side].deviation
        if deviation is not None:
            yield {**host, "path": path.curve}, deviation


def _verdicts(checkup: Checkup, host: Mapping[str, str]) -> Iterator[_Sample]:
    for path in checkup.comparison.paths:
        for verdict in WORST_FIRST:
            labels = {**host, "path": path.curve, "verdict": verdict}
            yield labels, float(path.verdict == verdict)


def _links(node: Node, host: Mapping[str, str], what: str) -> Iterator[_Sample]:
    for gpu in node.machine.gpus:
        link = node.links.get(gpu.index)
        if link is not None:
            labels = {**host, "gpu": str(gpu.index), "uuid": gpu.uuid, "pci": gpu.pci}
            yield labels, float(link.width if what == "width" else link.generation)


def _errors(node: Node, host: Mapping[str, str]) -> Iterator[_Sample]:
    health = readings(node.health)
    pci = {gpu.uuid: gpu.pci for gpu in node.machine.gpus}
    for gpu in health[-1].gpus if health else ():
        for counter, count in gpu.counters.items():
            labels = {**host, "gpu": str(gpu.index), "uuid": gpu.uuid,
                      "pci": pci.get(gpu.uuid, ""), "counter": counter}  # fmt: skip
            yield labels, float(count)
