"""What is said of healthy machines, and of machines with one slow path, under noise between nights.

    python benchmarks/night_noise.py [--nodes 30] [--healthy 30] [--stops 0] [--simulated 0]
                                     [--fleets 20] [--hosts 20] [--noise 1%]
                                     [--profile FILE.wwp.xz] [--seed 0]

Of the recorded profile (by default a check of four H200s) nights are made: each path takes longer
or shorter by normal noise of its own, as `waywiser simulate --night-noise` has it, and each of
eight processes deviates as recorded ones and their samples do.

- `check`: each node is checked against one and against three baselines, without and with a
  repetition of another night. Prints the share of healthy nodes that fail, and the share of losses
  of 3 and 5 % in the bandwidth of one headline path that are found.
- `check` that stops early (`--stops`): the same with three baselines, if a path takes no further
  process once it is settled, and the mean number of processes. Beside it the equal links of one
  simulated survey without a baseline.
- `check` of simulated surveys: the same cases, with five nights of `waywiser simulate`, of which
  the last two have less bandwidth from the host to one GPU; it is found if a path over that link
  is.
- `fleet`: of eight nodes one has a path, or all paths between the host and one GPU, that are 5 %
  slower.
- `show`: a simulated survey of each host, whose links to one GPU have 5 or 10 % less bandwidth.

Every number follows from the seed.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from kept import RESULTS, unpacked  # noqa: E402
from waywiser.analysis.comparison.checkup import check_up  # noqa: E402
from waywiser.analysis.comparison.fleet import assess_fleet  # noqa: E402
from waywiser.analysis.health.early_stop import (  # noqa: E402
    OtherReferences,
    baseline_times,
    path_times,
    settled,
    unequal_parts,
)
from waywiser.analysis.questions.slow_links import links_of_gpus  # noqa: E402
from waywiser.curves.curve import Point  # noqa: E402
from waywiser.curves.headline import headline  # noqa: E402
from waywiser.curves.overview import Overview, overview  # noqa: E402
from waywiser.curves.subject import Subject, read_subject  # noqa: E402
from waywiser.measure.simulated_nights import SimulatedNights, moments  # noqa: E402
from waywiser.measure.simulated_survey import SimulatedSurvey, prepare_simulation  # noqa: E402
from waywiser.model.whatif import Change, MachineChanges  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.profile.series_frame import SeriesFrame  # noqa: E402
from waywiser.stats.decision import THRESHOLD  # noqa: E402
from waywiser.words.numbers import parse_fraction  # noqa: E402

FOUR = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "check.wwp.xz"
PROCESSES = 8
"""The processes of each night, as `--preset check` has them."""
LOSSES = (0.0, 0.03, 0.05)
CASES = ((1, 0), (1, 1), (3, 0), (3, 1))
"""(baselines, repetitions of another night)."""
MOST_BASELINES = 3

FLEET_NODES = 8
FLEET_LOSS = 0.05
SHOW_LOSSES = (0.0, 0.05, 0.10)
SLOW_GPU = 2

Slow = Callable[[str], bool]
"""Whether a curve is slow."""


def night(
    node: Subject, rng: random.Random, noise: float, number: int, slow: Slow, loss: float
) -> Subject:
    """One night of the node, on which the ``slow`` curves have a loss of bandwidth."""
    curves = dict.fromkeys(series.curve for series in node.points)
    factors: Mapping[str, float] = {
        curve: math.exp(rng.gauss(0.0, noise)) / (1 - loss if slow(curve) else 1.0)
        for curve in curves
    }
    series = tuple(_drawn(each, factors[each.curve], rng) for each in node.points)
    name = f"night-{number}.wwp"
    created = f"2026-11-{number % 28 + 1:02d}T{number // 28:02d}:00:00.000+00:00"
    return msgspec.structs.replace(node, file=name, created=created, points=series)


def _drawn(series: Point, factor: float, rng: random.Random) -> Point:
    """The series in `PROCESSES` processes, which deviate as the recorded ones. These have what
    samples add that depend on each other."""
    if not series.blocks:
        return series
    blocks = []
    for number in range(PROCESSES):
        block = rng.choice(series.blocks)
        seconds = block.median * factor * math.exp(rng.gauss(0.0, block.independent_error))
        blocks.append(msgspec.structs.replace(block, block=number, median=seconds))
    return msgspec.structs.replace(series, blocks=tuple(blocks))


def is_accused(
    node: Subject,
    headlines: Sequence[str],
    seed: int,
    noise: float,
    loss: float,
    case: tuple[int, int],
) -> bool:
    """Whether the node fails: if it has a loss, by the path that has it."""
    rng = random.Random(f"{seed} {loss} {case}")
    slow = rng.choice(headlines)
    baselines, repeats = case
    made = [
        night(node, rng, noise, number, slow.__eq__, loss if number >= baselines else 0.0)
        for number in range(baselines + 1 + repeats)
    ]
    found = check_up(made[baselines], made[:baselines], repeats=made[baselines + 1 :])
    losses = {path.curve for path in found.comparison.of("regression")}
    return slow in losses if loss else bool(found.findings)


def stopped(node: Subject, before: Mapping[str, float]) -> tuple[Subject, float]:
    """The node with the processes that a check measures which stops early, and their mean number
    per series."""
    ends = ends_of(node.points, before)
    series = tuple(
        msgspec.structs.replace(each, blocks=each.blocks[: ends[each.curve]])
        for each in node.points
    )
    made = sum(len(each.blocks) for each in series) / max(sum(bool(e.blocks) for e in series), 1)
    return msgspec.structs.replace(node, points=series), made


def ends_of(
    points: Sequence[Point],
    before: Mapping[str, float],
    others: Callable[[Mapping[str, int], int], OtherReferences | None] = lambda ends, look: None,
) -> dict[str, int]:
    """The number of processes after which each curve is settled, at most `PROCESSES`; ``others`` is
    what other references say at a look, of curves with so many processes."""
    ends = {point.curve: PROCESSES for point in points}
    for look in range(1, PROCESSES):
        cut = [
            msgspec.structs.replace(each, blocks=each.blocks[: min(look, ends[each.curve])])
            for each in points
        ]
        known = others(ends, look)
        for curve in settled(path_times(cut, before), look, PROCESSES, THRESHOLD, known):
            ends[curve] = min(ends[curve], look)
    return ends


def stops(
    node: Subject, headlines: Sequence[str], seed: int, noise: float, loss: float
) -> tuple[bool, bool, float]:
    """Whether a node fails after all processes, whether after those of a check that stops early,
    and the mean number of these."""
    rng = random.Random(f"stop {seed} {loss}")
    slow = rng.choice(headlines)
    made = [
        night(node, rng, noise, number, slow.__eq__, loss if number >= MOST_BASELINES else 0.0)
        for number in range(MOST_BASELINES + 1)
    ]
    *baselines, now = made
    early, processes = stopped(now, baseline_times(each.points for each in baselines))
    accused = []
    for each in (now, early):
        found = check_up(each, baselines)
        losses = {path.curve for path in found.comparison.of("regression")}
        accused.append(slow in losses if loss else bool(found.findings))
    return accused[0], accused[1], processes


def _first_processes(
    whole: SeriesFrame, profile: Profile, ends: Mapping[str, int], look: int
) -> SeriesFrame:
    """The series with the processes that a check has measured at a look."""
    return SeriesFrame(
        (
            (each.workload, each.row,
             [v for v in whole.visits[each.visits] if v.block < min(look, ends[each.row.curve])])
            for each in whole.series
        ),
        profile,
    )  # fmt: skip


def slow_links(
    profile: Path, seed: int, noise: float, loss: float, folder: Path
) -> tuple[bool, bool]:
    """Whether the slow link of a simulated host is found without a baseline after all processes,
    and by a check that stops early; of a healthy host whether any is."""
    survey = slow_host(profile, seed, loss, "PCIe to", "PCIe from")
    output = folder / f"{seed}-{loss}.wwp"
    SimulatedNights(survey, noise).simulate(1, moments(survey, 1)[0], output)
    found = []
    with Profile.open(output) as made:
        whole = SeriesFrame.read(made)

        def of_first(ends: Mapping[str, int], look: int) -> Overview:
            return overview(made, frame=_first_processes(whole, made, ends, look))

        def others(ends: Mapping[str, int], look: int) -> OtherReferences:
            seen = of_first(ends, look)
            read = Subject(seen.hostname, made.machine, seen.series, seen=seen)
            return OtherReferences(unequal_parts(read), {})

        ends = ends_of(read_subject(output).points, {}, others)
        for seen in (overview(made, frame=whole), of_first(ends, PROCESSES)):
            said = links_of_gpus(made.machine, seen)[1]
            own = [each for each in said if f"link of gpu:{SLOW_GPU} to the host" in each]
            found.append(bool(own if loss else said))
    output.unlink()
    return found[0], found[1]


def stop_lines(
    node: Subject, profile: Path, options: argparse.Namespace, noise: float
) -> Iterator[str]:
    """Yields a table of checks that stop early beside the same checks of all processes."""
    known = {series.curve: series.workload for series in node.points}
    headlines = sorted(headline(node.machine, known.values()))
    yield f"\n## check that stops early: {len(headlines)} headline paths\n"
    yield "| reference | loss | fails after all 8 processes | fails early | mean processes |"
    yield "|---|---|---|---|---|"
    for loss in (0.0, 0.05):
        of = options.stops if loss or options.healthy is None else options.healthy
        seeds = range(options.seed, options.seed + of)
        found = [stops(node, headlines, seed, noise, loss) for seed in seeds]
        whole, early, processes = (sum(each) for each in zip(*found, strict=True))
        cells = f"{share(int(whole), of)} | {share(int(early), of)} | {processes / of:.1f}"
        yield f"| {MOST_BASELINES} baselines | {loss:.0%} of one path | {cells} |"
    with tempfile.TemporaryDirectory() as folder:
        for loss in (0.0, 0.05):
            of = options.stops if loss or options.healthy is None else options.healthy
            seeds = range(options.seed, options.seed + of)
            links = [slow_links(profile, seed, noise, loss, Path(folder)) for seed in seeds]
            all_, first = (sum(each) for each in zip(*links, strict=True))
            yield (
                f"| equal links | {loss:.0%} of one link | {share(all_, of)} | "
                f"{share(first, of)} | |"
            )


def fleet_accuses(
    node: Subject, seed: int, noise: float, slow: Slow, loss: float
) -> tuple[bool, bool]:
    """Whether a fleet of nodes accuses that which has the loss, and whether another one."""
    rng = random.Random(f"fleet {seed} {loss}")
    ill = rng.randrange(FLEET_NODES)
    nodes = []
    for number in range(FLEET_NODES):
        made = night(node, rng, noise, 0, slow, loss if number == ill else 0.0)
        gpus = tuple(
            msgspec.structs.replace(gpu, uuid=f"GPU-{number}-{gpu.index}")
            for gpu in node.machine.gpus
        )
        host = f"n{number}"
        machine = msgspec.structs.replace(node.machine, hostname=host, gpus=gpus)
        nodes.append(msgspec.structs.replace(made, name=host, file=f"{host}.wwp", machine=machine))
    accused = {host.host for host in assess_fleet(nodes).of("bad", "suspect")}
    return f"n{ill}" in accused, bool(accused - ({f"n{ill}"} if loss else set()))


def slow_host(profile: Path, seed: int, loss: float, *ways: str) -> SimulatedSurvey:
    """A simulated host whose links to one GPU have a loss in these directions."""
    host = f"host{seed}"
    healthy = prepare_simulation(profile, MachineChanges(), None, seed, host)
    changes = tuple(
        Change(f"{way} gpu:{SLOW_GPU}", each.bytes_per_second * (1 - loss))
        for way in ways
        for each in healthy.simulation.measured.capacities
        if each.resource == f"{way} gpu:*" and loss
    )
    return prepare_simulation(profile, MachineChanges(changes), None, seed, host)


def cases_accusing(
    profile: Path, seed: int, noise: float, loss: float, folder: Path
) -> set[tuple[int, int]]:
    """The cases in which a simulated node fails: if it has a loss, by a path that has it."""
    healthy, slow = (slow_host(profile, seed, each, "PCIe to") for each in (0.0, loss))
    nodes = []
    days = moments(healthy, MOST_BASELINES + 2)
    before, after = SimulatedNights(healthy, noise), SimulatedNights(slow, noise)
    for night, made in enumerate([before] * MOST_BASELINES + [after] * 2, start=1):
        output = folder / f"{night}.wwp"
        made.simulate(night, days[night - 1], output)
        nodes.append(read_subject(output))
        output.unlink()
    found = set()
    for baselines, repeats in CASES:
        before, now = nodes[MOST_BASELINES - baselines : MOST_BASELINES], nodes[MOST_BASELINES:]
        checked = check_up(now[0], before, repeats=now[1 : 1 + repeats])
        slower = [path.curve for path in checked.comparison.of("regression")]
        of_link = [each for each in slower if f"-> device@gpu:{SLOW_GPU}" in each]
        if of_link if loss else checked.findings:
            found.add((baselines, repeats))
    return found


def shown_slow(
    profile: Path, seed: int, noise: float, loss: float, folder: Path
) -> tuple[str, ...]:
    """What `show` says about slow links of a simulated host, whose links to one GPU have a loss."""
    survey = slow_host(profile, seed, loss, "PCIe to", "PCIe from")
    output = folder / f"{seed}-{loss}.wwp"
    SimulatedNights(survey, noise).simulate(1, moments(survey, 1)[0], output)
    with Profile.open(output) as made:
        said = links_of_gpus(made.machine, overview(made))[1]
    output.unlink()
    return said


def check_lines(node: Subject, options: argparse.Namespace, noise: float) -> Iterator[str]:
    known = {series.curve: series.workload for series in node.points}
    headlines = sorted(headline(node.machine, known.values()))
    yield f"\n## check: {len(headlines)} headline paths\n"
    yield "| baselines | repetitions | healthy ones that fail | 3 % found | 5 % found |"
    yield "|---|---|---|---|---|"
    for case in CASES:
        cells = []
        for loss in LOSSES:
            of = options.nodes if loss or options.healthy is None else options.healthy
            seeds = range(options.seed, options.seed + of)
            found = sum(is_accused(node, headlines, seed, noise, loss, case) for seed in seeds)
            cells.append(share(found, of))
        yield f"| {case[0]} | {case[1]} | {' | '.join(cells)} |"


def simulated_lines(profile: Path, options: argparse.Namespace, noise: float) -> Iterator[str]:
    yield "\n## check: simulated surveys\n"
    yield "| baselines | repetitions | healthy ones that fail | 3 % found | 5 % found |"
    yield "|---|---|---|---|---|"
    seeds = range(options.seed, options.seed + options.simulated)
    with tempfile.TemporaryDirectory() as folder:
        by_loss = [
            [cases_accusing(profile, seed, noise, loss, Path(folder)) for seed in seeds]
            for loss in LOSSES
        ]
    for case in CASES:
        counts = (sum(case in each for each in found) for found in by_loss)
        cells = " | ".join(share(found, options.simulated) for found in counts)
        yield f"| {case[0]} | {case[1]} | {cells} |"


def fleet_lines(node: Subject, options: argparse.Namespace, noise: float) -> Iterator[str]:
    yield f"\n## fleet: {FLEET_NODES} nodes\n"
    yield "| one node has | it is suspected | others are suspected |"
    yield "|---|---|---|"
    link = f"gpu:{SLOW_GPU} "
    single = f"pinned@numa:0 -> device@{link}by copy-engine"
    rows: Sequence[tuple[str, Slow, float]] = (
        ("no loss", lambda _: False, 0.0),
        (f"one path, {FLEET_LOSS:.0%} slower", single.__eq__, FLEET_LOSS),
        (
            f"all paths over one link, {FLEET_LOSS:.0%} slower",
            lambda curve: link in curve and "numa" in curve,
            FLEET_LOSS,
        ),
    )
    seeds = range(options.seed, options.seed + options.fleets)
    for what, slow, loss in rows:
        found = [fleet_accuses(node, seed, noise, slow, loss) for seed in seeds]
        right, wrong = (sum(each) for each in zip(*found, strict=True))
        yield (
            f"| {what} | {share(right, options.fleets) if loss else ''} | "
            f"{share(wrong, options.fleets)} |"
        )


def show_lines(profile: Path, options: argparse.Namespace, noise: float) -> Iterator[str]:
    yield "\n## show: simulated hosts\n"
    yield "| links to one GPU have | the link is named | another one is |"
    yield "|---|---|---|"
    seeds = range(options.seed, options.seed + options.hosts)
    with tempfile.TemporaryDirectory() as folder:
        for loss in SHOW_LOSSES:
            right = wrong = 0
            for seed in seeds:
                said = shown_slow(profile, seed, noise, loss, Path(folder))
                own = [each for each in said if f"link of gpu:{SLOW_GPU} to the host" in each]
                right += bool(own and loss)
                wrong += len(said) > len(own) or bool(said and not loss)
            what = f"{loss:.0%} less bandwidth" if loss else "no loss"
            first = share(right, options.hosts) if loss else ""
            yield f"| {what} | {first} | {share(wrong, options.hosts)} |"


def share(found: int, of: int) -> str:
    return f"{found} of {of} ({found / max(of, 1):.1%})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=30, help="of each row; 30 by default")
    parser.add_argument("--healthy", type=int, help="healthy nodes of each row; as --nodes")
    parser.add_argument("--stops", type=int, default=0, help="checks that stop early; none")
    parser.add_argument("--simulated", type=int, default=0, help="nodes of simulated surveys; none")
    parser.add_argument("--fleets", type=int, default=20, help="of each row; 20 by default")
    parser.add_argument("--hosts", type=int, default=20, help="of each row of show; 20 by default")
    parser.add_argument("--noise", default="1%", help="of each path between nights; 1%% by default")
    parser.add_argument("--profile", type=Path, default=FOUR)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    noise = parse_fraction(options.noise, "--noise")
    with tempfile.TemporaryDirectory() as folder:
        profile = unpacked(options.profile, Path(folder) / "node.wwp")
        node = read_subject(profile)
        print(f"Noise of each path between nights: {noise:.1%}")
        for line in chain(
            check_lines(node, options, noise) if options.nodes else (),
            stop_lines(node, profile, options, noise) if options.stops else (),
            simulated_lines(profile, options, noise) if options.simulated else (),
            fleet_lines(node, options, noise) if options.fleets else (),
            show_lines(profile, options, noise) if options.hosts else (),
        ):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
