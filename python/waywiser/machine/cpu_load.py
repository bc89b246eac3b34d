"""How much other programs use the CPUs: CPU time between two readings, less that of this process
and of those that it started.

The load average is not read: it counts the survey's own processes, those of the minute before, and
in a container those of the whole host on all of its CPUs. Source of the files: proc(5), and the
kernel's Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from waywiser.machine.limits import cgroup_folders
from waywiser.machine.system_files import SystemFiles, parse_list
from waywiser.words import Value, grouped

BUSY_FRACTION = 0.1
"""Share of the CPUs that other programs may use while a machine is measured: services of an idle
machine use less. It holds for the share of the time with processes that wait, too."""

ENTRY = "cpu_load"
"""The entry of a run's environment that holds its load."""

LOOK_SECONDS = 1.0
"""How long a look at the present load takes: 100 ticks of each CPU."""

_COUNTED = 0.5
"""Share of the elapsed time of all CPUs that /proc/stat must account for: sandboxes show a file
whose numbers stand still."""

_MICROSECONDS = 1e6

TICKS = os.sysconf("SC_CLK_TCK")
"""Ticks of a second, in which the kernel counts CPU time."""


class CpuLoad(Value, frozen=True, omit_defaults=True):
    """The load by other programs over some time. One of the two figures is known, or none."""

    seconds: float
    """The time between the readings."""
    cpus: int
    """CPUs that this process may use."""
    others: float | None = None
    """How many of these CPUs other programs used, on average."""
    waiting: float | None = None
    """The share of the time in which some process waited for a CPU, if `others` is not known."""
    source: str = ""
    """Where the figure was read; without any, why it is not known."""

    @property
    def is_known(self) -> bool:
        return self.others is not None or self.waiting is not None

    @property
    def is_loaded(self) -> bool:
        """Whether other programs used more than `BUSY_FRACTION` of the CPUs, or of the time."""
        if self.others is not None:
            return self.others > BUSY_FRACTION * self.cpus
        return self.waiting is not None and self.waiting > BUSY_FRACTION

    @property
    def share(self) -> float:
        """The share of the CPUs, or of the time; 0 if it is not known."""
        if self.others is not None:
            return self.others / max(self.cpus, 1)
        return self.waiting or 0.0

    @property
    def text(self) -> str:
        """``other programs used 1.7 of 2 CPUs``; the source follows."""
        if self.others is not None:
            return f"other programs used {self.others:.1f} of {self.cpus} CPUs"
        if self.waiting is not None:
            return f"processes waited for a CPU in {self.waiting:.0%} of the time"
        return "it is not known how much other programs used the CPUs"


def load_of(environment: Any) -> CpuLoad | None:
    """The load that an environment of a profile holds; None if it holds none, or no valid one."""
    try:
        return msgspec.convert(environment.get(ENTRY), CpuLoad)
    except msgspec.ValidationError:
        return None


class _Reading(NamedTuple):
    seconds: float
    """The time of the clock."""
    busy: float
    """CPU seconds of all programs on the usable CPUs."""
    counted: float
    """CPU seconds that /proc/stat accounts for, idle ones too."""
    own: float
    """CPU seconds of this process and its descendants."""
    waited: tuple[float, str] | None
    """Seconds in which some process waited, and the file that says so."""


class CpuLoadWatch:
    """Reads the load by other programs from when it is made on."""

    def __init__(
        self,
        files: SystemFiles | None = None,
        clock: Callable[[], float] = time.monotonic,
        process: int | None = None,
    ) -> None:
        """``process`` is the one whose CPU time is the own one, with its descendants'."""
        self._files = files or SystemFiles()
        self._clock = clock
        self._process = process or os.getpid()
        self._cpus = self._usable_cpus()
        self._began = self._read()

    def read(self) -> CpuLoad:
        """The load since the watch was made."""
        began, now = self._began, self._read()
        seconds, cpus = now.seconds - began.seconds, max(len(self._cpus), 1)
        if seconds <= 0:
            return CpuLoad(0.0, cpus, source="no time has passed")
        counted = now.counted - began.counted
        # A container that has its own /proc/stat does not show what the host does.
        if counted >= _COUNTED * seconds * cpus and not self._is_mounted_over():
            used = now.busy - began.busy - (now.own - began.own)
            others = min(max(used / seconds, 0.0), float(cpus))
            source = "CPU time in /proc/stat, less that of the survey's own processes"
            return CpuLoad(seconds, cpus, others=others, source=source)
        if began.waited is not None and now.waited is not None:
            waiting = min(max((now.waited[0] - began.waited[0]) / seconds, 0.0), 1.0)
            source = f"pressure-stall information in {now.waited[1]}"
            return CpuLoad(seconds, cpus, waiting=waiting, source=source)
        source = "/proc/stat does not count, and there is no pressure-stall information"
        return CpuLoad(seconds, cpus, source=source)

    def _read(self) -> _Reading:
        busy, counted = self._cpu_times()
        return _Reading(self._clock(), busy, counted, self._own(), self._waited())

    def _usable_cpus(self) -> tuple[int, ...]:
        status = self._files.fields(f"/proc/{self._process}/status")
        return parse_list(status.get("Cpus_allowed_list", ""))

    def _cpu_times(self) -> tuple[float, float]:
        """(CPU seconds of programs, all CPU seconds) of the usable CPUs. Time that a hypervisor
        gave to others counts as used: it is as lost as that."""
        busy = counted = 0.0
        usable = {f"cpu{cpu}" for cpu in self._cpus}
        for line in (self._files.text("/proc/stat") or "").splitlines():
            name, *fields = line.split()
            if name not in usable:
                continue
            times = [float(each) for each in fields[:8] if each.isdigit()]
            times += [0.0] * (8 - len(times))
            user, nice, system, _idle, _wait, _interrupts, _softirqs, stolen = times
            busy += user + nice + system + stolen
            counted += sum(times)
        return busy / TICKS, counted / TICKS

    def _own(self) -> float:
        """CPU seconds of the process, of its descendants, and of those that they waited for."""
        children = grouped((each.parent, each) for each in self._processes())
        ticks, open_ = 0, [*(e for e in self._processes_of(self._process))]
        while open_:
            each = open_.pop()
            ticks += each.ticks
            open_ += children.get(each.number, [])
        return ticks / TICKS

    def _processes(self) -> Iterator[_Process]:
        for name in self._files.names("/proc"):
            if name.isdigit():
                yield from self._processes_of(int(name))

    def _processes_of(self, number: int) -> Iterator[_Process]:
        text = self._files.text(f"/proc/{number}/stat") or ""
        fields = text.rpartition(")")[2].split()  # the name before it may hold anything
        if len(fields) > 14 and all(each.lstrip("-").isdigit() for each in fields[1:15]):
            yield _Process(number, int(fields[1]), sum(map(int, fields[11:15])))

    def _waited(self) -> tuple[float, str] | None:
        """Seconds in which some process waited for a CPU: of this process's cgroup, else of the
        whole system."""
        folders = cgroup_folders(self._files, "cpu")
        paths = [f"{folder}/cpu.pressure" for folder in folders[:1]]
        for path in (*paths, "/proc/pressure/cpu"):
            for line in (self._files.text(path) or "").splitlines():
                total = line.rpartition("total=")[2]
                if line.startswith("some ") and total.isdigit():
                    return int(total) / _MICROSECONDS, path
        return None

    def _is_mounted_over(self) -> bool:
        """Whether /proc/stat is a file of the container's own, as LXCFS mounts one."""
        mounts = (self._files.text("/proc/self/mounts") or "").splitlines()
        return any(line.split()[1:2] == ["/proc/stat"] for line in mounts)


class _Process(NamedTuple):
    number: int
    parent: int
    ticks: int
    """User and system time, with that of the children that it waited for."""


def present_load() -> CpuLoad:
    """The load now, over `LOOK_SECONDS`."""
    watch = CpuLoadWatch()
    time.sleep(LOOK_SECONDS)
    return watch.read()
