"""Whether Waywiser finds what is there: planted truths, at more machines than a test has time for.

    python benchmarks/planted_truth.py [--machines 1000] [--first 100000] [-o FILE.md]

Makes synthetic machines under recorded noise (tests/planted), asks every analysis, compares surveys
of one machine with each other, and judges fleets; writes what was found, missed and reported
falsely.
Every number follows from the seeds, which begin at ``--first``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "python")]

from analysis.comparison.nodes import losses  # noqa: E402
from planted.noise import recorded  # noqa: E402
from planted.planted_machine import BLOCKS  # noqa: E402
from planted.planted_model import Truth, down, up  # noqa: E402
from planted.score import FOUND, REJECTED, Hypothesis, Score, Share, scored, together  # noqa: E402
from planted.trial import (  # noqa: E402
    COMPARED_BLOCKS,
    HOSTS,
    ILL,
    SURVEY_BLOCKS,
    few_hosts,
    fleet,
    hypotheses,
    surveyed_twice,
)

SLOWER = 0.05
CHUNK = 10
SMALL_FLEETS = ((4, 1), (4, 2), (4, 4), (4, 8), (6, 2), (10, 2), (16, 1))
"""Hosts, and GPUs of each."""
SMALL_LOSSES = (0.05, 0.10)
EFFECTS = (("5 %", 0.055), ("to 10 %", 0.10), ("over 10 %", 9.0))
"""Names, and below what."""


def asked(job: tuple[int, int, int]) -> list[Hypothesis]:
    first, last, blocks = job
    return list(hypotheses(range(first, last), recorded(), blocks))


def compared(seed: int) -> tuple[int, int, bool, bool]:
    """(paths that seem changed though nothing is, all paths; of a link 5 % slower: whether a path
    over it has a significant loss, whether any other path seems changed)."""
    pool = recorded()
    same = surveyed_twice(seed, pool)
    changed = surveyed_twice(seed + 500_000, pool, Truth("slow host link", SLOWER, (3,)))
    worse = losses(changed)
    changes = worse | {path.curve for path in changed.of("improvement")}
    others = [curve for curve in changes if "gpu:3 " not in f"{curve} "]
    slower = bool(worse & {up(3), down(3)})
    differing = losses(same) | {path.curve for path in same.of("improvement")}
    return len(differing), len(same.paths), slower, bool(others)


def fleet_of(job: tuple[int, int, bool]) -> tuple[Counter[str], int, int]:
    """(found by illness, hosts wrongly suspected, hosts wrongly flagged in the end)."""
    seed, blocks, healthy = job
    trial = fleet(seed, recorded(), blocks, healthy=healthy)
    return Counter(trial.found), len(trial.wrongly_suspected), len(trial.wrongly_flagged)


def percent(share: Share) -> str:
    """``95 of 100 (95.0 %, 88.7–98.4 %)``."""
    if not share.of:
        return "—"
    low, high = share.interval()
    return f"{share.count} of {share.of} ({share.value:.2%}, {low:.2%} to {high:.2%})"


def by_truth(found: Sequence[Hypothesis]) -> Iterator[tuple[str, str, str, Share]]:
    """(question, truth, effect, found), in order."""
    shares: dict[tuple[str, str, str], Share] = {}
    for each in found:
        if each.effect:
            size = (
                "5 %" if each.effect < 0.055 else "to 10 %" if each.effect < 0.10 else "over 10 %"
            )
            key = (each.question, each.truth, size)
            shares.setdefault(key, Share()).add(each.rejected)
    order = [name for name, _ in EFFECTS]
    for key in sorted(shares, key=lambda key: (key[0], key[1], order.index(key[2]))):
        yield (*key, shares[key])


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def questions(found: Sequence[Hypothesis], nulls_alone: bool = False) -> Iterator[str]:
    """``nulls_alone``: only of these something is promised."""
    scores = scored(found)
    yield row("question", "planted and found", "null and rejected", "promise")
    yield row("---", "---", "---", "---")
    for question in sorted(scores):
        yield _row_of(question, scores[question], nulls_alone)
    yield _row_of("**all**", together(scores.values()), nulls_alone)


def _row_of(name: str, score: Score, nulls_alone: bool) -> str:
    promised = Score(Share(), score.rejected) if nulls_alone else score
    return row(name, percent(score.found), percent(score.rejected), promised.broken or "kept")


def page(options: argparse.Namespace, run: Callable[..., Iterator[object]]) -> Iterator[str]:
    first, machines = options.first, options.machines
    started = time.time()

    def ask(begin: int, count: int, blocks: int) -> list[Hypothesis]:
        jobs = [(n, min(n + CHUNK, begin + count), blocks)
                for n in range(begin, begin + count, CHUNK)]  # fmt: skip
        return [each for part in run(asked, jobs) for each in part]  # type: ignore[attr-defined]

    many = ask(first, machines, BLOCKS)
    few = ask(first + machines, machines // 5, SURVEY_BLOCKS)
    yield "# Planted truth"
    yield ""
    yield "<!-- Written by benchmarks/planted_truth.py. -->"
    yield ""
    yield (
        "Synthetic machines with eight GPUs, on a switch or a mesh of NVLinks, with sockets shown, "
        "hidden or one, have planted effects: links that are slower in one direction or both, a "
        "remote socket, hidden sockets, one odd size, GPUs that share a port. The noise is that of "
        "recorded surveys (docs/results), whole blocks, curves and visits at a time. The method "
        "and the rule for a broken promise are in docs/methodology.md and tests/planted. Shares "
        "have exact binomial 95 % intervals; hypotheses of one machine are not quite independent."
    )
    yield ""
    yield (
        f"    python benchmarks/planted_truth.py --machines {machines} --first {first} "
        f"--fleets {options.fleets}"
    )
    yield ""
    yield f"## {machines} machines, {BLOCKS} blocks (as `--preset full` makes them)"
    yield ""
    yield (
        f"Promised: at least {FOUND:.0%} of what is planted is found, and at most {REJECTED:.0%} "
        "of null hypotheses are rejected."
    )
    yield ""
    yield from questions(many)
    yield ""
    yield "By planted effect, and by how much longer a large copy takes:"
    yield ""
    yield row("question", "truth", "effect", "found", "missed")
    yield row("---", "---", "---", "---", "---")
    for question, truth, effect, share in by_truth(many):
        yield row(question, truth, effect, percent(share), share.of - share.count)
    yield ""
    yield f"## {machines // 5} machines, {SURVEY_BLOCKS} blocks (as `--preset standard` makes them)"
    yield ""
    yield "Two blocks may find less; the limit for rejected nulls is the same."
    yield ""
    yield from questions(few, nulls_alone=True)
    yield ""
    yield from comparisons(options, run)
    yield from fleets(options, run)
    yield ""
    yield from small_fleets(options, run)
    print(f"{time.time() - started:.0f} s", file=sys.stderr)


def comparisons(options: argparse.Namespace, run: Callable[..., Iterator[object]]) -> Iterator[str]:
    seeds = range(options.first, options.first + options.machines // 5)
    quiet, paths, found, others = Share(), Share(), Share(), Share()
    for differing, count, worse, other in run(compared, seeds):  # type: ignore[misc]
        quiet.add(not differing)
        paths.count, paths.of = paths.count + differing, paths.of + count
        found.add(worse)
        others.add(other)
    yield "## Surveys compared with one another"
    yield ""
    yield (
        f"Two fresh surveys of one machine, {COMPARED_BLOCKS} blocks each, with all that one "
        "recorded survey had and the next had not."
    )
    yield ""
    yield row("what", "so many")
    yield row("---", "---")
    yield row("same machine: comparisons with every path the same or unclear", percent(quiet))
    yield row("same machine: paths reported as different", percent(paths))
    yield row("one GPU's host link 5 % slower: comparisons that find it slower", percent(found))
    yield row("one GPU's host link 5 % slower: comparisons that name others", percent(others))
    yield ""


def fleets(options: argparse.Namespace, run: Callable[..., Iterator[object]]) -> Iterator[str]:
    yield f"## Fleets of {HOSTS} equal hosts"
    yield ""
    yield (
        "Each host is surveyed once; suspects are surveyed again, and are flagged where they are "
        "seen again or directly. Found is a host that is flagged with the right device named."
    )
    yield ""
    kinds = [kind for kind, _ in ILL]
    yield row("blocks", "fleets", *kinds, "healthy hosts suspected", "healthy hosts flagged")
    yield row(*["---"] * (4 + len(kinds)))
    for blocks in (2, 1):
        jobs = [(options.first + n, blocks, n % 2 == 1) for n in range(options.fleets)]
        shares = {kind: Share() for kind in kinds}
        suspected, flagged = Share(), Share()
        for (_, _, all_healthy), (found, suspects, wrong) in zip(
            jobs,
            run(fleet_of, jobs),
            strict=True,  # type: ignore[arg-type]
        ):
            healthy = HOSTS - (0 if all_healthy else sum(count for _, count in ILL))
            for kind, count in () if all_healthy else ILL:
                shares[kind].count += found[kind]
                shares[kind].of += count
            suspected.count, suspected.of = suspected.count + suspects, suspected.of + healthy
            flagged.count, flagged.of = flagged.count + wrong, flagged.of + healthy
        rates = [percent(shares[kind]) for kind in kinds]
        yield row(blocks, len(jobs), *rates, percent(suspected), percent(flagged))


def few_hosts_of(job: tuple[int, int, int, float]) -> tuple[bool, bool]:
    """(whether the host with the slow link is suspected alone, its link named; whether another
    is)."""
    seed, hosts, gpus, loss = job
    found, host, gpu = few_hosts(seed, recorded(), hosts, gpus, loss)
    suspects = found.of("bad", "suspect")
    others = any(each.host != host for each in suspects) if loss else bool(suspects)
    named = [d.place for e in suspects if e.host == host for d in e.faults[0].devices]
    return named == [f"gpu:{gpu}"], others


def small_fleets(
    options: argparse.Namespace, run: Callable[..., Iterator[object]]
) -> Iterator[str]:
    yield "## Fleets of few hosts"
    yield ""
    yield (
        f"Each host is surveyed once, with {SURVEY_BLOCKS} blocks and all sizes. Found is a fleet "
        "in which the GPU with the slow link is named first."
    )
    yield ""
    yield row(
        "hosts", "GPUs", "equal hosts: fleets with a suspicion",
        *(f"a link {loss:.0%} slower: found" for loss in SMALL_LOSSES), "with another suspect",
    )  # fmt: skip
    yield row(*["---"] * (4 + len(SMALL_LOSSES)))
    for hosts, gpus in SMALL_FLEETS:
        shares, others = {}, Share()
        for loss in (0.0, *SMALL_LOSSES):
            seeds = range(options.first, options.first + 2 * options.fleets)
            found = list(run(few_hosts_of, [(seed, hosts, gpus, loss) for seed in seeds]))
            shares[loss] = Share()
            for named, other in found:  # type: ignore[misc]
                shares[loss].add(named if loss else other)
                if loss:
                    others.add(other)
        yield row(hosts, gpus, *map(percent, shares.values()), percent(others))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--fleets", type=int, default=20, help="half of them without any ill host")
    parser.add_argument("--first", type=int, default=100_000, help="seed of the first machine")
    parser.add_argument("-o", "--output", type=Path, help="by default the terminal")
    options = parser.parse_args()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        text = "\n".join(page(options, lambda what, jobs: pool.map(what, jobs))) + "\n"
    if options.output:
        options.output.write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
