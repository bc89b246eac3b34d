"""Checks of the processors: clocks, threads, quotas, and who else is using them."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.curves import Finding
from waywiser.fitness.situation import Situation
from waywiser.machine import format_list
from waywiser.machine.system_files import parse_list
from waywiser.words import format_seconds

TURBO = {
    "on": (
        "turbo is on: clocks depend on temperature and on what other cores do",
        "keep it for realistic numbers; compare only with machines that use it too",
    ),
    "off": ("turbo is off: repeatable, but slower than in ordinary use", ""),
}
"""What the state of turbo means, and what can be done."""


def governor(situation: Situation) -> Iterator[Finding]:
    """The frequency governor, which decides how fast a core wakes up."""
    found = situation.items("governor", str)
    file = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    if not found and situation.is_host_known:
        what = "the processor's frequency governor is not shown"
        yield Finding("governor", "info", what, evidence=(f"no {file}",), remedy="")
    elif found and found != ["performance"]:
        yield Finding(
            "governor",
            "warning",
            f"the frequency governor is {', '.join(found)}: cores reduce their clock "
            "between samples",
            evidence=(file,),
            remedy="as root: cpupower frequency-set -g performance",
        )


def boost(situation: Situation) -> Iterator[Finding]:
    """Turbo clocks, which depend on temperature and on what other cores do."""
    state = situation.text("turbo")
    if state in TURBO:
        what, remedy = TURBO[state]
        evidence = "/sys/devices/system/cpu/intel_pstate/no_turbo or cpufreq/boost"
        yield Finding("turbo", "info", what, evidence=(evidence,), remedy=remedy)


def threads(situation: Situation) -> Iterator[Finding]:
    """Simultaneous multithreading: the logical CPUs of a core share its load and store units. Cores
    of several kinds may differ in their number of threads: nothing is said then."""
    cores = sum(package.cores for package in situation.machine.packages)
    cpus = sum(package.cpus for package in situation.machine.packages)
    if cores and cpus > cores and cpus % cores == 0:
        yield Finding(
            "smt",
            "info",
            f"{cpus // cores} logical CPUs share each core",
            evidence=(f"{cores} cores, {cpus} CPUs",),
            remedy="",
        )


def quota(situation: Situation) -> Iterator[Finding]:
    """A cgroup's quota, which stops all threads of the process once it is used up."""
    limit = situation.number("cgroup_cpus")
    usable = sum(len(node.cpus) for node in situation.machine.numa)
    if limit is not None and limit < usable:
        yield Finding(
            "cpu-quota",
            "warning",
            f"the cgroup allows the time of {limit:g} CPUs for {usable} CPUs: copies by many "
            "threads will be throttled",
            evidence=("cpu.max or cpu.cfs_quota_us of this process's cgroup",),
            remedy="run without the quota (docker --cpus, Kubernetes limits), or with a cpuset "
            "instead",
        )


def cpuset(situation: Situation) -> Iterator[Finding]:
    """CPUs that this process may not use."""
    if situation.files is None:
        return
    online = parse_list(situation.files.text("/sys/devices/system/cpu/online") or "")
    allowed = parse_list(situation.files.fields("/proc/self/status").get("Cpus_allowed_list", ""))
    missing = tuple(cpu for cpu in online if cpu not in allowed)
    if allowed and missing:
        yield Finding(
            "cpuset",
            "info",
            f"this process may use {len(online) - len(missing)} of {len(online)} CPUs",
            evidence=(f"not CPUs {format_list(missing)}",),
            remedy="to measure the rest, start it outside the cpuset (taskset, container, batch "
            "system)",
        )


def load(situation: Situation) -> Iterator[Finding]:
    """Other people's processes: the CPU time that they use, never the load average."""
    found, unknown = situation.load, situation.load_now
    if found is not None and found.is_loaded:
        when = "now" if situation.is_live else "during the survey"
        yield Finding(
            "load",
            "warning",
            f"{found.text} {when}",
            evidence=(f"{found.source}, over {format_seconds(found.seconds)}",),
            remedy="wait until the machine is idle, or take an exclusive node",
        )
    elif found is None and unknown is not None:
        yield Finding("load", "info", unknown.text, evidence=(unknown.source,), remedy="")
