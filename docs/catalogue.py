"""Writes ``docs/catalogue.md``: everything that can be measured, from the registry, and what the
literature measures, row by row, with the command and the figure.

    python docs/catalogue.py > docs/catalogue.md

The rows are in ``catalogue.toml``. Their figures are looked up in all profiles under ``results``:
first those of the GPU that the page is about, newest first. A curve that no profile holds is shown
as not measured yet, or with what a machine needs for it. Tests check that the page is current, that
no kept profile holds a curve that is shown as not measured, and that each row's command selects
what the row shows.
"""

from __future__ import annotations

import lzma
import math
import tempfile
from collections.abc import Iterator, Sequence, Set
from functools import cache
from pathlib import Path

import msgspec

from waywiser.machine.catalogue import (
    ExecutorKind,
    MemoryKind,
    OperationKind,
    Parameter,
    list_executors,
    list_memories,
    list_operations,
)
from waywiser.machine.machine import Machine
from waywiser.profile import Profile
from waywiser.profile.estimate import Estimate, estimate
from waywiser.words import format_bytes, parse_bytes
from waywiser.words.grouping import grouped
from waywiser.words.records import Series, Unsupported

DOCS = Path(__file__).parent
NOT_YET = "not measured yet"
GPU = "NVIDIA H200"
"""The GPU of the figures; a figure of another one names it."""
MAKER = "NVIDIA"
"""The names of real GPUs begin with it, and those of the fake one do not."""


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """One primitive of the literature."""

    literature: str
    only: str
    """The pattern of ``--only`` that selects it."""
    curves: list[str]
    """Texts of curves, the most informative first."""
    bytes: str = ""
    """At which size; empty for operations."""
    options: str = ""
    """Further options of the command."""
    elsewhere: str = ""
    """What a machine needs for those of its curves that none of the measured ones could show."""


class Rows(msgspec.Struct, forbid_unknown_fields=True):
    row: list[Row]


def rows() -> list[Row]:
    return msgspec.toml.decode((DOCS / "catalogue.toml").read_bytes(), type=Rows).row


def command(row: Row) -> str:
    options = f" {row.options}" if row.options else ""
    return f"waywiser survey{options} --only '{row.only}'"


class Measured(msgspec.Struct):
    """What one kept profile holds."""

    machine: Machine
    is_of_catalogue: bool
    """Whether it was measured for this page: its folder says so."""
    series: dict[str, dict[int, Series]]
    """By the text of the curve, then by size."""
    unsupported_paths: dict[str, Unsupported]

    @property
    def gpu(self) -> str:
        """The model of its GPUs."""
        return self.machine.gpus[0].name


@cache
def measured() -> list[Measured]:
    """All kept profiles of real GPUs: first those of `GPU`, then newest first, and those of fewer
    GPUs before those of more."""
    found = []
    shown_curves = {curve for row in rows() for curve in row.curves}
    for file in sorted(kept_profiles(), key=lambda file: _folder(file), reverse=True):
        machine, everything, unsupported_paths = _read(file, shown_curves)
        if not machine.simulated and machine.gpus and machine.gpus[0].name.startswith(MAKER):
            by_text: dict[str, dict[int, Series]] = {}
            for one in everything:
                by_text.setdefault(one.workload.curve, {})[_size(one)] = one
            own = "catalogue" in _folder(file)
            found.append(
                Measured(machine, own, by_text, {one.path: one for one in unsupported_paths})
            )
    return sorted(found, key=lambda one: (one.gpu != GPU, len(one.machine.gpus)))


def _read(packed: Path, curves: Set[str]) -> tuple[Machine, list[Series], tuple[Unsupported, ...]]:
    """The machine of a compressed profile, the series of these curves, the unsupported paths."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "profile.wwp"
        plain.write_bytes(lzma.decompress(packed.read_bytes()))
        with Profile.open(plain) as profile:
            visits = profile.rows_by_series()
            known = [each.identity for each in profile.series_rows(visits) if each.curve in curves]
            series = [
                Series(workload, tuple(profile.visit_of(row, workload) for row in visits[identity]))
                for identity, workload in profile.workloads_of(known).items()
            ]
            return profile.machine, series, tuple(profile.unsupported_paths)


def kept_profiles() -> list[Path]:
    """All of them, by path."""
    return sorted((DOCS / "results").rglob("*.wwp.xz"))


def _folder(file: Path) -> str:
    """The folder with the date."""
    return file.relative_to(DOCS / "results").parts[0]


def _size(series: Series) -> int:
    transfers = series.workload.transfers
    return transfers[0].bytes if transfers else 0


def figure(curve: str, size: int, profiles: Sequence[Measured], elsewhere: str = "") -> str:
    """Median, interval and number of samples of a curve: of `GPU` before others, then at the size
    before the nearest other size, then of the profiles for this page before others, then of the
    most blocks, then from the first profile. The text names another GPU and another size. The
    reason if it is not supported or failed in all profiles; ``elsewhere`` if none has it."""
    known = grouped(
        ((profile.gpu != GPU, abs(math.log2((at or 1) / (size or 1))), not profile.is_of_catalogue),
         (profile, at, series))
        for profile in profiles
        for at, series in profile.series.get(curve, {}).items()
    )  # fmt: skip
    for _, equal in sorted(known.items()):
        found = [(p, at, e) for p, at, one in equal if (e := estimate(one, p.machine)) is not None]
        if found:
            profile, at, shown = max(found, key=lambda one: len(one[2].blocks))
            where = [] if profile.gpu == GPU else [f"on {profile.gpu}"]
            where += [] if at == size else [f"at {format_bytes(at)}"]
            return ", ".join([_shown(shown), *where])
    for profile in profiles:
        if unsupported := profile.unsupported_paths.get(curve):
            return f"not supported: {unsupported.reason}"
        failed = profile.series.get(curve, {}).get(size)
        if failed is not None and failed.failure is not None:
            return f"{failed.failure.kind}: {failed.failure.reason}"
    return f"needs {elsewhere}" if elsewhere else NOT_YET


def _shown(found: Estimate) -> str:
    within = "" if found.relative is None else f" ± {found.relative:.1%}"
    n = f"n = {found.count} in {len(found.blocks)}"
    if found.rate is not None:
        return f"{found.rate.value / 1e9:.4g} GB/s{within} ({n})"
    return f"{_seconds(found.median)}{within} ({n})"


def _seconds(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def document() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines()).strip() + "\n"


def _lines() -> Iterator[str]:
    yield "# The catalogue"
    yield ""
    yield "<!-- Made by `python docs/catalogue.py > docs/catalogue.md`; a test checks it. -->"
    yield ""
    yield "Everything that Waywiser measures, as its registry lists it. A path is any pair of"
    yield "memories and an executor that serves it; direction, both directions at once, sets of"
    yield "paths, sizes and cache states are data of a plan. `waywiser survey --list` prints"
    yield "the same."
    yield ""
    yield from _literature()
    yield "## Executors: who moves the bytes"
    yield ""
    for executor in list_executors():
        yield from _entry(executor, _facts(executor))
    yield "## Memories: kinds, and where they are"
    yield ""
    for memory in list_memories():
        needs = " Needs a GPU." if memory.needs_gpu else ""
        yield from _entry(memory, [f"At {_places(memory.places)}.{needs}"])
    yield "## Operations: what costs time and moves no bytes"
    yield ""
    for operation in list_operations():
        by = "events of the device" if operation.timing == "device" else "the host's clock"
        yield from _entry(operation, [f"At {_places(operation.places)}; timed by {by}."])


def _facts(executor: ExecutorKind) -> list[str]:
    """What the registry declares of an executor beside its description."""
    facts = [
        f"Layouts: {', '.join(executor.layouts)}.",
        f"Family: {executor.traits.family}.",
    ]
    if shares := executor.traits.shares:
        facts.append(f"Shares with other work: {', '.join(shares)}.")
    if executor.traits.bystander:
        facts.append("A bystander: surveys measure it at one size, and beside large copies.")
    if alternative := executor.traits.alternative:
        facts.append(f"Compared with `{alternative.executor}`: {alternative.question}.")
    return facts


def _literature() -> Iterator[str]:
    yield "## What the literature measures"
    yield ""
    yield "Figures are medians with 95 % intervals on NVIDIA H200 unless another GPU is named, from"
    yield "surveys of the whole catalogue, or else from other [results](results/README.md). GB/s is"
    yield "10⁹ bytes per second, of all transfers of a set together."
    yield ""
    yield "| in the literature | command | curve | on H200 |"
    yield "|---|---|---|---|"
    profiles = measured()
    for row in rows():
        size = parse_bytes(row.bytes) if row.bytes else 0
        for number, curve in enumerate(row.curves):
            first = (_cell(row.literature), f"`{_cell(command(row))}`") if number == 0 else ("", "")
            at = f", {format_bytes(size)}" if size else ""
            found = figure(curve, size, profiles, row.elsewhere)
            cells = (*first, f"`{_cell(curve)}`{at}", _cell(found))
            yield "| " + " | ".join(cells) + " |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _entry(kind: ExecutorKind | MemoryKind | OperationKind, facts: list[str]) -> Iterator[str]:
    yield f"### `{kind.name}`"
    yield ""
    yield f"{kind.description[:1].upper()}{kind.description[1:]}. {' '.join(facts)}"
    yield ""
    if kind.parameters:
        yield from _parameters(kind.parameters)
    yield f"Source: {kind.source}."
    yield ""


def _parameters(parameters: Sequence[Parameter]) -> Iterator[str]:
    yield "| setting | what | values, the default first |"
    yield "|---|---|---|"
    for parameter in parameters:
        values = ", ".join(f"`{choice}`" for choice in parameter.choices)
        yield f"| `{parameter.name}` | {_cell(parameter.description)} | {values} |"
    yield ""


def _places(kinds: Sequence[str]) -> str:
    return " or ".join("`file:NAME`" if kind == "file" else f"`{kind}:N`" for kind in kinds)


if __name__ == "__main__":
    print(document(), end="")
