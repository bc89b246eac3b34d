"""A traced program: what its copies took, by line, and what they could take."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from waywiser.analysis.trace.copy_lines import CopyLine
from waywiser.analysis.trace.patch_comparison import TraceComparison
from waywiser.analysis.trace.savings import LEAST_SHARE, AdvisedLine, PinningLine, TraceAdvice
from waywiser.curves import Subject, normal_paths
from waywiser.measure.trace.watch import WatchedProgram
from waywiser.profile import Trace
from waywiser.render.parts import Block, Section, Sheet, SheetColumn, Words, numbers
from waywiser.words import count, format_bytes, format_seconds

MOST_LINES = 12
"""Lines that are shown, those that save or take the most."""

SHOWN_SHARE = 0.001
"""The share of all copies' time below which a line is not shown."""

COLUMNS = (
    SheetColumn("line"),
    SheetColumn("copies", number=True, spared=2),
    SheetColumn("path", folds=True, most=24),
    SheetColumn("GB/s", number=True, spared=1),
    SheetColumn("time", number=True, spared=3),
    SheetColumn("exposed", number=True),
    SheetColumn("best here", folds=True, spared=5),
    SheetColumn("saves", number=True),
    SheetColumn("what to do", folds=True, most=24),
)
WITHOUT_PROFILE = "best here", "saves", "what to do"


def trace_parts(
    trace: Trace, found: TraceAdvice, *, everything: bool = False, profile: str = ""
) -> Iterator[Block | Section]:
    """The sum first, then a row for each line."""
    yield Words(headline_of(trace, found), "lead")
    shown = list(_shown(found, everything=everything))
    if shown:
        yield line_sheet(shown, has_advice=found.has_advice)
        if more := len(found.lines) - len(shown):
            yield Words(f"{count(more, 'line')} more with less time: --all", "note")
    if pinning := [each for each in found.pinning if everything or each.saved is not None]:
        yield pinning_sheet(pinning)
    for note in found.notes:
        yield Words(f"note: {note}", "note")
    if found.lines:
        yield from _how_to_read(found, profile)


def headline_of(trace: Trace, found: TraceAdvice) -> str:
    """``train.py: 41.2 s, 1.5 s in 80 copies, ...; about 1.25 s (3 %) can be saved``."""
    name = program_name(trace.command)
    if not trace.processes:
        return (
            f"{name}: {_seconds(trace.seconds)}; no process used a GPU, or none let the "
            "driver load the tracer"
        )
    on = f" on {count(found.gpus, 'GPU')}" if found.gpus else ""
    head = f"{name}: {_seconds(trace.seconds)}{on}"
    if found.processes > 1:
        head += f" in {count(found.processes, 'process')}; of the one with most exposed copies"
    if not found.copies:
        return f"{head}, no copy was seen"
    least = "at least " if found.dropped else ""
    what = f"{found.copies:,} {'copy' if found.copies == 1 else 'copies'}"
    text = f"{head}, {least}{_seconds(found.copy_seconds)} in {what}"
    if not found.are_kernels_known:
        return f"{text}; what ran beside them is not known"
    seen = "seen " if found.dropped else ""
    text += f", {_seconds(found.exposed_seconds)} of them with nothing else {seen}on the GPU"
    if found.saved is None:
        return text
    if not found.is_worth_doing:
        if found.saved_high < LEAST_SHARE * trace.seconds:
            return f"{text}; no saving is certain"
        return f"{text}; at most {_seconds(found.saved_high)} can be saved"
    share = found.saved / trace.seconds if trace.seconds > 0 else 0.0
    percent = f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
    return f"{text}; about {_seconds(found.saved)} ({percent}) can be saved"


def program_name(command: Iterable[str]) -> str:
    """``train.py`` of ``python train.py``; the command if it is no script."""
    words = list(command)
    scripts = [word for word in words[1:] if word.endswith(".py")]
    return os.path.basename(scripts[0] if scripts else words[0]) if words else "the program"


def line_sheet(
    lines: Iterable[AdvisedLine], *, has_advice: bool, omitted: Collection[str] = ()
) -> Sheet:
    """A row for each line; without a profile of the machine no columns of advice. Columns that are
    ``omitted`` are shown otherwise."""
    hidden = {*omitted, *(() if has_advice else WITHOUT_PROFILE)}
    kept = [n for n, column in enumerate(COLUMNS) if column.name not in hidden]
    rows = [[cells[n] for n in kept] for cells in map(_cells, lines)]
    return Sheet.of("", [COLUMNS[n] for n in kept], rows)


def _cells(advised: AdvisedLine) -> list[str]:
    line, best = advised.line, advised.best
    rate = line.rate
    saves = "–"
    if best is not None:
        saves = f"≤ {_seconds(best.high)}" if best.seconds is None else _seconds(best.seconds)
    return [
        line.place,
        f"{line.copies:,} × {_size(line)}",
        line.path,
        f"{rate / 1e9:.3g}" if rate is not None and line.size >= 4096 else "–",
        _seconds(line.time_seconds),
        _seconds(line.exposed_seconds),
        best.best if best is not None else "–",
        saves,
        best.what if best is not None else advised.why_not,
    ]


def _size(line: CopyLine) -> str:
    return format_bytes(line.size) if line.size and line.bytes % line.copies == 0 else (
        f"~{format_bytes(1 << max(line.size.bit_length() - 1, 0))}"
    )  # fmt: skip


def pinning_sheet(lines: Iterable[PinningLine]) -> Sheet:
    """A row for each line that pins memory."""
    rows = [
        [
            line.place,
            line.operation,
            f"{line.calls:,}",
            format_bytes(line.bytes),
            _seconds(line.seconds),
            _seconds(line.saved) if line.saved is not None else "–",
        ]
        for line in lines
    ]
    columns = ["line", "pinning", *numbers("calls", "bytes", "time", "saves if once")]
    return Sheet.of("Memory that is pinned", columns, rows)


def comparison_parts(found: TraceComparison) -> Iterator[Block | Section]:
    """A program before and now, line by line."""
    saved = found.exposed_before - found.exposed_now
    if found.reason:
        yield Words(f"not comparable: {found.reason}", "lead", tone="warning")
    yield Words(
        f"{_seconds(found.seconds_before)} before and {_seconds(found.seconds_now)} now; exposed "
        f"copies {_seconds(found.exposed_before)} before and {_seconds(found.exposed_now)} now: "
        f"{_seconds(abs(saved))} {'saved' if saved >= 0 else 'more'}",
        "lead",
    )
    columns = [
        "line", SheetColumn("path", folds=True),
        *numbers("exposed before", "now", "saved", "predicted"), "as predicted",
    ]  # fmt: skip
    rows = []
    for line in found.lines[:MOST_LINES]:
        verdict = {True: "yes", False: "no", None: "–"}[line.is_as_predicted]
        if not line.copies_now:
            verdict = "gone or moved"
        predicted = "–" if line.predicted is None else (
            f"{_seconds(line.predicted)} ({_seconds(line.predicted_low or 0.0)} to "
            f"{_seconds(line.predicted_high or 0.0)})"
        )  # fmt: skip
        rows.append([line.place, line.path, _seconds(line.exposed_before),
                     _seconds(line.exposed_now), _seconds(line.saved), predicted,
                     verdict])  # fmt: skip
    yield Sheet.of("", columns, rows)


def _shown(found: TraceAdvice, *, everything: bool) -> Iterator[AdvisedLine]:
    if everything:
        yield from found.lines
        return
    total = sum(each.line.time_seconds for each in found.lines)
    ranked = sorted(found.lines, key=_weight, reverse=True)[:MOST_LINES]
    for each in ranked:
        if _weight(each) >= SHOWN_SHARE * total:
            yield each


def _weight(advised: AdvisedLine) -> float:
    best = advised.best
    return max(advised.line.exposed_seconds, best.weight if best is not None else 0.0)


def _how_to_read(found: TraceAdvice, profile: str) -> Iterator[Block]:
    yield Words(
        "exposed: no kernel ran on that GPU during the copy, or the call that waits for it. Copies "
        "by kernels are not seen as copies.",
        "note",
    )
    if not found.has_advice and found.lines:
        yield Words(
            "What the copies would take is not known: waywiser survey -o node.wwp (a minute), then "
            "the same trace with --profile node.wwp",
            "note",
        )
    elif profile:
        yield Words(f"best here: by {profile}", "note")


def _seconds(seconds: float) -> str:
    if seconds < 0:
        return f"−{_seconds(-seconds)}"
    if seconds >= 100:
        return format_seconds(seconds)
    if seconds >= 0.01:
        return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{seconds * 1e3:.2g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def watched_parts(found: WatchedProgram, subject: Subject | None) -> Iterator[Block | Section]:
    """A program that runs: the traffic of its GPUs beside what the machine can do, and where its
    pages and threads are."""
    pages = ", ".join(f"{format_bytes(_rounded(size))} on numa:{node}"
                      for node, size in found.pages.items() if size >= 1 << 20)  # fmt: skip
    threads = ", ".join(
        f"{number} on {f'numa:{node}' if node >= 0 else 'CPUs of no known node'}"
        for node, number in found.threads.items()
    )
    yield Words(f"{found.command} (pid {found.pid}), watched for {found.seconds:.1f} s", "lead")
    if found.gpus:
        yield _traffic_sheet(found, subject)
    yield Words(f"memory: {pages or 'not known'}; threads last ran: {threads or 'not known'}")
    yield from (Words(text, "note") for text in _placed_apart(found))
    yield from (Words(f"note: {note}", "note") for note in found.notes)


def _rounded(size: int) -> int:
    """To whole MiB, which read better."""
    return max(size >> 20, 1) << 20


def _traffic_sheet(found: WatchedProgram, subject: Subject | None) -> Sheet:
    best = _best_rates(subject)
    columns = ["GPU", "node", *numbers("PCIe to", "PCIe from", "H2D", "D2H"),
               *numbers("best H2D", "best D2H"), *numbers("NVLink to", "NVLink from")]  # fmt: skip
    rows = []
    for gpu in found.gpus:
        to, back = best.get((gpu.gpu, "H2D")), best.get((gpu.gpu, "D2H"))
        rows.append([
            f"gpu:{gpu.gpu}", f"numa:{gpu.numa}" if gpu.numa >= 0 else "–",
            *map(_gb, (gpu.pcie_to, gpu.pcie_from, gpu.h2d, gpu.d2h, to, back,
                       gpu.nvlink_to, gpu.nvlink_from)),
        ])  # fmt: skip
    caption = (
        "GB/s of all programs that use the GPU. PCIe: with headers and requests of packets; H2D, "
        "D2H: copies of large blocks that make such counts; best: measured here."
    )
    return Sheet.of("", columns, rows, caption)


def _gb(rate: float | None) -> str:
    return "–" if rate is None else f"{rate / 1e9:.3g}"


def _best_rates(subject: Subject | None) -> dict[tuple[int, str], float]:
    """The bandwidth of each GPU's pinned copies at their largest size, by direction."""
    if subject is None:
        return {}
    found: dict[tuple[int, str], float] = {}
    for path in normal_paths(subject.machine, subject.curves, ()):
        gpus = [place for place in path.places if place.startswith("gpu:")]
        if path.path in ("H2D", "D2H") and len(gpus) == 1:
            key = int(gpus[0].removeprefix("gpu:")), path.path
            found[key] = max(found.get(key, 0.0), path.gb_per_s * 1e9)
    return found


def _placed_apart(found: WatchedProgram) -> Iterator[str]:
    """Pages and threads that are far from the program's GPUs."""
    near = {gpu.numa for gpu in found.gpus if gpu.numa >= 0}
    if not near or len(found.pages) < 2:
        return
    far = sum(size for node, size in found.pages.items() if node not in near)
    total = sum(found.pages.values())
    nodes = " and ".join(f"numa:{node}" for node in sorted(near))
    if total and far > 0.5 * total:
        yield (
            f"{far / total:.0%} of its memory is on other nodes than its GPUs ({nodes}): start it "
            f"with numactl --cpunodebind={min(near)} --membind={min(near)}"
        )
    number = sum(count for node, count in found.threads.items() if node not in near)
    if number > 0.5 * sum(found.threads.values()):
        yield f"{number} of its threads last ran on other nodes than its GPUs ({nodes})"
