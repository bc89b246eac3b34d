"""Where a value of a settings file comes from: the series, its size, its samples, its interval."""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.curves import Point, Subject
from waywiser.profile import Estimate
from waywiser.stats import Interval
from waywiser.version import __version__
from waywiser.words import Value, WaywiserError, count, format_rate, format_time

LEAST_LOSS = 0.005
"""Smaller differences are shown as none."""


class SettingsError(WaywiserError):
    """A profile that has nothing that a consumer reads, or an unknown consumer."""


class OmittedSetting(Value, frozen=True):
    """A setting that is left out."""

    name: str
    reason: str


def head_lines(subject: Subject, what: str) -> list[str]:
    """What the file is, and which machine it is of; no host name."""
    machine = subject.machine
    gpus = dict.fromkeys(gpu.name for gpu in machine.gpus)
    of = [
        f"{count(len(machine.gpus), 'GPU')} ({', '.join(gpus)})" if gpus else "no GPU",
        machine.cpu_model,
        f"driver {machine.driver}" if machine.driver else "",
    ]
    return [
        f"{what}, made by waywiser {__version__} from a profile.",
        f"Machine: {', '.join(filter(None, of))}.",
        "GB/s are 10^9 bytes per second. Intervals are of the median, with 95 % confidence.",
    ]


def omitted_lines(omitted: Iterable[OmittedSetting]) -> list[str]:
    return [f"Not set: {each.name}: {each.reason}." for each in omitted]


def commented(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def rate_origin(point: Point) -> str:
    """The measured bandwidth with its interval, and the series."""
    rate = point.measured.rate
    value = f"{point.rate_text} GB/s" if rate is not None else "no bandwidth"
    interval = rate.interval if rate is not None else None
    span = interval_text(interval, 1e9, "GB/s")
    return f"measured {value} ({span}, {samples_text(point.measured)}): {point.text}"


def time_origin(point: Point) -> str:
    """The measured time with its interval, and the series."""
    found = point.measured
    value = format_time(found.median, found.relative)
    span = interval_text(found.interval, 1e-6, "µs")
    return f"measured {value} ({span}, {samples_text(found)}): {point.text}"


def seen_rate_text(size: int, found: Estimate) -> str:
    """The bandwidth from call to completion, in GB/s."""
    return f"{format_rate(size / found.seen_median, found.seen_relative)} GB/s"


def interval_text(interval: Interval | None, unit: float, name: str) -> str:
    if interval is None:
        return "no interval"
    return f"{interval.low / unit:.4g} to {interval.high / unit:.4g} {name}"


def samples_text(found: Estimate) -> str:
    processes = len(found.blocks)
    return f"n = {found.count} in {processes} process{'es' if processes != 1 else ''}"


def longer_text(loss: float, than: str) -> str:
    """``at most 12 % longer than the kernel``; ``loss`` is a share of the other's time."""
    if loss < LEAST_LOSS:
        return f"no longer than {than}"
    if loss < 1:
        return f"at most {loss * 100:.0f} % longer than {than}"
    return f"at most {1 + loss:.1f} times as long as {than}"
