"""A check as metrics of Prometheus, for the textfile collector of a node exporter: the verdict
of each host and of each reference, and what the baseline of one host shows.

Names and labels are stable. A path's labels are its curve's text and its size; devices are named by
``gpu``, ``uuid`` and ``pci``. Peers and nights: `waywiser.exchange.exports.prometheus_nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from waywiser.analysis.comparison.checkup import Checkup
from waywiser.analysis.comparison.comparison_text import verdict_text
from waywiser.analysis.comparison.path_change import PATH_REASONS, PathChange
from waywiser.analysis.health.health_check import HEALTH_REASONS, HealthCheck
from waywiser.curves import Subject
from waywiser.exchange.exports.metrics_text import Family, Sample, metrics_text
from waywiser.exchange.exports.prometheus_nodes import fleet_families, history_families
from waywiser.profile import OutputKind, readings
from waywiser.words import STATUSES

STATUS = "waywiser_check_status"
"""The metric in every file."""

METRICS_FILE = OutputKind("file of metrics of waywiser", "# HELP waywiser_")


def health_metrics(health: HealthCheck, node: Subject | None = None) -> str:
    """All metrics, each with HELP and TYPE, in version 0.0.4 of the format; ``node`` is the one
    profile that was checked."""
    families = [*_host_families(health)]
    if node is not None:
        families += _node_families(node)
        if health.baseline is not None:
            families += _baseline_families(health.baseline, node)
    if health.peers is not None:
        families += fleet_families(health.peers)
    if health.nights is not None:
        families += history_families(health.nights)
    return metrics_text(families)


def _host_families(health: HealthCheck) -> Iterator[Family]:
    yield Family(STATUS, "gauge", "1 for the verdict of all references.",
                 [({"host": host.host, "status": each}, float(host.status == each))
                  for host in health.hosts for each in HEALTH_REASONS])  # fmt: skip
    yield Family("waywiser_check_reference_status", "gauge",
                 "1 for what a reference says: 0 not compared, 1 ok, 2 not decided, 3 suspected, "
                 "4 failed, as the label code.",
                 [({"host": host.host, "reference": each.reference, "status": each.status,
                    "code": str(int(STATUSES[each.status]))}, 1.0)
                  for host in health.hosts for each in host.results])  # fmt: skip


def _node_families(node: Subject) -> Iterator[Family]:
    host = {"host": node.name}
    yield Family("waywiser_check_measured_timestamp_seconds", "gauge",
                 "When the checked profile was begun.",
                 [(host, datetime.fromisoformat(node.created).timestamp())])  # fmt: skip
    yield Family("waywiser_gpus", "gauge", "GPUs that were found.",
                 [(host, float(len(node.machine.gpus)))])  # fmt: skip
    yield Family("waywiser_gpu_pcie_width_lanes", "gauge", "PCIe lanes in use under load.",
                 list(_links(node, host, "width")))  # fmt: skip
    yield Family("waywiser_gpu_pcie_generation", "gauge", "PCIe generation under load.",
                 list(_links(node, host, "generation")))  # fmt: skip
    yield Family("waywiser_gpu_errors_total", "counter",
                 "Error counters of GPUs and their links.", list(_errors(node, host)))  # fmt: skip


def _baseline_families(checkup: Checkup, node: Subject) -> Iterator[Family]:
    host = {"host": node.name}
    yield Family("waywiser_check_findings", "gauge", "Findings that made the check fail.",
                 [(host, float(len(checkup.findings)))])  # fmt: skip
    yield Family("waywiser_gpus_missing", "gauge",
                 "GPUs that the baseline has and this node has not.",
                 [(host, float(len(checkup.comparison.missing_gpus)))])  # fmt: skip
    yield Family("waywiser_path_rate_bytes_per_second", "gauge", "Bytes over median time.",
                 list(_rates(checkup, host)))  # fmt: skip
    for name, help, figure in _OF_PATHS:
        yield Family(name, "gauge", help, list(_figures(checkup, host, figure)))
    yield Family("waywiser_path_verdict", "gauge", "1 where the path has this verdict.",
                 list(_verdicts(checkup, host)))  # fmt: skip


def _rates(checkup: Checkup, host: Mapping[str, str]) -> Iterator[Sample]:
    for path in checkup.comparison.paths:
        for part in path.parts:
            for size in part.sizes:
                if size.bytes and size.rated_bytes:
                    labels = {**host, "path": path.curve, "bytes": str(size.bytes)}
                    yield labels, size.rated_bytes / size.seconds_now


def _figures(
    checkup: Checkup, host: Mapping[str, str], figure: Callable[[PathChange], float | None]
) -> Iterator[Sample]:
    for path in checkup.comparison.measured:
        value = figure(path)
        if value is not None:
            yield {**host, "path": path.curve}, float(value)


_OF_PATHS: tuple[tuple[str, str, Callable[[PathChange], float | None]], ...] = (
    ("waywiser_path_ratio",
     "Rate now over rate in the baseline, of the part of the path that its verdict is about; of "
     "latencies time in the baseline over time now.",
     lambda path: path.ratio),
    ("waywiser_path_detectable_loss",
     "Smallest relative loss of rate (of latencies, of inverse time) that would have been found.",
     lambda path: path.detectable),
    ("waywiser_path_deviation",
     "Standard error of the logarithm of the ratio; a lower limit without replicates.",
     lambda path: path.decision.deviation if path.decision else None),
    ("waywiser_path_degrees_of_freedom", "Degrees of freedom of the deviation.",
     lambda path: path.decision.freedom if path.decision else None),
    ("waywiser_path_p_corrected",
     "Chance of such a ratio without a change, among all that was tested.",
     lambda path: path.decision.p_corrected if path.decision else None),
    ("waywiser_path_processes", "Processes that measured the path now.",
     lambda path: path.parts[-1].processes[1]),
    ("waywiser_path_baseline_processes", "Processes that measured the path in the baseline.",
     lambda path: path.parts[-1].processes[0]),
    ("waywiser_path_process_deviation", "Relative deviation between processes, now.",
     lambda path: path.parts[-1].noise[1].deviation),
    ("waywiser_path_baseline_process_deviation",
     "Relative deviation between processes, in the baseline.",
     lambda path: path.parts[-1].noise[0].deviation),
)  # fmt: skip
"""Metrics of each measured path, their help, and their value; None if it has none."""


def _verdicts(checkup: Checkup, host: Mapping[str, str]) -> Iterator[Sample]:
    for path in checkup.comparison.paths:
        for verdict in PATH_REASONS:
            labels = {**host, "path": path.curve, "verdict": verdict}
            yield labels, float(verdict_text(checkup.comparison, path) == verdict)


def _links(node: Subject, host: Mapping[str, str], what: str) -> Iterator[Sample]:
    for gpu in node.machine.gpus:
        link = node.links.get(gpu.index)
        if link is not None:
            labels = {**host, "gpu": str(gpu.index), "uuid": gpu.uuid, "pci": gpu.pci}
            yield labels, float(link.width if what == "width" else link.generation)


def _errors(node: Subject, host: Mapping[str, str]) -> Iterator[Sample]:
    health = readings(node.health)
    pci = {gpu.uuid: gpu.pci for gpu in node.machine.gpus}
    for gpu in health[-1].gpus if health else ():
        for counter, count in gpu.counters.items():
            labels = {**host, "gpu": str(gpu.index), "uuid": gpu.uuid,
                      "pci": pci.get(gpu.uuid, ""), "counter": counter}  # fmt: skip
            yield labels, float(count)
