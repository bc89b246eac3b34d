"""Comparisons and checks as JUnit XML: one test for each path, and for what else a check found."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.comparison.comparison_text import (
    detectable_text,
    verdict_text,
    why_suspected,
)
from waywiser.analysis.comparison.part_change import SizeChange
from waywiser.analysis.comparison.path_change import REGIMES, PathChange, ProfileComparison
from waywiser.analysis.health.health_check import HealthCheck
from waywiser.exchange.exports.junit_file import JunitCase, JunitResult, junit_file, junit_kind
from waywiser.exchange.exports.junit_nodes import host_lines, nights_cases
from waywiser.words import STATUSES, Reason, Status

JUNIT_FILE = junit_kind("compare")
CHECK_JUNIT = junit_kind("check")

WITHOUT_DECISION: tuple[Reason, ...] = (
    "suspected", "missing", "not decided", "no common size", "skipped", "new",
)  # fmt: skip

RESULTS: dict[Status, JunitResult] = {
    Status.FAILED: "failure",
    Status.UNDECIDED: "skipped",
    Status.OK: "passed",
}


def junit_xml(comparison: ProfileComparison, failing: Status | None) -> bytes:
    """UTF-8. Paths of the status ``failing`` or worse are failures; paths without a decision are
    skipped, with the reason."""
    return junit_file("compare", "paths", _of_paths(comparison, failing))


def check_junit(health: HealthCheck) -> bytes:
    """UTF-8. The first tests are the hosts: they fail with what was found, and are skipped if it is
    not decided. Then the paths beside the baseline, and those of nights, and files that could not
    be read."""
    return junit_file("check", "hosts and paths", _of_health(health))


def _of_health(health: HealthCheck) -> Iterator[JunitCase]:
    for host in health.hosts:
        lines = [f"{each.reference}: {each.status}: {each.statement}" for each in host.results]
        if health.baseline is not None:
            lines += health.baseline.reasons
        if health.peers is not None:
            lines += host_lines(health.peers, host.host)
        result = RESULTS[STATUSES[host.status]]
        yield JunitCase(host.host, result, str(host), host.status, "\n".join(lines))
    if health.baseline is not None:
        yield from _of_paths(health.baseline.comparison, Status.FAILED)
    if health.nights is not None:
        yield from nights_cases(health.nights)
    unreadable = {each for part in (health.peers, health.nights) if part is not None
                  for each in part.unreadable.items()}  # fmt: skip
    yield from (JunitCase(file, "skipped", why) for file, why in sorted(unreadable))


def _of_paths(comparison: ProfileComparison, failing: Status | None) -> Iterator[JunitCase]:
    for path in comparison.paths:
        said, detail = sentence(comparison, path), _detail(path)
        if failing is not None and STATUSES[path.verdict] >= failing:
            yield JunitCase(path.curve, "failure", said, path.verdict, detail)
        elif path.verdict in WITHOUT_DECISION or not comparison.is_decided(path):
            yield JunitCase(path.curve, "skipped", said, detail=detail)
        else:
            yield JunitCase(path.curve, "passed", said, detail=detail)


def sentence(comparison: ProfileComparison, path: PathChange) -> str:
    """``regression: bandwidth 0.951 of before (0.948 to 0.955); losses from 1.2% are found``; of a
    path that is not decided, which losses the noise hides."""
    size, verdict = path.size, verdict_text(comparison, path)
    if size is None:
        return f"{verdict}: {path.why}"
    decision = size.decision
    what = REGIMES[path.part.regime] if path.part else f"{size.bytes} B"
    known = decision.interval
    ends = [decision.ratio, *((known.low, known.high) if known else ())]
    middle, *span = (1 / end if size.is_time else end for end in ends)
    text = f"{verdict}: {what} {middle:.4g} of before"
    if span:
        text += f" ({min(span):.4g} to {max(span):.4g})"
    if comparison.is_decided(path):
        found = detectable_text(decision.detectable, of_time=size.is_time)
    else:
        losses = [loss for loss in (decision.detectable, path.detectable) if loss is not None]
        most = max(losses) if len(losses) == 2 else None
        found = detectable_text(most, hides=True, of_time=size.is_time)
    return "; ".join(filter(None, (f"{text}; {found}", path.why, why_suspected(path))))


def _detail(path: PathChange) -> str:
    """The figures of all decisions, one line for each part and for each of its sizes."""
    lines = [f"on {device}" for device in path.devices]
    for part in path.parts:
        if part.sizes[1:]:
            lines.append(f"{REGIMES[part.regime]}: {_figures(part.typical)}")
        for size in part.sizes:
            seconds = f"{size.seconds_before:.6g} s before, {size.seconds_now:.6g} s now"
            lines.append(f"{size.series}: {seconds}; {_figures(size)}")
    return "\n".join(lines)


def _figures(size: SizeChange) -> str:
    """``different, ratio of bandwidths 0.95, standard error 0.0012, 14 degrees of freedom, p 1e-08
    (corrected 2e-07), processes 8 before and 8 now``."""
    p, decision, processes = "", size.decision, size.processes
    ratio = f"bandwidths {decision.ratio:.4g}"
    if size.is_time:
        ratio = f"times {1 / decision.ratio:.4g}"
    if decision.p is not None and decision.p_corrected is not None:
        p = f"p {decision.p:.2g} (corrected {decision.p_corrected:.2g}), "
    return (
        f"{decision.outcome}, ratio of {ratio}, standard error {decision.deviation:.2g}, "
        f"{decision.freedom:.3g} degrees of freedom, {p}"
        f"processes {processes[0]} before and {processes[1]} now"
    )
