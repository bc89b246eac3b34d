"""Models of curves and messages, tested on data that they were not fitted to.

    python benchmarks/model_truth.py [--data FOLDER] [-o FOLDER]

Writes ``held-out.md`` from the profiles that docs/results keeps, and from the DGX-1 and the S822LC
in ``--data`` (by default ``../shared/data`` beside the clone): every second size is held out and
predicted from the others. Writes ``summit.md`` from the BenchPress files there: the tables of the
paper by its own rule, and what other models find in the same files. What is not at hand is skipped,
and the page that needs it stays as it is.
"""

from __future__ import annotations

import argparse
import lzma
import math
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from waywiser.curves.curve import points_of
from waywiser.exchange.imports.profiles import import_files
from waywiser.machine.machine import Machine
from waywiser.model.count_table import CountKey
from waywiser.model.crossover import comparison
from waywiser.model.curve import CurveModel, CurveTimes, fit_curves, times_of
from waywiser.model.curve_form import best_lines
from waywiser.model.held_out import divided, thinned
from waywiser.model.machine_model import fitted_model
from waywiser.model.message_strategies import (
    DIRECT,
    THREE_STEP,
    MessageStrategies,
    strategies_of,
)
from waywiser.model.messages import (
    Locality,
    MessageTimes,
    classes_of,
    curve_of,
    messages_of,
)
from waywiser.model.prediction_interval import WIDTHS, PathKind
from waywiser.model.published import PublishedModel, fit, parse_switches
from waywiser.model.rank_nodes import node_of
from waywiser.model.rate import SATURATED, fit_counts, held_out_deviations
from waywiser.model.strategies import StepTime, Strategy, StrategyStep, StrategyTime, StrategyTimes
from waywiser.model.strategy_steps import GPU, HOST, MessageModels
from waywiser.model.strategy_table import BasisTable, StrategyTable, strategy_table
from waywiser.model.texts import with_interval
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.render.views.strategy_texts import comparison_text
from waywiser.stats.line_ranges import ProtocolRange
from waywiser.stats.scatter import LEAST_SIZES, medians
from waywiser.words import Workload, format_bytes
from waywiser.words.number_format import format_time

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
DATA = ROOT.parent / "shared" / "data"
KINDS: tuple[PathKind, ...] = (
    "link",
    "pageable memory",
    "within a GPU",
    "host",
    "migrating memory",
)
DRAWS = 2
"""Draws for intervals of parameters, which these pages do not show."""
HELD_OUT_JOBS = (
    "With one of three jobs held out in turn, and models of the two others, 98.1 % of "
    "its 9,396 times of single messages and copies are in their 95 % intervals (76.4 % "
    "without the scatter between jobs), and 95.0 % of its 7,512 times of several "
    "messages and copies. By kind the latter range from 89.9 % (messages of one "
    "process, host memory) to 100 %: two jobs that are alike do not show how slow a "
    "third may be."
)
"""Figures of tests/model/test_held_out_jobs.py, which checks them."""
SWITCHES = "on-socket=256,16KiB; on-node=256,16KiB; off-node=256,16KiB"
"""The thresholds of the paper's protocols on Summit."""
WIDTH = 118
TWO_PROCESSES = "H200, 20 November"
"""The group of profiles that have two processes for most sizes."""
LEAST_POINTS = 50
FEW_POINTS = 20
"""Sizes of one profile from which on its own share is shown."""
LEAST_KEPT = 3
"""Sizes of a method that are left to choose by: two far apart show nothing of the sizes between."""
PROMISED: tuple[PathKind, ...] = ("link", "pageable memory", "within a GPU")
"""Kinds of path whose accuracy is promised."""


class MeasuredProfile(NamedTuple):
    name: str
    group: str
    curves: list[CurveTimes]


class HeldOut(NamedTuple):
    """One size that was predicted from others."""

    profile: str
    group: str
    kind: PathKind
    text: str
    bytes: int
    measured: float
    """Seconds."""
    borrowed: bool
    error: float
    """Predicted over measured, less 1, without its sign."""
    deviation: float
    """Logarithm of predicted over measured, without its sign."""
    spread: float
    """Logarithm of the half width over the constant of the kind."""


# Profiles.


def kept_profiles(folder: Path) -> Iterator[MeasuredProfile]:
    for packed in sorted(RESULTS.glob("**/*.wwp.xz")):
        if "standard" not in packed.name:
            continue
        name = str(packed.relative_to(RESULTS)).removesuffix(".wwp.xz")
        file = folder / "profile.wwp"
        file.write_bytes(lzma.decompress(packed.read_bytes()))
        with Profile.open(file) as profile:
            machine = profile.machine
            curves = times_of(SeriesFrame.read(profile), machine)
        yield MeasuredProfile(name, _group(machine, name), _contiguous(curves))
        file.unlink()


def imported_profiles(data: Path, folder: Path) -> Iterator[MeasuredProfile]:
    for name in ("dgx-1", "s822lc"):
        if not (data / name).is_dir():
            continue
        file = folder / f"{name}.wwp"
        import_files([data / name], file, machine=name)
        with Profile.open(file) as profile:
            curves = times_of(SeriesFrame.read(profile), profile.machine)
        yield MeasuredProfile(name, "DGX-1 and S822LC", _contiguous(curves))


def _group(machine: Machine, name: str) -> str:
    model = "H100" if any("H100" in gpu.name for gpu in machine.gpus) else "H200"
    return f"{model}, {'20' if name.startswith('2026-11-20') else '23 and 24'} November"


def _contiguous(curves: Iterable[CurveTimes]) -> list[CurveTimes]:
    return [curve for curve in curves if " as " not in curve.text]


# Held-out sizes.


def held_out(profile: MeasuredProfile) -> Iterator[HeldOut]:
    """Of each curve with enough sizes every second; of curves with fewer, those that borrow the
    shape of one with more."""
    long = [curve for curve in profile.curves if len(curve.blocks.bytes) >= LEAST_SIZES]
    yield from _predicted(profile, long, [thinned(curve, divided(curve)[0]) for curve in long], [])
    few = [curve for curve in profile.curves if 3 <= len(curve.blocks.bytes) < LEAST_SIZES]
    yield from _predicted(profile, few, [thinned(curve, divided(curve)[0]) for curve in few], long)


def _predicted(
    profile: MeasuredProfile,
    curves: Sequence[CurveTimes],
    fitted: Sequence[CurveTimes],
    shapes: Sequence[CurveTimes],
) -> Iterator[HeldOut]:
    models = fit_curves([*fitted, *shapes], DRAWS)[: len(fitted)]
    for curve, model in zip(curves, models, strict=True):
        if shapes and not model.borrowed_from:
            continue
        seconds = medians(curve.blocks.table)
        by_curve = msgspec.structs.replace(model, scatter=())  # constants are of the curve alone
        for n in divided(curve)[1]:
            found = by_curve.predict(curve.blocks.bytes[n])
            if found is None:
                continue
            width = math.log(found.interval.high / found.seconds) / WIDTHS[curve.kind]
            ratio = found.seconds / float(seconds[n])
            yield HeldOut(
                profile=profile.name,
                group=profile.group,
                kind=curve.kind,
                text=curve.text,
                bytes=curve.blocks.bytes[n],
                measured=float(seconds[n]),
                borrowed=bool(shapes),
                error=abs(ratio - 1),
                deviation=abs(math.log(ratio)),
                spread=width,
            )


def width_of(points: Sequence[HeldOut]) -> float:
    """The constant by split conformal prediction, at 95 %."""
    scores = sorted(each.deviation / each.spread for each in points)
    return scores[min(math.ceil(0.95 * (len(scores) + 1)), len(scores)) - 1]


def accuracy_table(points: Sequence[HeldOut]) -> Iterator[str]:
    yield "| profiles | kind of path | sizes | median | 95 % of sizes within |"
    yield "|---|---|---|---|---|"
    groups = list(dict.fromkeys(each.group for each in points))
    for group in groups:
        for kind in KINDS:
            off = [e.error for e in points if (e.group, e.kind) == (group, kind)]
            if len(off) >= LEAST_POINTS:
                typical, most = np.quantile(off, (0.5, 0.95))
                yield f"| {group} | {kind} | {len(off)} | {typical:.2%} | {most:.1%} |"


def process_table(profiles: Sequence[MeasuredProfile]) -> Iterator[str]:
    """How far two processes of one profile are apart at the same size: what no model predicts."""
    yield "| kind of path | sizes with two processes | median difference | 95 % of sizes within |"
    yield "|---|---|---|---|"
    for kind in KINDS:
        off = [
            math.expm1(abs(math.log(one / other)))
            for profile in profiles
            for curve in profile.curves
            if curve.kind == kind and len(curve.blocks.bytes) >= LEAST_SIZES
            for blocks in curve.blocks.blocks
            if len(blocks) == 2
            for one, other in [tuple(blocks.values())]
        ]
        if len(off) >= LEAST_POINTS:
            typical, most = np.quantile(off, (0.5, 0.95))
            yield f"| {kind} | {len(off)} | {typical:.2%} | {most:.1%} |"


class RepeatedSize(NamedTuple):
    """A size that was held out of one survey and measured again by another one of that machine."""

    kind: PathKind
    predicted: float
    """Predicted over measured time, as a logarithm without its sign."""
    repeated: float
    """The time in the other survey over that in this one, likewise."""
    spread: float
    """As of `HeldOut`."""


AGAIN = "-again"
"""How the name of a second survey of the same machine, on the same day, ends."""


def repeated_sizes(profiles: Sequence[MeasuredProfile]) -> Iterator[RepeatedSize]:
    """The held-out sizes of pairs of surveys, each by the other."""
    named = {profile.name: profile for profile in profiles}
    for name, second in named.items():
        first = named.get(name.removesuffix(AGAIN))
        if first is None or first is second:
            continue
        for one, other in ((first, second), (second, first)):
            times = {
                (curve.text, size): float(seconds)
                for curve in other.curves
                for size, seconds in zip(
                    curve.blocks.bytes, medians(curve.blocks.table), strict=True
                )
            }
            for each in held_out(one):
                again = times.get((each.text, each.bytes))
                if again is not None and not each.borrowed:
                    repeated = abs(math.log(again / each.measured))
                    yield RepeatedSize(each.kind, each.deviation, repeated, each.spread)


def repeat_table(profiles: Sequence[MeasuredProfile]) -> Iterator[str]:
    """How far a second survey of the same machine is from the first one at the held-out sizes:
    what the best model leaves."""
    yield (
        "| kind of path | sizes | predicted: median | 95 % within | measured again: median | "
        "95 % within | median half-width of intervals |"
    )
    yield "|---|---|---|---|---|---|---|"
    points = list(repeated_sizes(profiles))
    for kind in KINDS:
        own = [each for each in points if each.kind == kind]
        if len(own) >= LEAST_POINTS:
            cells = [
                f"{np.expm1(middle):.2%} | {np.expm1(most):.1%}"
                for values in ([e.predicted for e in own], [e.repeated for e in own])
                for middle, most in [np.quantile(values, (0.5, 0.95))]
            ]
            half = np.median([math.expm1(WIDTHS[kind] * each.spread) for each in own])
            yield f"| {kind} | {len(own)} | {' | '.join(cells)} | {half:.1%} |"


def interval_table(points: Sequence[HeldOut]) -> Iterator[str]:
    yield (
        "| kind of path | sizes | in the interval | least and most of a profile | "
        f"median half-width | of {TWO_PROCESSES} | constant of all |"
    )
    yield "|---|---|---|---|---|---|---|"
    for kind in KINDS:
        of_kind = [each for each in points if each.kind == kind]
        inside: list[bool] = []
        half: list[float] = []
        half_of_two: list[float] = []
        shares: list[float] = []
        for name in dict.fromkeys(each.profile for each in of_kind):
            width = width_of([each for each in of_kind if each.profile != name])
            own = [each for each in of_kind if each.profile == name]
            found = [each.deviation <= width * each.spread for each in own]
            inside += found
            half += [math.expm1(width * each.spread) for each in own]
            if own[0].group == TWO_PROCESSES:
                half_of_two += half[-len(own) :]
            if len(own) >= FEW_POINTS:
                shares.append(float(np.mean(found)))
        if len(inside) >= LEAST_POINTS:
            yield (
                f"| {kind} | {len(inside)} | {np.mean(inside):.1%} | "
                f"{f'{min(shares):.0%}, {max(shares):.0%}' if shares else '—'} | "
                f"{np.median(half):.1%} | {np.median(half_of_two):.1%} | "
                f"{width_of(of_kind):.2f} |"
            )


def shipped_table(points: Sequence[HeldOut]) -> Iterator[str]:
    """Coverage by the constants of the package."""
    yield "| kind of path | sizes | in the interval | median half-width |"
    yield "|---|---|---|---|"
    for kind in KINDS:
        of_kind = [each for each in points if each.kind == kind]
        if len(of_kind) >= LEAST_POINTS:
            inside = [each.deviation <= WIDTHS[kind] * each.spread for each in of_kind]
            half = [math.expm1(WIDTHS[kind] * each.spread) for each in of_kind]
            yield f"| {kind} | {len(of_kind)} | {np.mean(inside):.1%} | {np.median(half):.1%} |"


# The choice of the fastest method.


def regrets(profile: MeasuredProfile, same_memories: bool, least: int) -> Iterator[float]:
    """What the method that the model chooses takes more than the fastest one, at sizes that were
    held out from all methods between two places, or between two memories."""
    groups: dict[str, list[CurveTimes]] = {}
    for curve in profile.curves:
        transfer = Workload.parse(curve.text).transfer
        if transfer is None or transfer.is_sparse or curve.kind not in PROMISED:
            continue
        ends = transfer.path.ends if same_memories else transfer.path.places
        groups.setdefault(" -> ".join(map(str, ends)), []).append(curve)
    fitted: list[CurveTimes] = []
    known: list[tuple[str, CurveTimes, set[int]]] = []
    for name, curves in groups.items():
        sizes = sorted({size for curve in curves for size in curve.blocks.bytes})
        out = set(sizes[1:-1:2])
        for curve in curves:
            kept = [n for n, size in enumerate(curve.blocks.bytes) if size not in out]
            if len(kept) >= least:
                known.append((name, curve, out))
                fitted.append(thinned(curve, kept))
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for (name, curve, out), model in zip(known, fit_curves(fitted, DRAWS), strict=True):
        seconds = medians(curve.blocks.table)
        for n, size in enumerate(curve.blocks.bytes):
            if size in out and model.sizes[0] <= size <= model.sizes[-1]:
                pair = (model.seconds(size), float(seconds[n]))
                times.setdefault((name, size), []).append(pair)
    for pairs in times.values():
        if len(pairs) > 1:
            yield min(pairs)[1] / min(measured for _, measured in pairs) - 1


def choice_table(profiles: Sequence[MeasuredProfile]) -> Iterator[str]:
    yield "| choice among | profiles | choices | mean loss | 95 % of choices within | fastest |"
    yield "|---|---|---|---|---|---|"
    choices = (
        ("methods between two places", False, LEAST_KEPT),
        ("methods between two places, also with two sizes left", False, 2),
        ("methods between two memories", True, LEAST_KEPT),
    )
    for text, same, least in choices:
        for group in dict.fromkeys(profile.group for profile in profiles):
            found = [
                each
                for profile in profiles
                if profile.group == group
                for each in regrets(profile, same, least)
            ]
            if len(found) >= LEAST_POINTS:
                right = np.mean([each <= 0 for each in found])
                yield (
                    f"| {text} | {group} | {len(found)} | {np.mean(found):.2%} | "
                    f"{np.quantile(found, 0.95):.1%} | {right:.0%} |"
                )


def held_out_page(profiles: Sequence[MeasuredProfile]) -> str:
    points = [each for profile in profiles for each in held_out(profile)]
    own = [each for each in points if not each.borrowed]
    nvidia = [each for each in own if each.group.startswith("H")]
    others = [each for each in own if not each.group.startswith("H")]
    borrowed = [each for each in points if each.borrowed]
    lines = [
        "# Curves at sizes that were held out",
        "",
        f"Written by `benchmarks/model_truth.py` from {len(profiles)} profiles: those of H200 and "
        "H100 in this folder, and the DGX-1 and the S822LC of the thesis (imported results). Of "
        f"each curve with {LEAST_SIZES} sizes or more every second size was held out, never an "
        "end. The models were fitted to the others and predicted the sizes that were held out. "
        "Sizes of these curves are powers of two, so neighbours were a factor of 4 apart. A "
        "deviation is predicted over measured time, less 1. The profiles of 20 November have two "
        "processes for most sizes, those of 23 and 24 November one, and sizes that are further "
        "apart; one of these, of an H100, was disturbed (8 MiB took twice its time). Some "
        "constants of the models (which share of the deviation of neighbours counts, from which "
        "ratio on a curve jumps or is flat), and the form of the spread of intervals, were "
        "chosen among several on the held-out sizes of H200 and H100. So their figures "
        "are somewhat better than those of new profiles. Nothing was chosen on the DGX-1 and "
        "the S822LC.",
        "",
        "## Accuracy",
        "",
        *accuracy_table(own),
        "",
        "Copies within the host and managed memory are shown for completeness: their times depend "
        "on caches and page states, and no accuracy is promised for them.",
        "",
        "A measured time deviates itself. Medians of two processes at the same size, on H200, 20 "
        "November:",
        "",
        *process_table([each for each in profiles if each.group == TWO_PROCESSES]),
        "",
        "Two of these surveys were made again on that day. *Measured again*: at the same held-out "
        "sizes, how far the time in the second survey is from that in the first one, and the "
        "reverse. *Predicted*: how far the prediction is, from the other sizes of the same survey. "
        "Someone who surveys the machine again would not notice a prediction that deviates by "
        "less than the surveys do. 95 % of link sizes within 4 % was the aim, which the second "
        "survey of the machine does not reach either; of pageable memory 3 % was the aim for the "
        "median, and the surveys differ by more:",
        "",
        *repeat_table(profiles),
        "",
        f"Curves of {LEAST_SIZES - 1} sizes or fewer that borrow the shape of their class:",
        "",
        *accuracy_table(borrowed),
        "",
        "## Intervals",
        "",
        "For each profile, the constants of the intervals were made from the other profiles of "
        "H200 and H100 alone. They are of the curve alone: without the scatter between processes "
        "that intervals also have ([other runs](other-runs.md)).",
        "",
        *interval_table(nvidia),
        "",
        "The constants of the package, "
        + ", ".join(f"{kind} {width:g}" for kind, width in WIDTHS.items())
        + ", on the DGX-1 and the S822LC, which they were not made from. Their curves have five "
        "repetitions of one process, so processes add no scatter, and intervals are wide for them.",
        "",
        *shipped_table(others),
        "",
        "## Choice of the fastest method",
        "",
        "Every second size was held out from all methods between two places, or between two "
        "memories. The loss is what the method with the least predicted time took more than the "
        "fastest one, as measured. Copies within the host and managed memory are not candidates. "
        f"Methods with fewer than {LEAST_KEPT} sizes left are candidates in the rows that say so: "
        "two sizes far apart show nothing of the sizes between.",
        "",
        *choice_table([p for p in profiles if p.group.startswith("H")]),
        "",
    ]
    return _page(lines)


# Summit.

PRINTED: dict[tuple[str, str, Locality, str], tuple[float, float]] = {
    ("pinned", "pinned", "on-socket", "short"): (3.51e-07, 2.62e-10),
    ("pinned", "pinned", "on-node", "short"): (9.08e-07, 1.46e-09),
    ("pinned", "pinned", "off-node", "short"): (1.38e-06, 3.82e-10),
    ("pinned", "pinned", "on-socket", "eager"): (4.73e-07, 6.95e-11),
    ("pinned", "pinned", "on-node", "eager"): (1.17e-06, 2.16e-10),
    ("pinned", "pinned", "off-node", "eager"): (1.85e-06, 2.93e-10),
    ("pinned", "pinned", "on-socket", "rendezvous"): (2.46e-06, 3.31e-11),
    ("pinned", "pinned", "on-node", "rendezvous"): (5.81e-06, 1.46e-10),
    ("pinned", "pinned", "off-node", "rendezvous"): (6.56e-06, 8.51e-11),
    ("device", "device", "on-socket", ""): (1.68e-05, 1.86e-11),
    ("device", "device", "on-node", ""): (1.80e-05, 2.09e-11),
    ("device", "device", "off-node", ""): (4.96e-06, 1.69e-10),
    ("pinned", "device", "on-socket", ""): (1.09e-05, 2.38e-11),
    ("pinned", "device", "on-node", ""): (1.26e-05, 2.71e-11),
    ("device", "pinned", "on-socket", ""): (1.09e-05, 2.36e-11),
    ("device", "pinned", "on-node", ""): (1.25e-05, 2.72e-11),
}
"""Latency and inverse rate as tables I and II print them."""
PRINTED_INJECTION = {"pinned": 3.0e-11, "device": 5.1e-11}
"""Table III."""


def summit(data: Path, folder: Path) -> tuple[list[MessageTimes], MessageStrategies]:
    file = folder / "summit.wwp"
    import_files([data / "benchpress" / "summit"], file, machine="summit")
    with Profile.open(file) as profile:
        frame = SeriesFrame.read(profile)
        messages, node = messages_of(points_of(frame)), node_of(points_of(frame))
        models = MessageModels.of(fitted_model(profile, frame))
    return messages, strategies_of(messages, models, node)


def misprints(model: PublishedModel) -> Iterator[str]:
    """Printed parameters that the rule does not give within 0.5 %."""
    for (source, destination, locality, protocol), printed in PRINTED.items():
        (line,) = [
            each
            for each in model.protocols(source, destination, locality)
            if each.protocol == protocol
        ]
        pairs = zip(("alpha", "beta"), printed, (line.latency, line.inverse_rate), strict=True)
        for name, value, own in pairs:
            if abs(own / value - 1) > 0.005:
                yield f"{name} of {source} {locality} {protocol} ({own:.2e}, printed {value:.2e})"


def published_table(model: PublishedModel) -> Iterator[str]:
    yield (
        "| memory | locality | protocol | alpha, printed | fitted | difference | beta, printed | "
        "fitted | difference |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for (source, destination, locality, protocol), printed in PRINTED.items():
        lines = model.protocols(source, destination, locality)
        (line,) = [each for each in lines if each.protocol == protocol]
        ends = source if source == destination else f"{source} to {destination}"
        cells = [
            f"{value:.3g} | {own:.3e} | {own / value - 1:+.2%}"
            for value, own in zip(printed, (line.latency, line.inverse_rate), strict=True)
        ]
        yield f"| {ends} | {locality} | {protocol or 'one'} | {' | '.join(cells)} |"


def own_table(messages: Sequence[MessageTimes], model: PublishedModel) -> Iterator[str]:
    yield (
        "| curve | pairs | lines from | deviation of lines: median | outside 10 % | largest "
        "deviation of the paper's lines | held-out sizes: median | outside 10 % |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for found in classes_of(messages):
        (curve,) = fit_curves([curve_of(found, messages, least=True)])
        lines = best_lines(curve.sizes, curve.times)
        fitted = dict(zip(curve.sizes, deviations_of(curve, lines), strict=True))
        held = {
            size: math.expm1(abs(each))
            for size, each in zip(curve.sizes, curve.deviations, strict=True)
            if each is not None
        }
        theirs = [
            abs(line.seconds(size) / seconds - 1)
            for size, seconds in zip(curve.sizes, curve.times, strict=True)
            if (line := model.line(found.source, found.destination, found.locality, size))
        ]
        starts = ", ".join(format_bytes(line.low) for line in lines)
        yield (
            f"| {found.name} | {len(found.pairs)} | {starts} | "
            f"{np.median(list(fitted.values())):.1%} | {_outside(fitted)} | {max(theirs):.0%} | "
            f"{np.median(list(held.values())):.1%} | {_outside(held)} |"
        )


def _outside(deviations: Mapping[int, float]) -> str:
    """The sizes that deviate by more than 10 %."""
    return ", ".join(format_bytes(n) for n, each in deviations.items() if each > 0.1) or "none"


def deviations_of(curve: CurveModel, lines: Sequence[ProtocolRange]) -> Iterator[float]:
    """How far each size is from the line of its range, relatively, without the sign."""
    for size, seconds in zip(curve.sizes, curve.times, strict=True):
        line = next(each for each in lines if each.low <= size <= each.high)
        yield abs((line.latency + line.inverse_rate * size) / seconds - 1)


def in_interval(messages: Sequence[MessageTimes]) -> tuple[int, int]:
    """(sizes in their 95 % interval, sizes): every second one was held out."""
    inside = total = 0
    for found in classes_of(messages):
        curve = curve_of(found, messages, least=True)
        kept, out = divided(curve)
        (model,) = fit_curves([thinned(curve, kept)])
        seconds = medians(curve.blocks.table)
        for n in out:
            predicted = model.predict(curve.blocks.bytes[n])
            if predicted is not None:
                total += 1
                inside += predicted.interval.low <= seconds[n] <= predicted.interval.high
    return inside, total


def counts_table(messages: Sequence[MessageTimes]) -> Iterator[str]:
    yield (
        "| messages | memory | time of a job | counts and sizes held out | median | 95 % within |"
    )
    yield "|---|---|---|---|---|---|"
    for test, text in (
        ("max-rate", "one of each of n processes"),
        ("messages", "n of one process"),
    ):
        for least in (False, True):
            both: list[float] = []
            for kind in ("pinned", "device"):
                off = held_out_deviations(messages, CountKey(kind, test), least=least)
                both += off
                yield _counts_row(text, kind, least, off)
            yield _counts_row(text, "both", least, both)


def _counts_row(text: str, kind: str, least: bool, off: Sequence[float]) -> str:
    typical, most = np.quantile(off, (0.5, 0.95))
    job = "minimum of jobs" if least else "median of jobs"
    return f"| {text} | {kind} | {job} | {len(off)} | {typical:.2%} | {most:.1%} |"


def authors_messages(messages: Sequence[MessageTimes], model: PublishedModel) -> list[float]:
    """Deviations of alpha * n + beta * n * bytes from several messages of one process."""
    return [
        abs((each.count * line.seconds(each.bytes)) / each.least - 1)
        for each in messages
        if each.test == "messages" and each.count > 1
        if (line := model.line(each.source, each.destination, "off-node", each.bytes))
    ]


def largest_max_rate(
    messages: Sequence[MessageTimes], model: PublishedModel
) -> tuple[MessageTimes, float]:
    """(the largest measurement of host memory, predicted over measured less 1)."""
    largest = max(
        (each for each in messages if each.test == "max-rate" and each.source == "pinned"),
        key=lambda each: (each.bytes, each.count),
    )
    line = model.line("pinned", "pinned", "off-node", largest.bytes)
    assert line is not None
    total = largest.bytes * largest.count
    predicted = line.latency + max(
        model.injection["pinned"] * total, line.inverse_rate * largest.bytes
    )
    return largest, predicted / largest.least - 1


def limit_without_latency(messages: Sequence[MessageTimes], model: PublishedModel) -> float:
    """Bytes per second of the same measurements if the paper's latency is taken off first."""
    known = [each for each in messages if (each.test, each.source) == ("max-rate", "pinned")]
    highest = max(each.bytes * each.count / each.least for each in known)
    line = model.line("pinned", "pinned", "off-node", 2**20)
    assert line is not None
    return float(
        np.median(
            [
                each.bytes * each.count / (each.least - line.latency)
                for each in known
                if each.bytes * each.count / each.least >= SATURATED * highest
            ]
        )
    )


PAPER = "by the paper's model"


def by_the_paper(model: PublishedModel) -> tuple[Strategy, ...]:
    """The strategies by the published model, which has no intervals: each message costs its
    latency, and each byte its inverse rate; a copy is one message of all bytes."""
    to_host = _published_step("D2H", model, GPU, HOST, "on-socket")
    to_gpu = _published_step("H2D", model, HOST, GPU, "on-socket")
    host = _published_step("messages", model, HOST, HOST, "off-node")
    return (
        Strategy(DIRECT, (_published_step("messages", model, GPU, GPU, "off-node"),)),
        Strategy(THREE_STEP, (to_host, host, to_gpu)),
    )


def _published_step(
    name: str, model: PublishedModel, source: str, destination: str, locality: Locality
) -> StrategyStep:
    def cost(count: int, bytes: int) -> StepTime | None:
        size, number = (count * bytes, 1) if source != destination else (bytes, count)
        line = model.line(source, destination, locality, size)
        if line is None:
            return None
        seconds = number * line.latency + line.inverse_rate * number * size
        return StepTime(seconds, None, False)

    return StrategyStep(name, cost)


def crossover_table(table: StrategyTable, paper: StrategyTimes) -> Iterator[str]:
    yield f"| bytes of a message | as measured | by these models | {PAPER} |"
    yield "|---|---|---|---|"
    for size in (4, 64, 1024, 8192, 2**16, 2**19):
        cells = [each.comparison(DIRECT, THREE_STEP, "messages", size) for each in table.bases]
        theirs = comparison(paper, DIRECT, THREE_STEP, "messages", size, range(1, 41))
        texts = [comparison_text(each, str) for each in (*cells, theirs) if each is not None]
        yield f"| {format_bytes(size)} | {' | '.join(texts)} |"


def one_message_table(table: StrategyTable, paper: StrategyTimes) -> Iterator[str]:
    yield f"| strategy | as measured | by these models | {PAPER} |"
    yield "|---|---|---|---|"
    for name in dict.fromkeys(name for basis in table.bases for name in basis.strategies):
        cells = [
            with_interval(format_time, each.seconds, each.interval) if each else "—"
            for each in (*(_one(basis, name) for basis in table.bases), paper.of(name, 1, 2**19))
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def _one(basis: BasisTable, name: str) -> StrategyTime | None:
    """One message of 512 KiB."""
    wanted = name, 1, 2**19
    return next((t for t in basis.times if (t.name, t.count, t.bytes) == wanted), None)


def outside(table: StrategyTable) -> tuple[int, int]:
    """(measured times that the interval of the model does not hold, times that are in both)."""
    measured, modelled = table.bases
    known = {(each.name, each.count, each.bytes): each for each in modelled.times}
    inside = []
    for each in measured.times:
        found = known.get((each.name, each.count, each.bytes))
        if each.is_measured and found is not None and found.interval is not None:
            inside.append(found.interval.contains(each.seconds))
    return inside.count(False), len(inside)


def summit_page(messages: Sequence[MessageTimes], found: MessageStrategies) -> str:
    model = fit(messages, parse_switches(SWITCHES))
    rates = fit_counts(messages, "pinned", "max-rate", least=True)
    assert rates is not None and rates.limit is not None
    largest, off = largest_max_rate(messages, model)
    authors = authors_messages(messages, model)
    table, paper = strategy_table(found), StrategyTimes(by_the_paper(model))
    wrong = table.disagreements
    missed, compared = outside(table)
    printed = [
        value / line - 1
        for key, pair in PRINTED.items()
        for each in model.protocols(*key[:3])
        if each.protocol == key[3]
        for value, line in zip((each.latency, each.inverse_rate), pair, strict=True)
    ]
    near = sum(abs(each) <= 0.005 for each in printed)
    limit = rates.limit
    inside, held = in_interval(messages)
    lines = [
        "# Summit: a published model, and what else its data say",
        "",
        "Written by `benchmarks/model_truth.py` from 18 raw files of BenchPress for Summit "
        "(github.com/bienz2/BenchPress, three jobs of each of six benchmarks), which are not part "
        "of this repository. The numbers printed in the paper are of A. Bienz, L. Olson, W. Gropp "
        "and S. Lockhart, *Modeling Data Movement Performance on Heterogeneous Architectures* "
        "(HPEC 2021), tables I to III.",
        "",
        "## The paper's rule",
        "",
        f"Of {len(printed)} printed parameters {near} are repeated within 0.5 %. Not repeated: "
        f"{'; '.join(misprints(model)) or 'none'}. One digit differs: a misprint. The "
        "injection rates R_N, with the measured times of five and more processes: host memory "
        f"{model.injection['pinned']:.3e} s/B (printed: {PRINTED_INJECTION['pinned']:.1e}), GPU "
        f"memory {model.injection['device']:.3e} s/B (printed: {PRINTED_INJECTION['device']:.1e}).",
        "",
        *published_table(model),
        "",
        "## Models that are tested",
        "",
        "Pairs of one locality whose times differ are several classes. Divided were: "
        f"{'; '.join(each.name for each in classes_of(messages) if each.of > 1)}. Lines and their "
        "switches are found, not given: one to three lines, as many as predict held-out sizes "
        "best. The columns after them are of the form that predictions use: each size is held out "
        "and predicted from the others, so that its neighbours are a factor of 4 apart. Sizes "
        "beside a change of protocol cannot be known from such neighbours. Sizes outside 10 % are "
        "named. Times are the minimum over pairs and jobs, as the paper takes them.",
        "",
        *own_table(messages, model),
        "",
        f"With every second size held out, {inside} of {held} measured times are in the 95 % "
        "interval of their prediction. The constants of the intervals are from H200 and H100.",
        "",
        HELD_OUT_JOBS,
        "",
        "## Several processes, several messages",
        "",
        "Every second count is predicted from the others, at all sizes. A single disturbed job "
        "makes the worst of the medians.",
        "",
        *counts_table(messages),
        "",
        "The formula alpha * n + beta * n * bytes for several messages of one process deviates by "
        f"{np.median(authors):.0%} (median) and {np.quantile(authors, 0.95):.0%} (95 %) from the "
        "minimum of jobs.",
        "",
        f"R_N is {1 / model.injection['pinned'] / 1e9:.1f} GB/s, more than any measured rate "
        f"({limit.highest / 1e9:.1f} GB/s), and gives {off:+.1%} for the largest measurement "
        f"({largest.count} processes, {format_bytes(largest.bytes)} each). The "
        f"limit that {limit.measurements} saturated measurements show is "
        f"{limit.bytes_per_second / 1e9:.1f} GB/s (95 %: {limit.interval.low / 1e9:.1f} to "
        f"{limit.interval.high / 1e9:.1f}), or "
        f"{limit_without_latency(messages, model) / 1e9:.1f} GB/s, above all measured rates, if "
        "the paper's latency is taken off first. It is the slope of the line through the saturated "
        "measurements. Messages of GPU memory of six processes do not reach a limit that is the "
        "same for all sizes: none is identified.",
        "",
        "## Direct, 3-step, all cores, extra message or duplicate pointer",
        "",
        "As `waywiser predict FILE --crossovers` compares them, with the medians of jobs, and the "
        f"{found.processes} processes that each GPU has in the files. Which of direct and 3-step "
        "is faster, by the number of messages; up to six were measured between GPUs. The paper's "
        "model has no intervals:",
        "",
        *crossover_table(table, paper),
        "",
        "One message of 512 KiB, with 95 % intervals for a single time:",
        "",
        *one_message_table(table, paper),
        "",
        f"At {table.compared} combinations of number and size at which two strategies or more were "
        f"measured, the models choose another than the fastest in {len(wrong)}, of which "
        f"{sum(each.is_within_interval is True for each in wrong)} are within the intervals; the "
        f"largest loss is {max((each.cost for each in wrong), default=0.0):.1%}. Of {compared} "
        f"times of strategies as measured {missed} are outside the intervals of the models. *All "
        "cores* and *duplicate pointer* are modelled by the runs of equal messages, and measured "
        "by those that divide a message too. *Extra message* is modelled by messages of a process "
        "one after another; no test has them.",
        "",
    ]
    return _page(lines)


def _page(lines: Iterable[str]) -> str:
    return "\n".join(
        line if line.startswith(("|", "#")) else textwrap.fill(line, WIDTH, break_long_words=False)
        for line in lines
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "models")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        imported = list(imported_profiles(options.data, folder))
        if len(imported) == 2:
            profiles = [*kept_profiles(folder), *imported]
            (options.output / "held-out.md").write_text(held_out_page(profiles))
        else:
            print(f"held-out.md needs {options.data}/dgx-1 and s822lc", file=sys.stderr)
        if (options.data / "benchpress" / "summit").is_dir():
            page = summit_page(*summit(options.data, folder))
            (options.output / "summit.md").write_text(page)
        else:
            print(f"summit.md needs {options.data}/benchpress/summit", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
