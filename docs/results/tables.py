"""Writes the tables of a results page from the profiles beside it.

    python docs/results/tables.py docs/results/2026-11-20-h200/README.md

Between ``<!-- PROFILE | CURVE -->`` and ``<!-- end -->`` stands the table of one curve, which is
made anew. PROFILE is a file beside the page, compressed by xz. A test checks that pages are
current.
"""

from __future__ import annotations

import lzma
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from waywiser.machine.bounds import bound
from waywiser.machine.machine import Machine
from waywiser.profile import Profile
from waywiser.profile.estimate import Estimate, estimate
from waywiser.words import format_bytes
from waywiser.words.records import Series, Unsupported

BLOCK = re.compile(r"(<!-- (\S+) \| (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| size | time | ± | GB/s | of bound | application sees | n | stopped |\n"
RULE = "|---" * 8 + "|\n"
LARGE = 64 * 2**10
"""From here on a rate says more than a time."""


@cache
def read(file: Path) -> tuple[Machine, tuple[Series, ...], tuple[Unsupported, ...]]:
    """The machine, the series and the unsupported paths of a compressed profile."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "profile.wwp"
        plain.write_bytes(lzma.decompress(file.read_bytes()))
        with Profile.open(plain) as profile:
            return profile.machine, tuple(profile.series()), tuple(profile.unsupported_paths)


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.4g} ms"


def row(machine: Machine, series: Series, result: Estimate) -> str:
    size = series.workload.bytes // max(len(series.workload.transfers), 1)
    rate = series.workload.bytes / result.median
    peak = bound(machine, series.workload) if series.workload.bytes else None
    large = size >= LARGE
    cells = (
        format_bytes(size) if size else "",
        microseconds(result.median),
        "" if result.relative is None else f"{result.relative:.1%}",
        f"{rate / 1e9:.4g}" if large else "",
        f"{rate / peak.bytes_per_second:.0%}" if peak and large else "",
        microseconds(result.host_median) if result.host_median else "",
        f"{result.count} in {len(result.blocks)}",
        result.stop,
    )
    return "| " + " | ".join(cells) + " |\n"


def table(file: Path, curve: str) -> Iterator[str]:
    machine, everything, _ = read(file)
    found = [series for series in everything if series.workload.curve == curve]
    if not found:
        raise SystemExit(f"{file}: no curve {curve!r}")
    for series in sorted(found, key=lambda one: one.workload.bytes):
        result = estimate(series, machine)
        if result is not None:
            yield row(machine, series, result)


def current(page: Path) -> str:
    """The page with its tables made anew."""

    def made(match: re.Match[str]) -> str:
        return match[1] + HEAD + RULE + "".join(table(page.parent / match[2], match[3])) + match[4]

    return BLOCK.sub(made, page.read_text())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(current(Path(name)))
