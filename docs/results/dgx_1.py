"""Writes docs/results/dgx-1.md: compares imported files of a DGX-1 with the thesis about them.

    python docs/results/dgx_1.py FOLDER

imports the folder (Google Benchmark JSON of github.com/cwpearson/ms-thesis, data/microbench at
8fe9f476) into a profile, answers the questions of the thesis chapter, and writes everything between
the marks of the page, and its figures. If the files are there, a test compares the page with them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from waywiser.analysis.questions import across, identical
from waywiser.curves.answer import Sheet, SheetCell
from waywiser.curves.curve import Curve
from waywiser.curves.regimes import BANDWIDTH_BYTES
from waywiser.curves.subject import Subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.render.figures.curves import Drawn, curves_picture
from waywiser.render.figures.render import svg_file
from waywiser.stats.decision import THRESHOLD
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate

HERE = Path(__file__).parent
PAGE = HERE / "dgx-1.md"
TOPOLOGY = HERE.parents[1] / "tests" / "captures" / "dgx-1.json"
BEGIN, END = "<!-- made -->\n", "<!-- end -->\n"

MIB, GIB = 2**20, 2**30
ENGINE = "by copy-engine[api=sync]"
SHOWN = tuple(2**n for n in (16, 18, 20, 22, 24, 26, 28, 30, 32, 33))
NOISY = 0.25
"""The difference of pageable copies between processes."""
MARKS = {"yes": "yes", "no": "no", "unclear": "not determined", "": ""}


class Imported(NamedTuple):
    """The machine, with the tables that it makes."""

    subject: Subject
    tables: tuple[Sheet, ...]

    def cells(self, title: str) -> dict[str, SheetCell]:
        table = next(table for table in self.tables if table.title == title)
        return {row.cells[0].text: row.cells[1] for row in table.rows}


Check = Callable[[Imported], tuple[bool, str]]


class Claim(NamedTuple):
    """One statement of the chapter, with its check."""

    where: str
    says: str
    found: Check
    """(whether it holds, what was found)."""


def imported(folder: Path) -> Imported:
    """Imports the folder as one profile of a DGX-1, with its topology."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "dgx-1.wwp"
        import_files([folder], target, machine="dgx-1", topology=TOPOLOGY)
        with Profile.open(target) as profile:
            subject = Subject.of(profile)
    return Imported(subject, across.tables([subject]))


# The statements of the chapter.


def mark(title: str, row: str, expected: str) -> Check:
    """Returns the check of the mark of a cell."""

    def found(imported: Imported) -> tuple[bool, str]:
        cell = imported.cells(title)[row]
        return cell.mark == expected, f"{shown(cell)} (`{cell.series}`)"

    return found


def shown(cell: SheetCell) -> str:
    """``yes, +45 %``: the mark as a word, then the text."""
    return ", ".join(filter(None, (MARKS[cell.mark], cell.text)))


def rate_at(imported: Imported, curve: str, size: int) -> float:
    """GB/s."""
    found = of(imported, curve).at(size)
    assert found is not None, (curve, size)
    return found.rate / 1e9


def of(imported: Imported, text: str) -> Curve:
    found = imported.subject.curve(text)
    assert found is not None, text
    return found


def two_gb_per_s(imported: Imported) -> tuple[bool, str]:
    there = rate_at(imported, f"pinned@numa:0 -> device@gpu:0 {ENGINE}", GIB)
    back = rate_at(imported, f"device@gpu:0 -> pinned@numa:0 {ENGINE}", GIB)
    text = f"{back - there:.2f} GB/s at 1 GiB: {there:.2f} to the GPU, {back:.2f} from it"
    return 1.5 <= abs(back - there) <= 2.5, text


def longer(a: Curve, b: Curve) -> dict[int, float]:
    """By size, by how much the first takes longer than the second."""
    return {
        point.bytes: point.seconds / other.seconds - 1
        for point in a.measured
        if (other := b.at(point.bytes)) is not None
    }


def to_gpu_is_faster(imported: Imported) -> tuple[bool, str]:
    effects = longer(
        of(imported, f"device@gpu:0 -> pageable@numa:0 {ENGINE}"),
        of(imported, f"pageable@numa:0 -> device@gpu:0 {ENGINE}"),
    )
    to_gpu = [size for size, effect in effects.items() if effect > NOISY]
    to_host = [size for size, effect in effects.items() if 1 / (1 + effect) - 1 > NOISY]
    return len(to_gpu) > len(to_host), (
        f"to the GPU faster at {runs(to_gpu)}; to the host at {runs(to_host)}"
    )


def runs(sizes: Sequence[int]) -> str:
    """``256 B to 1 KiB, 1 GiB``: sizes that follow one another by doubling."""
    found: list[list[int]] = []
    for size in sizes:
        if found and found[-1][1] * 2 == size:
            found[-1][1] = size
        else:
            found.append([size, size])
    result = [
        format_bytes(low) if low == high else f"{format_bytes(low)} to {format_bytes(high)}"
        for low, high in found
    ]
    return ", ".join(result) or "no size"


def across_sockets(imported: Imported) -> tuple[bool, str]:
    """Copies to the other socket are faster at intermediate sizes, slower at large ones."""
    effects = longer(
        of(imported, f"pageable@numa:0 -> pinned@numa:1 {ENGINE}"),
        of(imported, f"pageable@numa:0 -> pinned@numa:0 {ENGINE}"),
    )
    faster = [size for size, effect in effects.items() if 1 / (1 + effect) - 1 > NOISY]
    slower = [size for size, effect in effects.items() if effect > NOISY]
    holds = bool(faster) and bool(slower) and max(faster) < max(slower)
    return holds, f"faster at {runs(faster)}; slower at {runs(slower)}"


def peer_doubles(imported: Imported) -> tuple[bool, str]:
    result = []
    for gpu in (1, 2, 3):
        on = rate_at(imported, f"device@gpu:0 -> device@gpu:{gpu} {ENGINE}", GIB)
        off = "by copy-engine[api=sync,peer=off,submit=0]"
        result.append(on / rate_at(imported, f"device@gpu:0 -> device@gpu:{gpu} {off}", GIB))
    text = ", ".join(f"×{times:.2f}" for times in result)
    return all(1.7 <= times <= 2.3 for times in result), f"{text} at 1 GiB, to GPUs 1, 2 and 3"


def no_pinning_effect(imported: Imported) -> tuple[bool, str]:
    effects = []
    for gpu in range(4, 8):
        path = f"device@gpu:0 -> device@gpu:{gpu} by copy-engine[api=sync,peer=off,submit="
        found = longer(of(imported, f"{path}0]"), of(imported, f"{path}1]"))
        effects += [effect for size, effect in found.items() if size >= BANDWIDTH_BYTES]
    most = max(map(abs, effects))
    return most <= THRESHOLD, f"4 GPUs differ by at most {most:.1%} from 16 MiB on"


def slow_pair(imported: Imported) -> tuple[bool, str]:
    slow = [f for f in identical.answer(imported.subject).findings if f.id == "slow-path"]
    named = [[device.place for device in finding.devices] for finding in slow]
    text = slow[0].title.partition(" (gpu")[0] if slow else "no slow path"
    return ["gpu:0", "gpu:1"] in named, text


def pageable_falls(imported: Imported) -> tuple[bool, str]:
    best = max(point.rate for point in of(imported, DOWN).measured) / 1e9
    last = rate_at(imported, DOWN, 8 * GIB)
    host = rate_at(imported, f"pageable@numa:0 -> pinned@numa:0 {ENGINE}", 8 * GIB)
    up = rate_at(imported, UP, 8 * GIB)
    text = (
        f"at 8 GiB {up:.2f} to the GPU and {last:.2f} from it (at best {best:.2f}), between "
        f"host memories {host:.2f} GB/s"
    )
    return last < 0.5 * best and max(last, up) < host, text


def share_of_peak(imported: Imported) -> tuple[bool, str]:
    there = rate_at(imported, f"pinned@numa:0 -> device@gpu:0 {ENGINE}", GIB)
    back = rate_at(imported, f"device@gpu:0 -> pinned@numa:0 {ENGINE}", GIB)
    shares = [rate / 15.754 for rate in (there, back)]
    text = (
        f"{there:.2f} and {back:.2f} GB/s are {shares[0]:.0%} and {shares[1]:.0%} of the 15.75 "
        f"GB/s of PCIe 3 x16; of the 20 GB/s that the chapter uses {there / 20:.0%} and "
        f"{back / 20:.0%}"
    )
    return all(0.6 <= share <= 0.7 for share in shares), text


def write_combined_as_pinned(imported: Imported) -> tuple[bool, str]:
    effects = [
        effect
        for path in ("{}@numa:0 -> device@gpu:0", "device@gpu:0 -> {}@numa:0")
        for size, effect in longer(
            of(imported, f"{path.format('write-combined')} {ENGINE}"),
            of(imported, f"{path.format('pinned')} {ENGINE}"),
        ).items()
        if size >= BANDWIDTH_BYTES
    ]
    most = max(map(abs, effects))
    return most <= THRESHOLD, f"they differ by at most {most:.1%} from 16 MiB on"


UP = f"pageable@numa:0 -> device@gpu:0 {ENGINE}"
DOWN = f"device@gpu:0 -> pageable@numa:0 {ENGINE}"
REMOTE = f"device@gpu:0 -> pageable@numa:1 {ENGINE}"

AFFINITY, ANISOTROPY, IDENTICAL = "Affinity", "Anisotropy", "Differences between equivalent paths"
BY = "by copy-engine"

CLAIMS = (
    Claim("affinity", "pageable -> GPU: no", mark(AFFINITY, f"pageable -> GPU {BY}", "no")),
    Claim("affinity", "pageable <- GPU: no", mark(AFFINITY, f"GPU -> pageable {BY}", "no")),
    Claim("affinity", "pinned -> GPU: no", mark(AFFINITY, f"pinned -> GPU {BY}", "no")),
    Claim("affinity", "pinned <- GPU: no", mark(AFFINITY, f"GPU -> pinned {BY}", "no")),
    *(
        Claim(
            "anisotropy",
            f"{kind} <-> GPU ({near}): yes",
            mark(ANISOTROPY, f"{kind} <-> GPU {BY} ({near})", "yes"),
        )
        for kind in ("pageable", "pinned")
        for near in ("local", "remote")
    ),
    Claim("anisotropy", "pinned: 2 GB/s", two_gb_per_s),
    Claim("anisotropy", "pageable: to the GPU tends to be faster", to_gpu_is_faster),
    *(
        Claim(
            "CPU-GPU links differ",
            f"{says} ({near}): no",
            mark(IDENTICAL, f"{row} {BY} ({near})", "no"),
        )
        for says, row in (
            ("pageable -> GPU", "pageable -> GPU"),
            ("pageable <- GPU", "GPU -> pageable"),
            ("pinned -> GPU", "pinned -> GPU"),
            ("pinned <- GPU", "GPU -> pinned"),
        )
        for near in ("local", "remote")
    ),
    Claim(
        "GPU-GPU links differ",
        "local, peer on: no",
        mark(IDENTICAL, f"GPU -> GPU {BY} (NVLink ×1, local)", "no"),
    ),
    Claim(
        "GPU-GPU links differ",
        "local, peer off: yes",
        mark(IDENTICAL, f"GPU -> GPU {BY} (peer off, local, submitted locally)", "yes"),
    ),
    Claim(
        "GPU-GPU links differ",
        "remote, peer off: no",
        mark(
            IDENTICAL, f"GPU -> GPU {BY} (peer off, remote, submitted by the source's node)", "no"
        ),
    ),
    Claim(
        "GPU-GPU links differ",
        "peer off: GPU 0 to 1 is slower than to 2 and 3, which are equal",
        slow_pair,
    ),
    Claim("peer access", "about doubles local transfers", peer_doubles),
    Claim(
        "peer access",
        "off, remote: the NUMA node of the host thread has no effect",
        no_pinning_effect,
    ),
    Claim(
        "CPU-CPU copies",
        "to the other socket faster at intermediate sizes, slower at large ones",
        across_sockets,
    ),
    Claim("pageable copies", "fall at large sizes, below CPU-CPU copies", pageable_falls),
    Claim("pinned copies", "60–70 % of the PCIe 3 x16 bandwidth", share_of_peak),
    Claim("pinned copies", "write-combined as pinned", write_combined_as_pinned),
)

# The page.


def made(imported: Imported) -> str:
    """Writes the part between the marks of the page."""
    parts = [claims(imported), curves(imported), *map(markdown, imported.tables)]
    return "\n".join(parts)


def claims(imported: Imported) -> str:
    lines = ["| question | thesis chapter | agrees | Waywiser |", "|---|---|---|---|"]
    agreed = 0
    for claim in CLAIMS:
        holds, found = claim.found(imported)
        agreed += holds
        verdict = "yes" if holds else "**no**"
        lines.append(f"| {claim.where} | {claim.says} | {verdict} | {found} |")
    head = f"## Claim by claim: {agreed} of {len(CLAIMS)} agree\n"
    return "\n".join([head, *lines, ""])


def curves(imported: Imported) -> str:
    """Writes the bandwidths that are the evidence."""
    result = {
        "GPU 0 -> pageable, local": DOWN,
        "GPU 0 -> pageable, remote": REMOTE,
        "pageable, local -> GPU 0": UP,
        "GPU 0 -> pinned": f"device@gpu:0 -> pinned@numa:0 {ENGINE}",
        "pinned -> GPU 0": f"pinned@numa:0 -> device@gpu:0 {ENGINE}",
        "CPU 0 -> CPU 0": f"pageable@numa:0 -> pinned@numa:0 {ENGINE}",
        "CPU 0 -> CPU 1": f"pageable@numa:0 -> pinned@numa:1 {ENGINE}",
    }
    head = f"| GB/s at | {' | '.join(map(format_bytes, SHOWN))} |"
    lines = ["## The curves of these statements\n", head, "|---" * (len(SHOWN) + 1) + "|"]
    for name, text in result.items():
        found = of(imported, text)
        rates = [format_rate(p.rate, 0.01) if (p := found.at(n)) else "" for n in SHOWN]
        lines.append(f"| {name} | {' | '.join(rates)} |")
    return "\n".join([*lines, ""])


def markdown(table: Sheet) -> str:
    lines = [f"## {table.title}\n", table.caption, ""]
    lines.append(f"| {' | '.join(table.names)} |")
    lines.append("|---" * len(table.columns) + "|")
    for row in table.rows:
        lines.append("| " + " | ".join(map(shown, row.cells)) + " |")
    return "\n".join([*lines, ""])


def figures(imported: Imported) -> dict[str, str]:
    """Draws the curves of the two disagreements, by file name."""
    result = {
        "dgx-1-pageable.svg": ("GPU 0 to pageable memory", {"local": DOWN, "remote": REMOTE}),
        "dgx-1-pinned.svg": (
            "Pinned memory and GPU 0",
            {
                "to the GPU": f"pinned@numa:0 -> device@gpu:0 {ENGINE}",
                "from the GPU": f"device@gpu:0 -> pinned@numa:0 {ENGINE}",
            },
        ),
    }
    found = {}
    for name, (title, drawn) in result.items():
        lines = [
            Drawn.of(label, of(imported, text).measured, number)
            for number, (label, text) in enumerate(drawn.items())
        ]
        found[name] = svg_file(curves_picture(name, title, lines, "bandwidth"))
    return found


def current(page: str, imported: Imported) -> str:
    """Returns the page with a new part between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{made(imported)}{END}{tail}"


if __name__ == "__main__":
    result = imported(Path(sys.argv[1]))
    PAGE.write_text(current(PAGE.read_text(), result))
    for file, drawing in figures(result).items():
        (HERE / file).write_text(drawing)
