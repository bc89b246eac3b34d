"""Plants a loss in one path after the other of a recorded survey, and compares.

    python benchmarks/planted_pairs.py BASE.wwp NEW.wwp [--loss 5%] [--only PATTERN]
                                       [--timing device]

Both profiles are surveys of one healthy machine. All medians of one path of NEW are made worse by
the loss, BASE and NEW are compared, and the path counts as found if it is suspected, as a loss is
where one survey is compared with one. Paths that are shown without a planted loss are left out.
Prints how many paths are found, by the smallest loss that the comparison says it would find. The
noise is that of the machine: nothing is simulated.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from analysis.comparison.nodes import slower  # noqa: E402
from waywiser.analysis.comparison.comparison import compare  # noqa: E402
from waywiser.curves.select import matches_any, sized_texts_of  # noqa: E402
from waywiser.curves.subject import Subject, read_subject  # noqa: E402
from waywiser.profile import Profile  # noqa: E402
from waywiser.words.numbers import parse_fraction  # noqa: E402

DETECTABLE = (0.04, 0.05, 0.10, 0.15)
"""Classes of paths: by the smallest loss that the comparison says it would find."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--loss", default="5%", help="of bandwidth; 5%% by default")
    parser.add_argument("--only", action="append", default=[], help="paths that match")
    parser.add_argument("--timing", choices=("device", "host", "all"), default="all")
    options = parser.parse_args()
    loss = parse_fraction(options.loss, "--loss")
    base, new = read_subject(options.base), read_subject(options.new)
    healthy = compare([base], [new])
    shown = {path.curve for path in healthy.of("suspected", "regression", "improvement")}
    timers = timers_of(options.new)
    selected = [path for path in healthy.measured if _selected(new, path.curve, timers, options)]
    if not selected:
        parser.error("no path of both profiles is of this timing and matches --only")
    chosen = [p for p in selected if p.curve not in shown and p.detectable is not None]
    classes: dict[float, list[bool]] = {limit: [] for limit in (*DETECTABLE, math.inf)}
    accused = 0
    for path in chosen:
        planted = slower(new, lambda each, curve=path.curve: each.curve == curve, 1 / (1 - loss))
        found = compare([base], [planted])
        worse = {each.curve for each in found.of("suspected", "regression")}
        limit = next(limit for limit in classes if (path.detectable or math.inf) <= limit)
        classes[limit].append(path.curve in worse)
        accused += bool(worse - shown - {path.curve})
    everything = [each for one in classes.values() for each in one]
    print(f"| detectable from | paths | {loss * 100:.3g} % found |\n|---|---|---|")
    for limit, found_of in classes.items():
        if found_of:
            name = "more" if limit == math.inf else f"at most {limit:.0%}"
            print(f"| {name} | {len(found_of)} | {sum(found_of)} |")
    print(f"| all | {len(everything)} | {sum(everything)} |")
    left_out = len(selected) - len(chosen)
    print(f"\nWithout a planted loss, {len(shown)} of {len(healthy.measured)} paths are shown. For")
    print(f"that, or since their noise is not known, {left_out} paths are left out. Planted losses")
    print(f"that made the comparison accuse another path as well: {accused}.")
    return 0


def timers_of(file: Path) -> dict[str, set[str]]:
    """Who timed each curve."""
    found: dict[str, set[str]] = {}
    with Profile.open(file) as profile:
        for visit in profile.visits():
            if visit.samples.span:
                found.setdefault(visit.workload.curve, set()).add(visit.mode)
    return found


def _selected(
    node: Subject, curve: str, timers: dict[str, set[str]], options: argparse.Namespace
) -> bool:
    own = [series for series in node.points if series.curve == curve]
    if options.timing != "all" and timers[curve] != {options.timing}:
        return False
    texts = (text for series in own for text in sized_texts_of(series.workload))
    return not options.only or matches_any(texts, options.only)


if __name__ == "__main__":
    raise SystemExit(main())
