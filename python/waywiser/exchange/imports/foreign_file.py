"""What a foreign file says, in Waywiser's words, before it is a profile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from waywiser.words import TimingMode, Value, Workload
from waywiser.words.records import Failure, Samples, Unsupported


class ForeignSeries(Value, frozen=True):
    """One set of repetitions of one foreign benchmark that has a counterpart here."""

    name: str
    """The benchmark's own, size included."""
    family: str
    """The name without sizes and places."""
    workload: Workload
    mode: TimingMode
    samples: Samples = Samples()
    failure: Failure | None = None
    """Why there are no samples, as the other tool says."""
    notes: tuple[str, ...] = ()
    """What was assumed or converted, one line each."""
    deviation: float = 0.0
    """Relative standard deviation of repetitions that are not there, as the tool gives it; 0 if
    it does not."""
    settings: tuple[str, ...] | None = None
    """What else its command says that can change what is measured, and that no other word of the
    series names: runs that differ in it are no blocks. None if its command is not known."""

    def noted(self, *notes: str) -> ForeignSeries:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))


class HalfSeries(Value, frozen=True):
    """One direction of copies in both directions, whose other direction is a case of its own."""

    case: str
    other: str
    """The case with the other direction."""
    named_after: str
    """The case of the two that the whole is named after."""
    series: ForeignSeries
    """The whole, with samples of nothing yet."""
    seconds: tuple[float, ...]
    """Those of each transfer; 0 for the ones of the other direction."""


class ForeignGpu(Value, frozen=True):
    """A GPU as a file names it."""

    index: int
    name: str = ""
    pci: str = ""
    """``0000:1b:00.0``; empty if the file does not say."""
    host: str = ""
    """Name of the host that it is in; empty if the file does not say."""


class ForeignFile(Value, frozen=True):
    """All that one file says."""

    format: str
    """A key of `waywiser.exchange.imports.detect.FORMATS`."""
    tool: str
    """What wrote it, if it says so: ``nvbandwidth``, ``Google Benchmark``."""
    version: str = ""
    date: str = ""
    """As written in the file; empty if it has none."""
    started: str = ""
    """The same as ISO 8601, in UTC if the file gives its time zone; empty without a date."""
    hostname: str = ""
    runtime: Literal["", "hip"] = ""
    """The runtime that it called, if its calls are not CUDA's."""
    driver: str = ""
    cuda_driver: str = ""
    gpus: tuple[ForeignGpu, ...] = ()
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What else the file says of how it was made, under its own names."""
    measured: tuple[ForeignSeries, ...] = ()
    unsupported_paths: tuple[Unsupported, ...] = ()
    """Benchmarks without a counterpart here, each with the reason."""
    halves: tuple[HalfSeries, ...] = ()
    """Cases with one direction of two, until the files are joined."""
    notes: tuple[str, ...] = ()
    """What was done to the whole text before it was read, one line each."""


def hosts_of(gpus: Iterable[ForeignGpu]) -> list[str]:
    """The hosts of GPUs, each once, in alphabetical order."""
    return sorted({gpu.host for gpu in gpus if gpu.host})


def only_host(gpus: Iterable[ForeignGpu]) -> str:
    """The host that all GPUs are in; empty if they are in several, or none is named."""
    hosts = hosts_of(gpus)
    return hosts[0] if len(hosts) == 1 else ""


ALREADY_IMPORTED = "it makes the same transfers as a case above it, which is imported"


def without_mixed_operations(found: ForeignFile) -> ForeignFile:
    """The same without series whose workload an earlier benchmark of another name has.

    Repetitions of one benchmark are blocks of a series. Two benchmarks are not, even if both have
    the same counterpart here: their median would be a figure that was never measured.
    """
    names: dict[tuple[str, tuple[str, ...] | None], str] = {}
    measured: list[ForeignSeries] = []
    mixed: dict[str, Unsupported] = {}
    for each in found.measured:
        first = names.setdefault((each.workload.identity, each.settings), each.name)
        if first == each.name:
            measured.append(each)
        else:
            mixed.setdefault(each.name, Unsupported(each.name, ALREADY_IMPORTED))
    if not mixed:
        return found
    unsupported = (*found.unsupported_paths, *mixed.values())
    return replace(found, measured=tuple(measured), unsupported_paths=unsupported)
