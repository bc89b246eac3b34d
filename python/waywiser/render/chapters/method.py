"""How the numbers were made, on what, and how to cite them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from waywiser.curves import imported_from
from waywiser.machine import machine_line
from waywiser.render.entry import Entry
from waywiser.render.origin import imported_files, when
from waywiser.render.parts import Block, Code, Section, Sheet, SheetColumn, Words, numbers
from waywiser.version import __version__
from waywiser.words import by_wording, count, counted, format_bytes, format_time, json_text

HOW = (
    "A rate is the bytes of a workload over the median time of one execution; rates are never "
    "averaged. GB/s are 10⁹ bytes per second, sizes are in KiB, MiB and GiB. All samples are kept "
    "in the profile, outliers among them. Of five and more processes, one that is more than five "
    "robust deviations and 3 % from the median is in no figure.",
    "± is half of the 95 % confidence interval of the median, over the median, from order "
    "statistics: no distribution is assumed. It is as wide as samples of a process may depend on "
    "each other; if they may be fewer than ten autocorrelation times, tables say 'one process' and "
    "no ±. With fewer than six blocks it is about the process that was measured (the hull of its "
    "blocks' intervals) and says nothing of another one; from six on it is about medians of "
    "blocks, and so about processes.",
    "A bound is what the narrowest link of a path can carry at best: line encoding is taken off, "
    "protocol is not.",
)

VERIFIED = "The bytes of every series were verified before its first and after its last sample."
"""What holds of surveys alone: other results do not say what their tools checked."""

SOURCES = (
    "After Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems (SC'15); "
    "intervals after Hahn and Meeker, Statistical Intervals (1991). The project's methodology page "
    "has every rule with its source."
)


def method(entries: Sequence[Entry]) -> Section:
    surveyed = any(entry.subject.origin == "surveyed" for entry in entries)
    how = (*HOW, VERIFIED) if surveyed else HOW
    blocks: list[Block] = [*map(Words, how), Words(SOURCES, "note"), _numbers(entries)]
    below = [Section("environment", "Environment", (_environment(entries),))]
    below.append(Section("runs", "Runs", (_runs(entries), *imported_files(entries))))
    below.append(Section("cite", "To cite", (Code("\n".join(map(citation, entries))),)))
    return Section("method", "Method and environment", tuple(blocks), tuple(below))


def citation(entry: Entry) -> str:
    """One line: tool and version, machine, date, sizes, samples, kind of interval."""
    seen = entry.subject.overview
    known = [line for line in seen.series if line.estimate is not None]
    sizes = sorted({line.bytes for line in known if line.bytes})
    span = f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}" if sizes else "no sizes"
    samples = sum(line.estimate.count for line in known if line.estimate)
    known_estimates = [line.estimate for line in known if line.estimate and line.estimate.interval]
    kinds = sorted({found.kind for found in known_estimates}, reverse=True)
    tool = f"Waywiser {seen.runs[-1].version if seen.runs else __version__}"
    tools = imported_from(entry.subject.environment)
    if tools:
        tool = f"{', '.join(tools)}, imported by {tool}"
    interval = f"95 % intervals of medians {' and '.join(kinds)}" if kinds else "no intervals"
    machine = machine_line(entry.subject.machine, host=False)
    return (
        f"{tool}, {entry.name} ({machine}), {when(entry) or 'undated'}: "
        f"{f'{entry.preset} survey, ' if entry.preset else ''}{count(len(known), 'series')} of "
        f"{count(seen.summary.curves, 'curve')}, {span}, n = {samples}, {interval}."
    )


def _numbers(entries: Sequence[Entry]) -> Sheet:
    rows: dict[str, Callable[[Entry], str]] = {
        "curves": lambda e: str(e.subject.overview.summary.curves),
        "series": lambda e: str(e.subject.overview.summary.series),
        "converged": lambda e: str(e.subject.overview.summary.converged),
        "did not converge": lambda e: str(e.subject.overview.summary.not_converged),
        "failed": lambda e: str(e.subject.overview.summary.failed),
        "not supported when measured": lambda e: str(e.subject.overview.summary.unsupported),
        "skipped with a reason": lambda e: str(e.subject.overview.summary.skipped),
        "not supported": _not_supported,
        "blocks of a series, median": lambda e: f"{e.subject.overview.summary.blocks:g}",
        "time of measuring": _time_of_measuring,
    }
    return Sheet.of(
        "How much was measured",
        ("", *numbers(*(entry.name for entry in entries))),
        ((name, *map(of, entries)) for name, of in rows.items()),
    )


def _time_of_measuring(entry: Entry) -> str:
    """How long a survey took; other tools do not say."""
    if entry.subject.origin == "imported":
        return "unknown"
    return format_time(entry.subject.overview.summary.seconds, 0.005)


def _not_supported(entry: Entry) -> str:
    """``20 paths and 509 pairs of memories``; ``0`` if all was supported."""
    groups = entry.subject.overview.unsupported_paths
    return counted([member for group in groups for member in group.members]) or "0"


def _environment(entries: Sequence[Entry]) -> Sheet:
    all_facts = [dict(_facts(entry)) for entry in entries]
    names = dict.fromkeys(name for facts in all_facts for name in facts)
    return Sheet.of(
        "What could explain a number",
        ("", *(entry.name for entry in entries)),
        ((name, *(facts.get(name, "unknown") for facts in all_facts)) for name in names),
    )


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    machine = entry.subject.machine
    yield "machine", machine_line(machine, host=False)
    yield "virtual", machine.virtual or "no hypervisor seen"
    for gpu in machine.gpus:
        yield f"gpu:{gpu.index}", ", ".join(filter(None, (gpu.name, gpu.pci, gpu.uuid)))
    for line, _ in by_wording(machine.notes):
        yield "note of the topology", line
    for name, value in entry.subject.environment.items():
        if name == "imported":
            continue  # shown under Runs, a row for each file
        yield name.replace("_", " "), _value(name, value)


def _value(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**30:.1f} GiB" if value >= 2**30 else format_bytes(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return value or "unknown"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(key, each)}" for key, each in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(_value("", each) for each in value) or "none"
    return json_text(value)


def _runs(entries: Sequence[Entry]) -> Sheet:
    several = len(entries) > 1
    number = SheetColumn("run", number=True)
    return Sheet.of(
        "Calls that wrote the profiles",
        ("profile", number, "started (UTC)", "ended (UTC)", "version", "command"),
        (
            (
                entry.name if several else entry.subject.overview.profile,
                str(run.number),
                run.started[:19].replace("T", " "),
                (run.ended or "was not ended")[:19].replace("T", " "),
                run.version,
                " ".join(run.command),
            )
            for entry in entries
            for run in entry.subject.overview.runs
        ),
    )
