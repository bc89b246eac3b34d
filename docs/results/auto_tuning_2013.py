"""Writes docs/results/auto-tuning-2013.md: the figures of a paper of 2013 on today's machines.

    python docs/results/auto_tuning_2013.py [FOLDER]

The paper is "Auto-tuning of data communication on heterogeneous systems". The part between the
first marks, and the figures, are made from the profiles beside the page. The part about a DGX-1 is
made from the imported files of FOLDER (see dgx_1.py), and stays as it is without them.

Numbers and sizes of buffers are those of the grids of staged copies, which ``scripts/gpu-check``
records. Tests compare the page with what the script makes.
"""

from __future__ import annotations

import importlib.util
import lzma
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.analysis.questions.pair_answers import slower_text
from waywiser.analysis.questions.placement import PlacementRank
from waywiser.analysis.questions.placement_answer import placement
from waywiser.analysis.questions.placement_text import cost_text, rounded_up
from waywiser.analysis.questions.together import found_together
from waywiser.curves.curve import Curve, Point
from waywiser.curves.subject import Subject
from waywiser.curves.texts import percent
from waywiser.measure.tune.run import TuneNote
from waywiser.measure.tune.search import Configuration, SearchAxis
from waywiser.profile import Profile
from waywiser.profile.planned import TUNING
from waywiser.render.figures.curves import Drawn, curves_picture
from waywiser.render.figures.render import svg_file
from waywiser.stats.order import median
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate

HERE = Path(__file__).parent
PAGE = HERE / "auto-tuning-2013.md"
BEGIN, END = "<!-- made -->\n", "<!-- end -->\n"
BEGIN_DGX, END_DGX = "<!-- made from a DGX-1 -->\n", "<!-- end of a DGX-1 -->\n"

H200 = "2026-11-23-surveys/h200-standard-3"
H100 = "2026-11-23-surveys/h100-standard-1"
FOUR = "2026-11-20-h200-catalogue/four-gpus/standard"
TWO = "2026-11-26-catalogue/two-gpus"
NAMES = {H200: "one H200", H100: "one H100", FOUR: "four H200", TWO: "two H200"}
GRIDS = "grid-staged-*.wwp.xz"
SETTINGS = {
    "chunk": "`chunk`: bytes of a buffer",
    "slots": "`slots`: buffers for each thread",
    "threads": "`threads`",
}

MIB = 2**20
SHOWN = tuple(2**n for n in range(12, 31, 2))
"""Sizes in the tables of percentages."""

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
TO_GPU = "pageable@numa:0 -> device@gpu:0 by "
FROM_GPU = "device@gpu:0 -> pageable@numa:0 by "
P2P_ENDS = "device@gpu:0 -> device@gpu:1"
P2P = f"{P2P_ENDS} by copy-engine"
READ = "file@file:scratch -> {} by {}"
WRITE = "{} -> file@file:scratch by {}"


class Comparison(NamedTuple):
    """Curves of one profile that a figure of the paper compares."""

    file: str
    """The name of the figure."""
    title: str
    profile: str
    curves: Mapping[str, str]
    """The text of each curve by its name."""


COMPARISONS = (
    Comparison(
        "auto-tuning-peer-access.svg",
        "GPU 0 to GPU 1, four H200",
        FOUR,
        {"peer access (NVSwitch)": P2P, "through the host": f"{P2P}[peer=off]"},
    ),
    Comparison(
        "auto-tuning-to-gpu.svg",
        "Pageable memory to the GPU, one H200",
        H200,
        {
            "pinned memory": H2D,
            "pageable copy": f"{TO_GPU}copy-engine",
            "staged (double buffering)": f"{TO_GPU}staged",
        },
    ),
    Comparison(
        "auto-tuning-from-gpu.svg",
        "GPU to pageable memory, one H200",
        H200,
        {
            "pinned memory": D2H,
            "pageable copy": f"{FROM_GPU}copy-engine",
            "staged (double buffering)": f"{FROM_GPU}staged",
        },
    ),
)


@cache
def kept(name: str) -> Subject:
    """A profile beside the page."""
    return read(HERE / f"{name}.wwp.xz")


def read(packed: Path) -> Subject:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "profile.wwp"
        file.write_bytes(lzma.decompress(packed.read_bytes()))
        with Profile.open(file) as profile:
            return Subject.of(profile)


class StagedGrid(NamedTuple):
    """The bandwidth of every configuration of a staged copy."""

    path: str
    bytes: int
    axes: tuple[SearchAxis, ...]
    rates: Mapping[Configuration, float]
    """The default configuration first."""
    plain: float
    """The bandwidth of the pageable copy."""

    @property
    def name(self) -> str:
        return "to the GPU" if self.path.startswith(TO_GPU) else "from the GPU"

    def axes_of(self, parameter: str) -> tuple[str, ...]:
        """The values of a parameter in order."""
        return next(axis.ascending for axis in self.axes if axis.name == parameter)

    def over(self, parameter: str) -> dict[str, float]:
        """The bandwidth by the values of a parameter, each with its own best other settings."""
        (index,) = (n for n, axis in enumerate(self.axes) if axis.name == parameter)
        return {
            value: max(rate for c, rate in self.rates.items() if c[index] == value)
            for value in self.axes[index].ascending
        }

    def gains(self, parameter: str, one: str, other: str, **fixed: str) -> list[float]:
        """What one value gains over another with the same other settings."""
        names = [axis.name for axis in self.axes]
        index = names.index(parameter)
        return [
            self.rates[(*c[:index], other, *c[index + 1 :])] / rate
            for c, rate in self.rates.items()
            if c[index] == one
            and all(c[names.index(name)] == value for name, value in fixed.items())
        ]


@cache
def grids() -> tuple[StagedGrid, ...]:
    """The grids of staged copies beside the page: first that to the GPU."""
    files = sorted(HERE.rglob(GRIDS), reverse=True)
    return tuple(grid for file in files for grid in staged_grids(file))


def staged_grids(packed: Path) -> Iterator[StagedGrid]:
    subject = read(packed)
    points = {
        point.workload.identity: point for curve in subject.curves for point in curve.measured
    }
    note = msgspec.convert(subject.environment[TUNING], TuneNote)
    for grid in note.grids:
        default = points[grid.default]
        rates = {values: points[series].rate for series, values in grid.configurations.items()}
        assert default.workload.transfer is not None
        path = default.workload.transfer.path
        plain = at(
            subject, str(msgspec.structs.replace(path, executor="copy-engine")), default.bytes
        )
        yield StagedGrid(str(path), default.bytes, grid.axes, rates, plain.rate)


def of(subject: Subject, text: str) -> Curve:
    found = subject.curve(text)
    assert found is not None, text
    return found


def at(subject: Subject, text: str, size: int) -> Point:
    found = of(subject, text).at(size)
    assert found is not None, (text, size)
    return found


def largest(one: Curve, other: Curve) -> tuple[Point, Point]:
    """The points at the largest size that both have."""
    size = max({p.bytes for p in one.measured} & {p.bytes for p in other.measured})
    first, second = one.at(size), other.at(size)
    assert first is not None and second is not None
    return first, second


# The figures of the paper, one by one.

Found = Callable[[], Iterable[str]]


class Figure(NamedTuple):
    """What a figure of the paper shows, and what is measured today."""

    where: str
    then: str
    """The statement of the paper."""
    today: Found
    """Sentences with what was measured; none if nothing is measured yet."""
    missing: str = ""
    """What would have to be measured."""


def both_directions() -> Iterator[str]:
    for name in (H200, H100):
        subject = kept(name)
        for each in found_together(subject)[0]:
            if each.is_duplex and each.transfers[0].way in (H2D, D2H):
                rate = format_rate(each.point.rate, 0.01)
                yield (
                    f"{NAMES[name]}: both directions together {rate} GB/s, "
                    f"{each.share:.0%} of the sum at {format_bytes(each.transfers[0].bytes)}"
                )


def hidden_nodes() -> Iterator[str]:
    for spread in placement(kept(FOUR)).spreads:
        yield (
            f"four H200, {spread.transfer}: the slowest process has "
            f"{percent(spread.spread)} less bandwidth than the fastest"
        )


def peers() -> Iterator[str]:
    four = kept(FOUR)
    on, off = largest(of(four, P2P), of(four, f"{P2P}[peer=off]"))
    yield (
        f"four H200 at {format_bytes(on.bytes)}: {on.rate_text} GB/s with peer access, "
        f"{off.rate_text} GB/s through the host, {off.rate / on.rate:.0%}"
    )
    (rank,) = [r for r in ranks(four, "pair") if r.is_headline]
    limit = rank.cost.limit
    if limit is not None:
        most = percent(rounded_up(limit))
        yield f"the {len(rank.choices)} pairs of GPUs differ by no more than {most}"


def through_the_host() -> Iterator[str]:
    """A tuned copy through host memory against the one of CUDA."""
    own, theirs = (
        at(kept(TWO), f"{P2P_ENDS} by staged", 64 * MIB),
        at(kept(FOUR), f"{P2P}[peer=off]", 64 * MIB),
    )
    yield (
        f"{NAMES[TWO]} at {format_bytes(own.bytes)}: staged {own.rate_text} GB/s; CUDA's own copy "
        f"without peer access, {NAMES[FOUR]}: {theirs.rate_text} GB/s, {theirs.rate / own.rate:.0%}"
    )


def ranks(subject: Subject, question: str) -> list[PlacementRank]:
    return [
        rank
        for rank in placement(subject).ranks
        if rank.question == question and rank.regime == "bandwidth"
    ]


def disk() -> Iterator[str]:
    """A staged copy against one that reads all of the file before it copies to the GPU."""
    for name in (H200, H100):
        subject, size = kept(name), 16 * MIB
        for what, staged, file, copy in (
            ("read", READ.format("device@gpu:0", "staged"),
             READ.format("pinned@numa:0", "direct-io"), H2D),
            ("write", WRITE.format("device@gpu:0", "staged"),
             WRITE.format("pinned@numa:0", "direct-io"), D2H),
        ):  # fmt: skip
            own = at(subject, staged, size)
            simple = sum(near(subject, text, size) for text in (file, copy))
            yield (
                f"{NAMES[name]}, {what} of {format_bytes(size)}: staged {own.rate_text} GB/s, "
                f"one step after the other {format_rate(size / simple)} GB/s, "
                f"×{simple / own.seconds:.2f}"
            )


def near(subject: Subject, text: str, size: int) -> float:
    """Seconds of a size; of one that was skipped, those of the next larger one in proportion."""
    points = of(subject, text).measured
    point = next((each for each in points if each.bytes >= size), points[-1])
    return point.seconds * size / point.bytes


def pageable() -> Iterator[str]:
    for name in (H200, H100):
        subject = kept(name)
        for what, path in (("to the GPU", TO_GPU), ("from the GPU", FROM_GPU)):
            staged, plain = largest(of(subject, f"{path}staged"), of(subject, f"{path}copy-engine"))
            ratio = staged.rate / plain.rate
            yield (
                f"{NAMES[name]}, {what} at {format_bytes(staged.bytes)}: staged "
                f"{staged.rate_text} GB/s, pageable copy {plain.rate_text} GB/s, ×{ratio:.2f}"
                f"{overlap(staged, plain)}"
            )
    for grid in grids():
        best = max(grid.rates.values())
        yield (
            f"another H200, {grid.name} at {format_bytes(grid.bytes)}: staged with the best "
            f"settings {format_rate(best, 0.01)} GB/s, with the defaults "
            f"{format_rate(next(iter(grid.rates.values())), 0.01)} GB/s, pageable copy "
            f"{format_rate(grid.plain, 0.01)} GB/s, ×{best / grid.plain:.2f}"
        )


def overlap(one: Point, other: Point) -> str:
    first, second = one.measured.interval, other.measured.interval
    return ", the intervals overlap" if first and second and first.overlaps(second) else ""


def rates_text(rates: Mapping[str, float]) -> str:
    """Writes the bandwidth by the values of a parameter."""
    return ", ".join(f"{value} {format_rate(rate, 0.01)}" for value, rate in rates.items())


def slots() -> Iterator[str]:
    """One against two buffers for each thread."""
    for grid in grids():
        rates = grid.over("slots")
        fastest = max(rates, key=lambda value: rates[value])
        alone = median(grid.gains("slots", "1", "2", threads="1"))
        most = median(grid.gains("slots", "1", "2", threads=grid.axes_of("threads")[-1]))
        yield (
            f"another H200, {grid.name}, {format_bytes(grid.bytes)}: one buffer for each thread "
            f"{format_rate(rates['1'], 0.01)} GB/s, two {format_rate(rates['2'], 0.01)} GB/s, "
            f"×{rates['2'] / rates['1']:.2f}; fastest with {fastest}. With the same other settings "
            f"the second buffer gains ×{alone:.2f} for one thread, ×{most:.2f} for "
            f"{grid.axes_of('threads')[-1]} threads (medians)"
        )


def chunks() -> Iterator[str]:
    """The size of a buffer."""
    for grid in grids():
        rates = {format_bytes(int(v)): rate for v, rate in grid.over("chunk").items()}
        yield (
            f"another H200, {grid.name}, {format_bytes(grid.bytes)}, GB/s by size of a buffer: "
            f"{rates_text(rates)}"
        )


def nothing() -> Iterator[str]:
    yield from ()


FIGURES = (
    Figure(
        "figure 2",
        "two-way copies reach up to 70 % of the best bandwidth",
        both_directions,
    ),
    Figure(
        "figure 2",
        "remote copies reach 70 to 80 % of local ones from 8 MB on",
        hidden_nodes,
        "these machines show one NUMA node; for a machine with two see the DGX-1 below",
    ),
    Figure(
        "figure 3",
        "without peer access GPUs reach 65 % of the best bandwidth; those with peer access differ "
        "by up to 15 %",
        peers,
    ),
    Figure(
        "figures 3 and 5",
        "for remote GPUs, CUDA's own copy reaches 85 to 95 % of tuned double buffering from 512 KB "
        "on",
        through_the_host,
    ),
    Figure(
        "section V.B",
        "from 512 KB on, double buffering between disk and GPU is 10 to 20 % faster than one step "
        "after the other",
        disk,
    ),
    Figure(
        "section II.B",
        "copies of pageable memory are copied through pinned buffers by the runtime",
        pageable,
    ),
    Figure(
        "section V",
        "double against single buffering",
        slots,
    ),
    Figure(
        "section V.B",
        "bandwidth grows from 20 % of the best with the size of the buffer, then stays; the best "
        "size depends on the size of the transfer (128 KB for a hard disk and 4 MB for an SSD, at "
        "128 MB)",
        chunks,
        "other sizes of transfers are not measured: `waywiser tune grid.wwp --grid 12 --only "
        "'pageable device by staged' --sizes 1MiB,256MiB`",
    ),
    Figure(
        "section IV.B",
        "the place of disk and GPU changes the bandwidth of reads and writes by less than 20 %",
        nothing,
        "a machine that shows two NUMA nodes and has a disk",
    ),
    Figure(
        "figures 4 and 6",
        "MPI between GPUs of one node and of two nodes",
        lambda: ["[messages between processes](../papers/auto-tuning-2013.md)"],
        "",
    ),
)

# The page.


def made() -> str:
    """Writes the part between the first marks."""
    return "\n".join([overview(), *map(percentages, COMPARISONS), *settings()])


def overview() -> str:
    lines = ["| paper | 2013 | today |", "|---|---|---|"]
    for figure in FIGURES:
        found = list(figure.today())
        missing = f"not measured yet: {figure.missing}" if not found else figure.missing
        cells = [*found, *([missing] if missing else [])]
        lines.append(f"| {figure.where} | {figure.then} | {'<br>'.join(cells)} |")
    return "\n".join(["## Figure by figure\n", *lines, ""])


def percentages(comparison: Comparison) -> str:
    """Writes the figure and, as the paper does, the percentages of the best at each size."""
    subject = kept(comparison.profile)
    curves = {name: of(subject, text) for name, text in comparison.curves.items()}
    sizes = [n for n in SHOWN if sum(c.at(n) is not None for c in curves.values()) > 1]
    head = f"| percent of the best at | {' | '.join(map(format_bytes, sizes))} |"
    lines = [f"## {comparison.title}\n", f"![{comparison.title}]({comparison.file})\n"]
    lines += [head, "|---" * (len(sizes) + 1) + "|"]
    for name, curve in curves.items():
        cells = [share_text(curve, curves.values(), size) for size in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, f"\nProfile: `{comparison.profile}.wwp.xz`.\n"])


def share_text(curve: Curve, among: Iterable[Curve], size: int) -> str:
    best = max(point.rate for each in among if (point := each.at(size)) is not None)
    own = curve.at(size)
    if own is None:
        return ""
    share = own.rate / best
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def settings() -> Iterator[str]:
    """Writes the bandwidth of staged copies over each of their settings."""
    yield "## Settings of staged copies, another H200\n"
    for grid in grids():
        yield f"{grid.name[0].upper()}{grid.name[1:]}, {format_bytes(grid.bytes)}:\n"
        yield "| setting | GB/s by value, each with its own best other settings |\n|---|---|"
        for axis in grid.axes:
            if axis.kind == "ordered":
                rates = grid.over(axis.name)
                if axis.name == "chunk":
                    rates = {format_bytes(int(v)): rate for v, rate in rates.items()}
                yield f"| {SETTINGS[axis.name]} | {rates_text(rates)} |"
        yield ""
    yield (
        "The best of many measured configurations is a little too fast by chance. Profiles: "
        "`2026-11-23-tuning/grid-staged-*.wwp.xz`.\n"
    )


def figures() -> dict[str, str]:
    """Draws the comparisons, by file name."""
    found = {}
    for comparison in COMPARISONS:
        subject = kept(comparison.profile)
        lines = [
            Drawn.of(name, of(subject, text).measured, number)
            for number, (name, text) in enumerate(comparison.curves.items())
        ]
        found[comparison.file] = svg_file(
            curves_picture(comparison.file, comparison.title, lines, "bandwidth")
        )
    return found


def made_of_dgx(folder: Path) -> str:
    """Writes the part about a DGX-1: what the worst NUMA node costs."""
    spec = importlib.util.spec_from_file_location("dgx_1", HERE / "dgx_1.py")
    assert spec is not None and spec.loader is not None
    dgx_1 = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = dgx_1
    spec.loader.exec_module(dgx_1)
    found = placement(dgx_1.imported(folder).subject)
    lines = ["| transfer | worst NUMA node, 16 MiB and more | below 64 KiB |", "|---|---|---|"]
    kinds = dict.fromkeys(rank.transfer for rank in found.of("buffer") if rank.is_headline)
    for kind in kinds:
        cells = []
        for regime in ("bandwidth", "latency"):
            own = [r for r in found.of("buffer") if (r.transfer, r.regime) == (kind, regime)]
            cells.append(worst(own))
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    text = [f"- {each}" for each in found.sentences if "Nearest" in each or "pair" in each]
    return "\n".join([*lines, "", *text, ""])


def worst(ranks: Sequence[PlacementRank]) -> str:
    """The largest cost that was found, or the largest difference that is excluded."""
    differ = [rank for rank in ranks if rank.cost.outcome == "different"]
    if differ:
        most = max(differ, key=lambda each: each.cost.loss)
        return (
            f"{slower_text(cost_text(most.cost), most.regime)}, {len(differ)} of {len(ranks)} GPUs"
        )
    limits = [rank.cost.limit for rank in ranks if rank.cost.limit is not None]
    return (
        f"no difference of more than {percent(rounded_up(max(limits)))}"
        if limits
        else "not determined"
    )


def current(page: str, begin: str = BEGIN, end: str = END, part: Callable[[], str] = made) -> str:
    """Returns the page with a new part between two marks."""
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}{part()}{end}{tail}"


if __name__ == "__main__":
    page = current(PAGE.read_text())
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        page = current(page, BEGIN_DGX, END_DGX, lambda: made_of_dgx(folder))
    PAGE.write_text(page)
    for file, drawing in figures().items():
        (HERE / file).write_text(drawing)
